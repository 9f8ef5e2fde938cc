"""Findings as text with code frames, as a line each, as JSON, as GitHub annotations and as SARIF."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import quote

from compat_patches import __version__
from compat_patches.lint.analysis import LINE_END
from compat_patches.lint.findings import COMMENT_RULES, Finding
from compat_patches.lint.running import Report

Style = Callable[[str, str], str]

_SARIF_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


def plain(text: str, style: str) -> str:
    """The style of a pipe: none."""
    return text


def text(report: Report, style: Style = plain) -> Iterator[str]:
    """Yield each finding with the line of code that it is about."""
    lines: list[str] = []
    previous = ""
    for source, finding in report.shown:
        if source.path != previous:
            previous, lines = source.path, LINE_END.split(source.text)
        yield _headline(finding, style)
        yield from _frame(finding, lines, style)
        if finding.replacement and finding.replacement not in finding.message:
            yield f"    = use {finding.replacement}"
        if finding.differs:
            yield f"    = differs: {finding.differs}"
        if finding.verdict:
            yield f"    = fix: {finding.verdict}"
        yield ""


def concise(report: Report, style: Style = plain) -> Iterator[str]:
    """Yield one line for each finding."""
    for _, finding in report.shown:
        verdict = f" [fix: {finding.verdict}]" if finding.verdict else ""
        yield _headline(finding, style) + verdict


def as_json(report: Report) -> Iterator[str]:
    """Yield one JSON document."""
    document = {
        "schema": 1,
        "min_torch": _version(report.configuration.min_torch),
        "files": report.files,
        "findings": [
            {
                "path": finding.path,
                "row": finding.row,
                "column": finding.column + 1,
                "end_row": finding.end_row,
                "end_column": finding.end_column + 1,
                "rule": finding.rule,
                "level": finding.level,
                "name": finding.name,
                "replacement": finding.replacement,
                "message": finding.message,
                "differs": finding.differs,
                "verdict": finding.verdict,
            }
            for _, finding in report.shown
        ],
        "problems": [{"path": problem.path, "reason": problem.reason} for problem in report.problems],
        "allowed": report.allowed,
        "baseline": {"known": report.known, "gone": report.gone},
    }
    yield json.dumps(document, indent=1)


def github(report: Report) -> Iterator[str]:
    """Yield workflow commands that GitHub shows beside the changed lines."""
    for _, finding in report.shown:
        command = "error" if finding.level == "finding" else "notice"
        where = {
            "file": finding.path,
            "line": finding.row,
            "endLine": finding.end_row,
            "col": finding.column + 1,
            "endColumn": finding.end_column + 1,
            "title": finding.rule,
        }
        properties = ",".join(f"{key}={_escaped(str(value), True)}" for key, value in where.items())
        yield f"::{command} {properties}::{_escaped(finding.message, False)}"
    for problem in report.problems:
        yield f"::warning file={_escaped(problem.path, True)}::{_escaped(problem.reason, False)}"


def sarif(report: Report) -> Iterator[str]:
    """Yield one SARIF 2.1.0 document, which code scanning services read."""
    rules = sorted({finding.rule for _, finding in report.shown})
    described = {finding.rule: finding.message for _, finding in reversed(report.shown)}
    document = {
        "$schema": _SARIF_SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "compat-patches lint",
                        "version": __version__,
                        "rules": [
                            {
                                "id": rule,
                                "shortDescription": {"text": COMMENT_RULES.get(rule, described[rule])},
                            }
                            for rule in rules
                        ],
                    }
                },
                "columnKind": "unicodeCodePoints",
                "results": [_sarif_result(finding, rules) for _, finding in report.shown],
                "invocations": [
                    {
                        "executionSuccessful": True,
                        "toolExecutionNotifications": [
                            {
                                "level": "warning",
                                "message": {"text": f"{problem.path} {problem.reason}"},
                            }
                            for problem in report.problems
                        ],
                    }
                ],
            }
        ],
    }
    yield json.dumps(document, indent=1)


def statistics(report: Report) -> list[tuple[str, str, str, str]]:
    """Return rows of (count, level, rule, name), the most frequent first."""
    counted = sorted(report.by_rule().items(), key=lambda item: (-item[1], item[0]))
    return [(str(count), level, rule, name) for (rule, level, name), count in counted]


def summary(report: Report) -> str:
    """Return the last line: what was found, and what was not counted."""
    levels = [finding.level for _, finding in report.shown]
    findings, notes = levels.count("finding"), levels.count("note")
    parts = [
        f"{_count(findings, 'finding')} and {_count(notes, 'note')} in {_count(report.files, 'file')}",
        f"torch {_version(report.configuration.min_torch)} and newer ({report.configuration.min_torch_from})",
    ]
    if report.allowed:
        parts.append(f"{report.allowed} allowed")
    if report.known:
        parts.append(f"{report.known} known to the baseline")
    if report.gone:
        parts.append(f"{report.gone} of the baseline are mended, write it anew")
    if report.problems:
        parts.append(f"{_count(len(report.problems), 'file')} passed over")
    return "; ".join(parts)


def _headline(finding: Finding, style: Style) -> str:
    where = f"{finding.path}:{finding.row}:{finding.column + 1}:"
    level = "" if finding.level == "finding" else "note: "
    colour = "red" if finding.level == "finding" else "cyan"
    return f"{style(where, 'bold')} {style(finding.rule, colour)}: {level}{finding.message}"


def _frame(finding: Finding, lines: list[str], style: Style) -> Iterator[str]:
    number = str(finding.row)
    line = lines[finding.row - 1]
    end = finding.end_column if finding.end_row == finding.row else len(line.rstrip("\\ "))
    # Tabs stay tabs under a tab, so that the marks stand below what they mark in every editor.
    indent = "".join("\t" if character == "\t" else " " for character in line[: finding.column])
    marks = "^" * max(1, end - finding.column)
    yield f"{' ' * len(number)} |"
    yield f"{number} | {line}"
    yield f"{' ' * len(number)} | {indent}{style(marks, 'red' if finding.level == 'finding' else 'cyan')}"


def _sarif_result(finding: Finding, rules: list[str]) -> dict[str, object]:
    return {
        "ruleId": finding.rule,
        "ruleIndex": rules.index(finding.rule),
        "level": "error" if finding.level == "finding" else "note",
        "message": {"text": finding.message},
        "locations": [
            {
                "physicalLocation": {
                    "artifactLocation": {"uri": _uri(finding.path)},
                    "region": {
                        "startLine": finding.row,
                        "startColumn": finding.column + 1,
                        "endLine": finding.end_row,
                        "endColumn": finding.end_column + 1,
                    },
                }
            }
        ],
    }


def _uri(path: str) -> str:
    return Path(path).as_uri() if os.path.isabs(path) else quote(path.replace(os.sep, "/"))


def _escaped(value: str, in_property: bool) -> str:
    value = value.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
    return value.replace(":", "%3A").replace(",", "%2C") if in_property else value


def _version(version: tuple[int, int]) -> str:
    return f"{version[0]}.{version[1]}"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
