"""The table of replacements: `migrations.toml` and the user's own files, read into records.

A file is read whole or not at all, and all that is wrong with it is said at once.
"""

from __future__ import annotations

import difflib
import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from compat_patches.lint.errors import LintError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

BUILT_IN = Path(__file__).with_name("migrations.toml")

LEVELS = ("finding", "note", "silent")
REWRITES = (
    "name",
    "call",
    "event",
    "stream",
    "set-stream",
    "device-guard",
    "statistics",
    "class",
    "never",
)
# A user's own function has none of the special knowledge of torch that the other kinds stand for.
USER_REWRITES = ("name", "call", "never")

_DOTTED = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)+")
_VERSION = re.compile(r"\d+\.\d+")
_RULE = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")


@dataclass(frozen=True)
class Migration:
    """One name that has a device-neutral form, or that is known to have none.

    Attributes:
        name: the dotted name, as the table's first spelling of it.
        rule: what a comment or the configuration names to allow it.
        replacement: the dotted name to use instead; None for a name without an equivalent.
        since: the first torch release with the replacement, as (major, minor).
        rewrite: one of REWRITES, how `fix` decides.
        level: one of LEVELS.
        message: what a reader is told.
        differs: how the replacement differs, or why there is none; may be empty.
        keys: for "statistics", the keys that both dictionaries document.
    """

    name: str
    rule: str
    replacement: str | None
    since: tuple[int, int]
    rewrite: str
    level: str
    message: str
    differs: str
    keys: re.Pattern[str] | None = None


@dataclass(frozen=True)
class Table:
    """All migrations, by every spelling of their names.

    Attributes:
        by_name: a dotted name to its migration.
        words: sets of words; a file that holds no set completely cannot hold a use of any name.
        rules: every rule that an entry has.
    """

    by_name: dict[str, Migration]
    words: frozenset[frozenset[str]]
    rules: frozenset[str]
    prefixes: frozenset[str] = field(repr=False, default=frozenset())


def parse_version(text: str) -> tuple[int, int]:
    """Return the (major, minor) of `text`, as in "2.10". Raise ValueError for anything else."""
    if not _VERSION.fullmatch(text):
        raise ValueError(f'{text!r} is not a torch release like "2.10"')
    major, minor = text.split(".")
    return int(major), int(minor)


def load_table(extra_files: Iterable[Path] = ()) -> Table:
    """Read the built-in table and `extra_files`, a later file overriding an earlier one name by name.

    Raises:
        LintError: a file cannot be read, or an entry is wrong; the text names each of them.
    """
    by_name: dict[str, Migration] = {}
    words: set[frozenset[str]] = set()
    for path in [BUILT_IN, *extra_files]:
        _Reader(path, by_name, words, built_in=path is BUILT_IN).read()
    prefixes = {
        ".".join(parts[:length])
        for parts in (name.split(".") for name in by_name)
        for length in range(1, len(parts) + 1)
    }
    return Table(by_name, frozenset(words), frozenset(m.rule for m in by_name.values()), frozenset(prefixes))


class _Reader:
    """Reads one file, and collects what is wrong with it until it can be told at once."""

    ENTRY_KEYS = frozenset(
        [
            "name",
            "also",
            "rule",
            "replacement",
            "since",
            "rewrite",
            "level",
            "message",
            "differs",
            "keys",
            "words",
        ]
    )
    NONE_KEYS = frozenset(["names", "rule", "why", "words"])

    def __init__(
        self,
        path: Path,
        by_name: dict[str, Migration],
        words: set[frozenset[str]],
        built_in: bool,
    ) -> None:
        self.path = path
        self.by_name = by_name
        self.words = words
        self.rewrites = REWRITES if built_in else USER_REWRITES
        self.problems: list[str] = []
        self.default_words: list[str] | None = None

    def read(self) -> None:
        try:
            document = tomllib.loads(self.path.read_bytes().decode("utf-8-sig"))
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
            raise LintError(f"{self.path}: the table of migrations cannot be read: {error}") from error
        self._check_keys("the file", document, frozenset({"table", "migration", "no_equivalent"}))
        head = document.get("table", {})
        if not isinstance(head, dict) or head.get("schema") != 1:
            self.problems.append("[table] schema: expected 1, the only one there is")
        else:
            self._check_keys("[table]", head, frozenset({"schema", "words"}))
            self.default_words = head.get("words")
        for kind, read in (("migration", self._migration), ("no_equivalent", self._no_equivalent)):
            entries = document.get(kind, [])
            if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
                self.problems.append(f"{kind}: expected tables, each begun with [[{kind}]]")
                continue
            for number, entry in enumerate(entries, 1):
                read(f"[[{kind}]] {number}", entry)
        if self.problems:
            raise LintError("\n".join(f"{self.path}: {problem}" for problem in self.problems))

    def _migration(self, where: str, entry: dict[str, Any]) -> None:
        before = len(self.problems)
        self._check_keys(where, entry, self.ENTRY_KEYS)
        name = self._text(where, entry, "name", _DOTTED, "a dotted name")
        where = f"{where} ({name})"
        also = self._names(where, entry, "also") if "also" in entry else []
        rule = self._text(where, entry, "rule", _RULE, "a rule like torch-cuda-memory")
        replacement = self._text(where, entry, "replacement", _DOTTED, "a dotted name")
        since = self._text(where, entry, "since", _VERSION, 'a torch release like "2.10"', "2.8")
        rewrite = self._choice(where, entry, "rewrite", self.rewrites, "never")
        level = self._choice(where, entry, "level", LEVELS, "finding")
        message = self._text(where, entry, "message", None, "a text", f"use {replacement} instead of {name}")
        differs = self._text(where, entry, "differs", None, "a text", "")
        keys = self._text(where, entry, "keys", None, "a regular expression", "")
        if len(self.problems) > before:
            return
        migration = Migration(
            name,
            rule,
            replacement,
            parse_version(since),
            rewrite,
            level,
            message,
            differs,
            re.compile(keys) if keys else None,
        )
        self._add(where, entry, migration, [name, *also])

    def _no_equivalent(self, where: str, entry: dict[str, Any]) -> None:
        before = len(self.problems)
        self._check_keys(where, entry, self.NONE_KEYS)
        names = self._names(where, entry, "names")
        rule = self._text(where, entry, "rule", _RULE, "a rule like torch-cuda-memory")
        why = self._text(where, entry, "why", None, "a text")
        if len(self.problems) > before:
            return
        for name in names:
            message = f"{name} has no device-neutral form: {why}"
            self._add(where, entry, Migration(name, rule, None, (0, 0), "never", "silent", message, why), [name])

    def _add(self, where: str, entry: dict[str, Any], migration: Migration, names: list[str]) -> None:
        for name in names:
            self.by_name[name] = migration
            words = entry.get("words", self.default_words) or name.split(".")[-2:]
            if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
                self.problems.append(f"{where}: words: expected a list of texts, found {words!r}")
                return
            self.words.add(frozenset(words))

    def _check_keys(self, where: str, entry: dict[str, Any], known: frozenset[str]) -> None:
        for key in sorted(set(entry) - known):
            near = difflib.get_close_matches(key, known, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else f"; expected one of {', '.join(sorted(known))}"
            self.problems.append(f"{where}: unknown key {key!r}{hint}")

    def _text(
        self,
        where: str,
        entry: dict[str, Any],
        key: str,
        shape: re.Pattern[str] | None,
        expected: str,
        default: str | None = None,
    ) -> str:
        value = entry.get(key, default)
        if not isinstance(value, str) or (shape is not None and not shape.fullmatch(value)):
            found = "nothing" if value is None else repr(value)
            self.problems.append(f"{where}: {key}: expected {expected}, found {found}")
            return ""
        return value

    def _choice(self, where: str, entry: dict[str, Any], key: str, choices: tuple[str, ...], default: str) -> str:
        value = entry.get(key, default)
        if value not in choices:
            self.problems.append(f"{where}: {key}: expected one of {', '.join(choices)}, found {value!r}")
            return default
        return str(value)

    def _names(self, where: str, entry: dict[str, Any], key: str) -> list[str]:
        value = entry.get(key)
        if not isinstance(value, list) or not all(isinstance(name, str) and _DOTTED.fullmatch(name) for name in value):
            self.problems.append(f"{where}: {key}: expected a list of dotted names, found {value!r}")
            return []
        return value
