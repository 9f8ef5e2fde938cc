"""The project's own code, as lint sees it."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("ruff")

from compat_patches.lint import running

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("folder", ["compat_patches", "examples", "benchmarks"])
def test_is_clean(folder: str) -> None:
    path = ROOT / folder
    if not any(path.rglob("*.py")):
        pytest.skip(f"there are no {folder}")
    report = running.run(running.Options((path,), (2, 15)))
    assert report.files > 0 and not report.problems
    assert [finding for _, finding in report.shown if finding.level == "finding"] == []
