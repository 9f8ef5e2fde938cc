"""Each snippet of the table: what is found, what it becomes, and that the second time changes nothing."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

import pytest

pytest.importorskip("ruff")
pytest.importorskip("libcst")

from lint_snippets import SNIPPETS, Snippet

from compat_patches.lint import fixing, running
from compat_patches.lint.findings import Finding
from compat_patches.lint.planning import Verdict


@dataclass
class Outcome:
    found: list[Finding]
    text: str
    verdicts: list[Verdict]
    found_afterwards: list[Finding]
    text_afterwards: str


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Outcome]:
    """Run all snippets of a min-torch at once, as files of one folder."""
    by_version: dict[tuple[int, int], list[Snippet]] = defaultdict(list)
    for snippet in SNIPPETS:
        by_version[snippet.min_torch].append(snippet)
    outcomes = {}
    for version, snippets in by_version.items():
        folder = tmp_path_factory.mktemp("snippets")
        paths = {snippet.name: folder / f"snippet_{number}.py" for number, snippet in enumerate(snippets)}
        for snippet in snippets:
            paths[snippet.name].write_bytes(snippet.code.encode())
        options = running.Options((folder,), version)
        report = running.run(options)
        assert not report.problems
        fixed = _fix_and_write(report)
        again = running.run(options)
        twice = _fix_and_write(again)
        for snippet in snippets:
            path = str(paths[snippet.name])
            outcomes[snippet.name] = Outcome(
                [finding for _, finding in report.shown if finding.path == path],
                fixed[path].text if path in fixed else snippet.code,
                fixed[path].verdicts if path in fixed else [],
                [finding for _, finding in again.shown if finding.path == path],
                twice[path].text if path in twice else Path(path).read_bytes().decode(),
            )
    return outcomes


def _fix_and_write(report: running.Report) -> dict[str, fixing.Fixed]:
    results = {}
    for result in fixing.fix(report):
        assert isinstance(result, fixing.Fixed), result
        assert fixing.write(result) is None
        results[result.source.path] = result
    return results


def _described(findings: list[Finding]) -> list[str]:
    return [
        f"{finding.row} {finding.name or finding.rule}{' note' if finding.level == 'note' else ''}"
        for finding in findings
    ]


def test_names_are_unique_and_there_are_enough() -> None:
    names = [snippet.name for snippet in SNIPPETS]
    assert len(set(names)) == len(names)
    assert len(names) >= 60


@pytest.mark.parametrize("snippet", SNIPPETS, ids=lambda snippet: snippet.name)
def test_finds_exactly_what_is_there(snippet: Snippet, outcomes: dict[str, Outcome]) -> None:
    assert _described(outcomes[snippet.name].found) == list(snippet.found)


@pytest.mark.parametrize("snippet", SNIPPETS, ids=lambda snippet: snippet.name)
def test_rewrites_exactly_what_is_safe(snippet: Snippet, outcomes: dict[str, Outcome]) -> None:
    outcome = outcomes[snippet.name]
    assert outcome.text == (snippet.code if snippet.fixed is None else snippet.fixed)
    reasons = [verdict.reason for verdict in outcome.verdicts if not verdict.rewritten]
    assert len(reasons) == len(snippet.left), reasons
    for reason, expected in zip(reasons, snippet.left, strict=True):
        assert expected in reason


@pytest.mark.parametrize("snippet", SNIPPETS, ids=lambda snippet: snippet.name)
def test_twice_is_once_and_only_what_was_refused_is_left(snippet: Snippet, outcomes: dict[str, Outcome]) -> None:
    outcome = outcomes[snippet.name]
    assert outcome.text_afterwards == outcome.text
    refused = sorted(verdict.name for verdict in outcome.verdicts if not verdict.rewritten)
    left = sorted(finding.name for finding in outcome.found_afterwards if finding.level == "finding" and finding.name)
    assert left == refused
