"""One run of `fix`: the files with findings, each rewritten in a process of its own, shown or written."""

from __future__ import annotations

import difflib
import os
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace

from compat_patches.lint.analysis import Analysis
from compat_patches.lint.findings import is_rewritable
from compat_patches.lint.planning import Position, Verdict, plan
from compat_patches.lint.processes import available_cores, map_in_processes
from compat_patches.lint.running import Progress, Report
from compat_patches.lint.sources import Problem, Source, read
from compat_patches.lint.table import Table

# Below this, starting processes costs more than they save.
_FILES_WORTH_PROCESSES = 8


@dataclass(frozen=True)
class Fixed:
    """What became of one file.

    Attributes:
        text: the text after the rewrites, the same as the source's if there are none.
        verdicts: one for each of its findings, in order.
    """

    source: Source
    text: str
    verdicts: list[Verdict]

    @property
    def changed(self) -> bool:
        return self.text != self.source.text

    def diff(self) -> str:
        """Return the change as a unified diff that `patch` and `git apply` take."""
        lines = difflib.unified_diff(
            self.source.text.splitlines(keepends=True),
            self.text.splitlines(keepends=True),
            f"a/{self.source.path}",
            f"b/{self.source.path}",
        )
        return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)


def fix(report: Report, progress: Progress = lambda what, done, total: None) -> Iterator[Fixed | Problem]:
    """Yield what becomes of each file of `report` that has findings, in order. Nothing is written.

    Raises:
        LintError: libcst is not installed, or a process was killed.
    """
    # Missing libraries are told before any work, and once.
    from compat_patches.lint import rewriting  # noqa: F401

    tasks: list[tuple[Source, dict[Position, str]]] = []
    for checked in report.checked:
        wanted = {
            finding.position: finding.name for finding in checked.findings if is_rewritable(finding, report.table)
        }
        if wanted:
            tasks.append((checked.source, wanted))
    cores = available_cores()
    if len(tasks) < _FILES_WORTH_PROCESSES or cores == 1:
        for number, (source, wanted) in enumerate(tasks, 1):
            yield _fix_one(source, wanted, report.table)
            progress("Rewriting", number, len(tasks))
        return
    sources, positions = zip(*tasks, strict=True)
    tables = [report.table] * len(tasks)
    results = map_in_processes(min(cores, len(tasks)), _fix_one, sources, positions, tables)
    for number, result in enumerate(results, 1):
        yield result
        progress("Rewriting", number, len(tasks))


def _fix_one(source: Source, wanted: dict[Position, str], table: Table) -> Fixed | Problem:
    from compat_patches.lint.rewriting import CannotRewrite, rewrite

    try:
        analysis = Analysis(source.text, table, source.package)
        planned = plan(analysis, source.path, wanted)
        text = rewrite(source.text, analysis.lines, analysis.tree.module, planned)
    except (SyntaxError, CannotRewrite) as error:
        return Problem(source.path, f"cannot be rewritten: {error}")
    except RecursionError:
        return Problem(source.path, "cannot be rewritten: it is nested too deeply for libcst")
    return Fixed(source, text, planned.verdicts)


def add_verdicts(report: Report, progress: Progress = lambda what, done, total: None) -> None:
    """Say in each finding of `report` what `fix` would do about it.

    Raises:
        LintError: libcst is not installed.
    """
    verdicts: dict[tuple[str, Position], str] = {}
    for result in fix(report, progress):
        if isinstance(result, Fixed):
            for verdict in result.verdicts:
                verdicts[(result.source.path, verdict.position)] = verdict.reason or "rewritten"
    report.shown = [
        (source, replace(finding, verdict=verdicts.get((finding.path, finding.position))))
        for source, finding in report.shown
    ]


def write(fixed: Fixed) -> Problem | None:
    """Write the new text in the place of the file, whole or not at all; return why not, if it was not.

    A file that somebody changed meanwhile is left alone. A link keeps leading to the file that it leads to,
    the file keeps its permissions, and a byte-order mark stays.
    """
    path = os.path.realpath(fixed.source.path)
    content = read(path)
    if isinstance(content, Problem):
        return Problem(fixed.source.path, content.reason)
    mark = b"\xef\xbb\xbf" if content.startswith(b"\xef\xbb\xbf") else b""
    if content != mark + fixed.source.text.encode():
        return Problem(fixed.source.path, "changed while it was looked at, and was left alone")
    try:
        with tempfile.NamedTemporaryFile(dir=os.path.dirname(path), prefix=".compat-patches-", delete=False) as file:
            file.write(mark + fixed.text.encode())
        try:
            shutil.copymode(path, file.name)
            os.replace(file.name, path)
        except OSError:
            os.unlink(file.name)
            raise
    except OSError as error:
        return Problem(fixed.source.path, f"cannot be written: {error.strerror}")
    return None
