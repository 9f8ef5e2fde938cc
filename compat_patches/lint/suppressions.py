"""Comments that allow a finding on their line: `# compat: ignore[torch-cuda-event] why it has to stay`.

A comment without a reason allows nothing, and one that no finding needs is reported, so that they cannot pile
up.
"""

from __future__ import annotations

import difflib
import io
import re
import tokenize
from dataclasses import dataclass, field

from compat_patches.lint.findings import COMMENT_RULES, MODULE_RULE, Finding
from compat_patches.lint.sources import Source
from compat_patches.lint.table import Table

_COMMENT = re.compile(r"#\s*compat:\s*ignore\b\s*(\[(?P<rules>[^\]]*)\])?\s*[-:–—]*\s*(?P<reason>.*)$")


@dataclass
class _Comment:
    row: int
    column: int
    end_column: int
    rules: list[str]
    reason: str
    used: set[str] = field(default_factory=set)


def apply(source: Source, findings: list[Finding], table: Table) -> tuple[list[Finding], list[Finding]]:
    """Return the findings that remain, those about the comments included, and those that are allowed."""
    if "compat:" not in source.text:
        return findings, []
    comments = _read(source.text)
    if not comments:
        return findings, []
    known = table.rules | {MODULE_RULE}
    remaining: list[Finding] = []
    allowed: list[Finding] = []
    for finding in findings:
        matching = [
            comment
            for row in range(finding.row, finding.end_row + 1)
            for comment in comments.get(row, ())
            if finding.rule in comment.rules and comment.reason
        ]
        for comment in matching:
            comment.used.add(finding.rule)
        (allowed if matching else remaining).append(finding)
    for row in sorted(comments):
        for comment in comments[row]:
            remaining += [_about(source.path, comment, *said) for said in _complaints(comment, known)]
    remaining.sort(key=lambda finding: finding.position)
    return remaining, allowed


def _read(text: str) -> dict[int, list[_Comment]]:
    found: dict[int, list[_Comment]] = {}
    try:
        for token in tokenize.generate_tokens(io.StringIO(text, newline="").readline):
            if token.type == tokenize.COMMENT and (match := _COMMENT.search(token.string)):
                rules = [rule.strip() for rule in (match["rules"] or "").split(",") if rule.strip()]
                row, column = token.start
                comment = _Comment(row, column + match.start(), token.end[1], rules, match["reason"].strip())
                found.setdefault(row, []).append(comment)
    except (tokenize.TokenError, SyntaxError, IndentationError):
        # What does not tokenize does not parse either, and is reported for that.
        return {}
    return found


def _complaints(comment: _Comment, known: frozenset[str]) -> list[tuple[str, str]]:
    if not comment.rules:
        return [("ignore-without-rule", "name the rule that is allowed: # compat: ignore[rule] reason")]
    said = []
    for rule in comment.rules:
        if rule not in known:
            near = difflib.get_close_matches(rule, known, n=1)
            hint = f"did you mean {near[0]}?" if near else f"known are {', '.join(sorted(known))}"
            said.append(("ignore-unknown-rule", f"there is no rule {rule}; {hint}"))
        elif not comment.reason:
            said.append(("ignore-without-reason", f"say why {rule} is allowed here: the comment counts only then"))
        elif rule not in comment.used:
            said.append(("ignore-unused", f"nothing on this line needs {rule} to be allowed: drop the comment"))
    return said


def _about(path: str, comment: _Comment, rule: str, message: str) -> Finding:
    assert rule in COMMENT_RULES
    return Finding(path, comment.row, comment.column, comment.row, comment.end_column, rule, "finding", "", message)
