"""From sources to findings: ruff for all of them, our own analysis where ruff does not see enough."""

from __future__ import annotations

import re
from collections.abc import Iterable

from compat_patches.lint import suppressions
from compat_patches.lint.analysis import LINE_END, Analysis
from compat_patches.lint.findings import Finding, finding_of
from compat_patches.lint.processes import available_cores, map_in_processes
from compat_patches.lint.resolving import MODULE, Resolved, Ruff
from compat_patches.lint.sources import Problem, Source
from compat_patches.lint.table import Table

# Below this, starting processes costs more than they save.
_CHARACTERS_WORTH_PROCESSES = 1_000_000

# A text that may mean something which ruff does not follow. Too many matches only cost time.
# torch.version.cuda is a text, and the one thing called cuda that is often asked for by getattr.
_BEYOND_RUFF = r"""\((?:\s|target\s*=)*["']torch\.cuda[\w.]*["']
    |\bgetattr\(\s*(?![\w.]*\bversion\b)[\w.]+\s*,\s*["'](?:{taken})["']
    |\b(?:import_module|importorskip|__import__|LazyLoader)\([^)]*["']torch\b
    |^[ \t]*global\b[^\n#]*\btorch\b
    |^[ \t]*torch[ \t]*(?::[^=\n]*)?=[^=]"""
# It binds `torch`, as any other import of a part of torch does.
_PLAIN_IMPORT = re.compile(r"\s*import torch\.cuda\s*(#.*)?")
_REPLACED = re.compile(r"(?::[^=]*)?=(?!=)|,[^=(]*=(?!=)")
_PLAIN_ASSIGNMENT = re.compile(r"[\w.]+\s*(?::[^=]*)?:?=\s*\(?$")


class Checked:
    """What was found in one file: the findings that count, and those that a comment allows."""

    def __init__(self, source: Source, findings: list[Finding], table: Table) -> None:
        self.source = source
        self.findings, self.allowed = suppressions.apply(source, findings, table)


def check(sources: list[Source], table: Table, min_torch: tuple[int, int]) -> tuple[list[Checked], list[Problem]]:
    """Return what is found in each source, in order, and the files that do not parse.

    Raises:
        LintError: ruff is missing or failed.
    """
    beyond_ruff = _beyond_ruff(table)
    with Ruff([source.path for source in sources], table) as ruff:
        # ruff has threads of its own: what needs our analysis anyway is analysed meanwhile.
        first = [source for source in sources if beyond_ruff.search(source.text)]
        analysed = _analyse_all(first, table, min_torch)
        result = ruff.result()
    second = [
        source
        for source in sources
        if source.path not in analysed
        and source.path not in result.unparsable
        and (result.crashed or _any_needs_analysis(result.resolved.get(source.path, []), source))
    ]
    analysed |= _analyse_all(second, table, min_torch)
    checked: list[Checked] = []
    problems: list[Problem] = []
    for source in sources:
        resolved = result.resolved.get(source.path, [])
        found: list[Finding] | Problem
        if source.path in result.unparsable:
            found = Problem(source.path, result.unparsable[source.path])
        elif source.path in analysed:
            found = analysed[source.path]
        else:
            found = [
                finding_of(source.path, place.name, _position(place), table, min_torch)
                for place in resolved
                if place.name != MODULE
            ]
        if isinstance(found, Problem):
            problems.append(found)
        else:
            checked.append(Checked(source, _sorted(found), table))
    return checked, problems


def findings_of(analysis: Analysis, path: str, table: Table, min_torch: tuple[int, int]) -> list[Finding]:
    """Return the findings of an analysed module."""
    return [
        finding_of(
            path,
            use.name,
            (use.row, use.column, use.end_row, use.end_column),
            table,
            min_torch,
            patched=use.via == "patch",
        )
        for use in analysis.uses
    ]


def _beyond_ruff(table: Table) -> re.Pattern[str]:
    # What is taken from torch.cuda by getattr comes to light through torch.cuda itself.
    names = [name.split(".") for name in table.by_name]
    taken = {part for parts in names for part in parts[1:-1]}
    taken |= {parts[-1] for parts in names if parts[:2] != MODULE.split(".")}
    pattern = _BEYOND_RUFF.format(taken="|".join(sorted(map(re.escape, taken))))
    return re.compile(pattern, re.MULTILINE | re.VERBOSE)


def _analyse_all(sources: list[Source], table: Table, min_torch: tuple[int, int]) -> dict[str, list[Finding] | Problem]:
    paths = [source.path for source in sources]
    cores = available_cores()
    if sum(len(source.text) for source in sources) < _CHARACTERS_WORTH_PROCESSES or cores == 1:
        return {source.path: _analyse(source, table, min_torch) for source in sources}
    tables, versions = [table] * len(sources), [min_torch] * len(sources)
    results = map_in_processes(min(cores, len(sources)), _analyse, sources, tables, versions)
    return dict(zip(paths, results, strict=True))


def _analyse(source: Source, table: Table, min_torch: tuple[int, int]) -> list[Finding] | Problem:
    try:
        analysis = Analysis(source.text, table, source.package)
    except SyntaxError as error:
        return Problem(source.path, f"does not parse: line {error.lineno or 1}: {error.msg}")
    return findings_of(analysis, source.path, table, min_torch)


def _any_needs_analysis(resolved: list[Resolved], source: Source) -> bool:
    if not resolved:
        return False
    lines = LINE_END.split(source.text)
    return any(_needs_analysis(place, lines) for place in resolved)


def _needs_analysis(place: Resolved, lines: list[str]) -> bool:
    """Return whether a place that ruff found may bring others with it that ruff does not find.

    That is an import of the name itself, or a plain assignment of it to a variable; and of the module as a
    whole everything but an attribute of it.
    """
    first, last = lines[place.row - 1], lines[place.end_row - 1]
    before, after = first[: place.column], last[place.end_column :].lstrip()
    if place.name == MODULE and _PLAIN_IMPORT.fullmatch(before + first[place.column :]):
        return False
    if place.name == MODULE and first[place.column :].startswith("from "):
        # What it imports is reported on its own, unless that is everything.
        return "*" in last[: place.end_column]
    if re.search(r"\bimport\b", before):
        # `import torch.cuda.nvtx as nvtx` gives ruff all that it needs.
        return not first[place.column :].startswith(f"{MODULE}.")
    if place.row == place.end_row and "." not in first[place.column : place.end_column]:
        return True
    if place.name == MODULE:
        return not after.startswith(".")
    if _REPLACED.match(after) or before.lstrip().startswith("del "):
        return True
    return not after.startswith(("(", ".")) and _PLAIN_ASSIGNMENT.search(before) is not None


def _position(place: Resolved) -> tuple[int, int, int, int]:
    return place.row, place.column, place.end_row, place.end_column


def _sorted(findings: Iterable[Finding]) -> list[Finding]:
    return sorted(set(findings), key=lambda finding: (finding.position, finding.name))
