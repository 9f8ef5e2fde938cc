"""A finding, and what it says."""

from __future__ import annotations

from dataclasses import dataclass

from compat_patches.lint.resolving import MODULE
from compat_patches.lint.table import Migration, Table

MODULE_RULE = "torch-cuda-module"

# What is wrong with a comment that allows a finding; rules as well, so that every line of output has one.
COMMENT_RULES = {
    "ignore-unused": "A comment allows a finding that is not there",
    "ignore-without-reason": "A comment allows a finding and does not say why",
    "ignore-without-rule": "A comment allows a finding and does not name its rule",
    "ignore-unknown-rule": "A comment allows a rule that does not exist",
}


@dataclass(frozen=True)
class Finding:
    """One place in a file, and what is to be said about it.

    Attributes:
        row, column, end_row, end_column: rows from 1, columns from 0 in characters, the end exclusive.
        rule: the rule's name.
        level: "finding" (exit code 1), "note" or "silent".
        name: the dotted name that stands there; empty for what is wrong with a comment.
        message: one sentence.
        replacement: the dotted name to use instead, where there is one that may be suggested.
        differs: how the replacement differs; may be empty.
        verdict: with the verdicts of `fix` asked for, "rewritten" or why `fix` leaves it; otherwise None.
    """

    path: str
    row: int
    column: int
    end_row: int
    end_column: int
    rule: str
    level: str
    name: str
    message: str
    replacement: str | None = None
    differs: str = ""
    verdict: str | None = None

    @property
    def position(self) -> tuple[int, int, int, int]:
        return self.row, self.column, self.end_row, self.end_column


def finding_of(
    path: str,
    name: str,
    position: tuple[int, int, int, int],
    table: Table,
    min_torch: tuple[int, int],
    patched: bool = False,
) -> Finding:
    """Return the finding for a use of `name`.

    Args:
        name: a name of the table, or the module torch.cuda.
        min_torch: the oldest torch that the code has to run with; nothing newer is suggested.
        patched: the name stands in a text or beside its module, to be replaced there by a test or a patch.
    """
    if name == MODULE:
        message = "torch.cuda is handed on as a whole; what is used of it then is not followed"
        return Finding(path, *position, MODULE_RULE, "note", name, message)
    migration = table.by_name[name]
    rule, level, message = migration.rule, migration.level, _message(migration, name)
    replacement = migration.replacement
    if replacement is not None and migration.since > min_torch:
        level = "note" if level == "finding" else level
        message = (
            f"{replacement} will replace {name}: it is there from torch {_text(migration.since)} on, "
            f"and this code has to run with {_text(min_torch)}"
        )
        replacement = None
    elif patched and replacement is not None:
        level = "note" if level == "finding" else level
        message = f"{name} is replaced here: code that has moved to {replacement} will not notice"
    return Finding(path, *position, rule, level, name, message, replacement, migration.differs)


def is_rewritable(finding: Finding, table: Table) -> bool:
    """Return whether `fix` looks at this finding at all."""
    return finding.level == "finding" and finding.name in table.by_name


def _message(migration: Migration, name: str) -> str:
    if name != migration.name and migration.message.startswith("use "):
        return f"use {migration.replacement} instead of {name}"
    return migration.message


def _text(version: tuple[int, int]) -> str:
    return f"{version[0]}.{version[1]}"
