"""A baseline: the findings that a project starts with, so that only new ones count.

A finding is known by its file, rule and the text of its line, and not by the line's number, which every
change above it moves. Equal lines are counted.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from compat_patches.lint.analysis import LINE_END
from compat_patches.lint.errors import LintError
from compat_patches.lint.findings import Finding
from compat_patches.lint.sources import Source

_Key = tuple[str, str, str]


class Baseline:
    """The findings of a baseline file that have not been met yet."""

    def __init__(self, path: Path) -> None:
        """Read `path`.

        Raises:
            LintError: it cannot be read, or is no baseline.
        """
        self.root = path.resolve().parent
        try:
            document = json.loads(path.read_text(encoding="utf-8"))
            if document["schema"] != 1:
                raise ValueError(f"schema {document['schema']!r}, expected 1")
            self._left: Counter[_Key] = Counter()
            for file, entries in document["findings"].items():
                for entry in entries:
                    self._left[(file, str(entry["rule"]), str(entry["line"]))] += int(entry["count"])
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise LintError(f"{path}: no baseline, or a broken one ({error}); --write-baseline makes one") from error

    def split(self, source: Source, findings: list[Finding]) -> tuple[list[Finding], list[Finding]]:
        """Return the findings of a file that are new, and those that the baseline knows."""
        new: list[Finding] = []
        known: list[Finding] = []
        for finding, key in _keyed(source, findings, self.root):
            if finding.level == "finding" and self._left[key] > 0:
                self._left[key] -= 1
                known.append(finding)
            else:
                new.append(finding)
        return new, known

    @property
    def gone(self) -> int:
        """How many findings of the baseline were not met: they are mended, it can be written anew."""
        return sum(self._left.values())


def write(path: Path, found: Iterable[tuple[Source, list[Finding]]]) -> int:
    """Write every finding to `path` and return how many there are.

    Raises:
        LintError: the file cannot be written.
    """
    counts: Counter[_Key] = Counter()
    root = path.resolve().parent
    for source, findings in found:
        counts.update(key for finding, key in _keyed(source, findings, root) if finding.level == "finding")
    files: dict[str, list[dict[str, object]]] = {}
    for (file, rule, line), count in sorted(counts.items()):
        files.setdefault(file, []).append({"rule": rule, "line": line, "count": count})
    try:
        path.write_text(json.dumps({"schema": 1, "findings": files}, indent=1) + "\n", encoding="utf-8")
    except OSError as error:
        raise LintError(f"{path}: the baseline cannot be written: {error.strerror}") from error
    return sum(counts.values())


def _keyed(source: Source, findings: list[Finding], root: Path) -> list[tuple[Finding, _Key]]:
    if not findings:
        return []
    lines = LINE_END.split(source.text)
    file = os.path.relpath(os.path.abspath(source.path), root).replace(os.sep, "/")
    return [
        (finding, (file, finding.rule, _fingerprint(f"{finding.name} {lines[finding.row - 1].strip()}")))
        for finding in findings
    ]


def _fingerprint(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]
