"""One run of `lint`: from paths and options to a report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from compat_patches.lint import baseline as baselines
from compat_patches.lint import sources as files
from compat_patches.lint.checking import Checked, check
from compat_patches.lint.config import Configuration
from compat_patches.lint.config import load as load_configuration
from compat_patches.lint.findings import Finding
from compat_patches.lint.processes import available_cores, map_in_processes
from compat_patches.lint.sources import Problem, Source
from compat_patches.lint.table import Table, load_table

# Below this, starting processes costs more than they save.
_FILES_WORTH_PROCESSES = 4000
_CHUNK = 500

Progress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Options:
    """What a command line says; see `compat-patches lint --help`."""

    paths: tuple[Path, ...]
    min_torch: tuple[int, int] | None = None
    config: Path | None = None
    tables: tuple[Path, ...] = ()
    baseline: Path | None = None
    everything: bool = False
    notes: bool = True
    ignore_baseline: bool = False


@dataclass
class Report:
    """The result of a run.

    Attributes:
        checked: each file that could hold a finding, with what counts there, in order.
        problems: the files that were passed over.
        files: how many Python files there were.
        allowed: how many findings a comment or the configuration allows.
        known: how many findings the baseline knows, and `gone` how many of it are mended.
    """

    configuration: Configuration
    table: Table
    checked: list[Checked]
    problems: list[Problem]
    files: int
    allowed: int = 0
    known: int = 0
    gone: int = 0
    shown: list[tuple[Source, Finding]] = field(default_factory=list)

    @property
    def failed(self) -> bool:
        return any(finding.level == "finding" for _, finding in self.shown)

    def by_rule(self) -> Counter[tuple[str, str, str]]:
        """Return how often each (rule, level, name) is shown."""
        return Counter((finding.rule, finding.level, finding.name) for _, finding in self.shown)


def run(options: Options, progress: Progress = lambda what, done, total: None) -> Report:
    """Look at all files under the paths and return what was found.

    Raises:
        LintError: the configuration, a table or a baseline is wrong, or a library of the extra is missing.
    """
    configuration = load_configuration(options.paths, options.config, options.min_torch)
    table = load_table([*configuration.extend, *options.tables])
    problems: list[Problem] = []
    paths = list(files.walk(options.paths, configuration.excludes, problems))
    sources = _candidates(paths, table, problems, progress)
    checked, unparsable = check(sources, table, configuration.min_torch)
    problems += unparsable
    report = Report(configuration, table, checked, problems, len(paths))
    _sift(report, options)
    return report


def _candidates(paths: Sequence[str], table: Table, problems: list[Problem], progress: Progress) -> list[Source]:
    found: list[Source] = []
    chunks = [paths[start : start + _CHUNK] for start in range(0, len(paths), _CHUNK)]
    done = 0
    for chunk, (sources, passed_over) in zip(chunks, _scan(chunks, len(paths), table), strict=True):
        found += sources
        problems += passed_over
        done += len(chunk)
        progress("Reading", done, len(paths))
    return found


def _scan(chunks: list[Sequence[str]], total: int, table: Table) -> Iterable[tuple[list[Source], list[Problem]]]:
    cores = available_cores()
    if total < _FILES_WORTH_PROCESSES or cores == 1:
        for chunk in chunks:
            yield files.candidates(chunk, table)
        return
    workers = min(cores, len(chunks))
    yield from map_in_processes(workers, files.candidates, chunks, [table] * len(chunks))


def _sift(report: Report, options: Options) -> None:
    """Take out what is allowed and what the baseline knows, and choose what is shown."""
    path = options.baseline or report.configuration.baseline
    if options.ignore_baseline:
        path = None
    baseline = baselines.Baseline(path) if path is not None else None
    levels = {"finding"} | ({"note"} if options.notes else set()) | ({"silent"} if options.everything else set())
    for checked in report.checked:
        here = checked.source.path
        report.allowed += len(checked.allowed)
        counting = []
        for finding in checked.findings:
            if report.configuration.allows(here, finding.rule):
                report.allowed += finding.level == "finding"
            else:
                counting.append(finding)
        if baseline is not None:
            counting, known = baseline.split(checked.source, counting)
            report.known += len(known)
        checked.findings = counting
        report.shown += [(checked.source, finding) for finding in counting if finding.level in levels]
    if baseline is not None:
        report.gone = baseline.gone
