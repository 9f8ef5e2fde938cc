"""The whole of vLLM: every event accounted for, every file still compiles, and twice is once.

Needs the Python files of a vLLM wheel, in the folder that COMPAT_PATCHES_VLLM_TREE names:

    pip download --no-deps vllm==0.24.0 && unzip -q vllm-0.24.0-*.whl '*.py' -d vllm-0.24.0
"""

from __future__ import annotations

import ast
import io
import os
import re
import shutil
import tokenize
from pathlib import Path

import pytest

pytest.importorskip("ruff")
pytest.importorskip("libcst")

from compat_patches.lint import fixing, running
from compat_patches.lint.analysis import Analysis
from compat_patches.lint.resolving import MODULE, Ruff
from compat_patches.lint.sources import Source, candidates, walk
from compat_patches.lint.table import Table, load_table

TREE = os.environ.get("COMPAT_PATCHES_VLLM_TREE", "")
MIN_TORCH = (2, 11)

pytestmark = pytest.mark.skipif(not TREE, reason="COMPAT_PATCHES_VLLM_TREE names no folder")


@pytest.fixture(scope="module")
def table() -> Table:
    return load_table()


@pytest.fixture(scope="module")
def sources(table: Table) -> list[Source]:
    problems: list[object] = []
    found, unreadable = candidates(walk([Path(TREE)], lambda path: False, problems), table)  # type: ignore[arg-type]
    assert not problems and not unreadable
    return found


def test_ruff_and_our_own_analysis_agree_on_what_both_follow(sources: list[Source], table: Table) -> None:
    with Ruff([source.path for source in sources], table) as ruff:
        resolved = ruff.result().resolved
    compared = 0
    for source in sources:
        ours = {
            (use.name, use.row, use.column, use.end_row, use.end_column): use.via
            for use in Analysis(source.text, table, source.package).uses
            if use.name != MODULE
        }
        theirs = {
            (place.name, place.row, place.column, place.end_row, place.end_column)
            for place in resolved.get(source.path, [])
            if place.name != MODULE
        }
        assert theirs <= ours.keys(), source.path
        for place in ours.keys() - theirs:
            # What a variable holds, what was taken out of the module, and what is replaced by its name.
            assert ours[place] in ("variable", "from", "getattr", "import", "patch"), (source.path, place)
        compared += len(theirs)
    assert compared > 300


def test_every_event_that_a_search_finds_is_reported_or_is_no_code() -> None:
    report = running.run(running.Options((Path(TREE),), MIN_TORCH))
    reported = {(finding.path, finding.row) for _, finding in report.shown if finding.name == "torch.cuda.Event"}
    unaccounted, in_text, searched = [], 0, 0
    for path in walk([Path(TREE)], lambda path: False, []):
        text = Path(path).read_text(encoding="utf-8")
        for number, line in enumerate(text.split("\n"), 1):
            for match in re.finditer(r"\btorch\.cuda\.Event\b", line):
                searched += 1
                if (path, number) in reported:
                    continue
                if _is_text(text, number, match.start()):
                    in_text += 1
                else:
                    unaccounted.append((path, number, line))
    assert searched > 50
    assert unaccounted == []
    print(f"{searched} found by a search, {in_text} of them in comments and texts")


def _is_text(source: str, row: int, column: int) -> bool:
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type in (tokenize.COMMENT, tokenize.STRING) and token.start <= (row, column) < token.end:
            return True
    return False


def test_fix_leaves_files_that_compile_and_refuses_the_same_the_second_time(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    shutil.copytree(TREE, tree)
    options = running.Options((tree,), MIN_TORCH)
    refused: list[tuple[str, int, str]] = []
    rewritten = 0
    for result in fixing.fix(running.run(options)):
        assert isinstance(result, fixing.Fixed), result
        if result.changed:
            ast.parse(result.text)
            assert fixing.write(result) is None
        refused += [
            (result.source.path, verdict.position[0], verdict.name)
            for verdict in result.verdicts
            if not verdict.rewritten
        ]
        assert all(verdict.reason for verdict in result.verdicts if not verdict.rewritten)
        rewritten += sum(verdict.rewritten for verdict in result.verdicts)
    assert rewritten > 150
    again = running.run(options)
    left = [(finding.path, finding.row, finding.name) for _, finding in again.shown if finding.level == "finding"]
    # Lines do not move in vLLM, since none of its imports changes.
    assert sorted(left) == sorted(refused)
    for result in fixing.fix(again):
        assert isinstance(result, fixing.Fixed)
        assert not result.changed
        assert not any(verdict.rewritten for verdict in result.verdicts)
