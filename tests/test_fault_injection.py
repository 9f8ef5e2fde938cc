"""Faults at random points of fresh processes; ``python tests/fault_injection.py --count 200`` tries more of them."""

from __future__ import annotations

from pathlib import Path

import pytest
from fault_injection import HOOKS, KINDS, OURS, Bench, Run, runs


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    return Bench(tmp_path_factory.mktemp("faults"))


def test_without_a_fault_everything_is_applied(bench: Bench) -> None:
    outcome = bench.start(Run("none", 1, "Exception", ""), with_us=True)
    assert outcome.status == 0, outcome.errors
    assert outcome.report is not None
    states = {name: state for name, state, _ in outcome.report["statuses"]}
    # Undone and applied again, each env patch has nothing to do the second time only where it is set for good.
    assert set(states.values()) == {"applied"}, states


@pytest.mark.slow
@pytest.mark.parametrize("run", runs(36, seed=7), ids=lambda run: f"{run.kind} in {run.point}, {run.number}")
def test_a_process_with_a_fault_exits_as_without_us_and_has_its_report(bench: Bench, run: Run) -> None:
    assert bench.faults_of(run) == []


def test_the_runs_try_each_kind_at_each_point() -> None:
    tried = {(run.point, run.kind) for run in runs(36, seed=7)}
    assert tried == {(point, kind) for point in (*OURS, *HOOKS) for kind in KINDS}


def test_a_fault_that_stops_the_program_would_be_noticed(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    # An implementation that changes what the program prints.
    text = (tmp_path / "faulty.toml").read_text().replace('"pkg.one:f"', '"pkg.one:plain"')
    (tmp_path / "faulty.toml").write_text(text.replace('"impl_one:factory"', '"impl_one:spoils"'))
    with (tmp_path / "impl_one.py").open("a") as file:
        file.write("def spoils(original):\n    return lambda *args: 'spoilt'\n")
    (fault,) = bench.faults_of(Run("none", 1, "Exception", ""))
    assert "pkg.one spoilt" in fault
