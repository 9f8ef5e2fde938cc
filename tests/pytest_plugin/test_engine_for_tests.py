"""What the engine does for tests: wishes brought back, other circumstances, what stands beneath, and forgetting."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import pytest
import wrapt
from inner_project import HEADER, VICTIM, patch

from compat_patches import manifest
from compat_patches.engine import Engine
from compat_patches.errors import UnknownPatchError
from compat_patches.simulation import simulating
from compat_patches.target import slot_of

NOTHING: dict[str, Any] = {
    "torch": None,
    "build": None,
    "python": None,
    "accelerator": None,
    "versions": {},
    "markers": {},
}


def adds(number: int) -> Callable[[Any], Any]:
    def factory(original: Any) -> Any:
        @functools.wraps(original)
        def answer(*args: Any) -> Any:
            return original(*args) + number

        return answer

    return factory


@wrapt.decorator
def _proxy(wrapped: Any, instance: Any, args: Any, kwargs: Any) -> Any:
    return wrapped(*args, **kwargs) + 10


@pytest.fixture
def victim(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    victim, remedies = ModuleType("victim"), ModuleType("remedies")
    exec(VICTIM, vars(victim))
    vars(remedies).update(add_ten=adds(10), add_hundred=adds(100), proxies=lambda original: _proxy(original))
    monkeypatch.setitem(sys.modules, "victim", victim)
    monkeypatch.setitem(sys.modules, "remedies", remedies)
    return victim


@pytest.fixture
def engine(victim: ModuleType) -> Iterator[Engine]:
    engine = Engine()
    engine.open()
    text = HEADER + patch("ten", requires=["torch>=2.10,<2.11"]) + patch("hundred", using="remedies:add_hundred")
    engine.add(manifest.parse(text.encode(), "test"))
    yield engine
    engine.close()


def simulated(engine: Engine, **changes: Any) -> Any:
    return simulating(engine, **{**NOTHING, **changes})


def state(engine: Engine, name: str) -> str:
    return engine.status(name)[0].state


def test_a_simulation_applies_what_it_lets_through_and_undoes_what_it_refuses(
    engine: Engine, victim: ModuleType
) -> None:
    with simulated(engine, torch="2.13.0"):
        engine.start()
        assert victim.answer() == 101
        with simulated(engine, torch="2.10.0+cu128") as statuses:
            assert {status.id: status.state for status in statuses} == {"ten": "applied", "hundred": "applied"}
            assert victim.answer() == 111
        assert victim.answer() == 101
        assert "torch is 2.13.0, wanted torch>=2.10,<2.11" in engine.status("ten")[0].reason


@pytest.mark.parametrize(
    ("torch", "outcome"),
    [
        ("2.10.0", "applied"),
        ("2.10.1+xpu", "applied"),
        ("2.11.0", "wanted torch>=2.10,<2.11"),
        ("2.10.0a0+abc.nv25.11", "unproven on a pre-release"),
        ("parrots", "which PEP 440 cannot read"),
    ],
)
def test_windows_by_simulated_versions(engine: Engine, torch: str, outcome: str) -> None:
    with simulated(engine, torch=torch):
        engine.apply("ten")
        [status] = engine.status("ten")
        assert outcome in (status.state, status.reason) or outcome in status.reason


def test_a_simulation_keeps_what_it_does_not_change(engine: Engine, victim: ModuleType) -> None:
    engine.apply("hundred")
    entry = victim.answer
    with simulated(engine, torch="2.13.0"):
        assert victim.answer is entry
    assert victim.answer is entry


def test_simulations_nest_and_end_with_an_exception(engine: Engine) -> None:
    real = engine.circumstances
    with (
        pytest.raises(RuntimeError, match="in the body"),
        simulated(engine, torch="2.10.0", build="xpu"),
        simulated(engine, python="3.14", accelerator="xpu", versions={"triton": "9.9"}),
    ):
        assert engine.circumstances.torch == "2.10.0" and engine.circumstances.build == "xpu"
        assert engine.circumstances.markers["python_full_version"] == "3.14.0"
        assert engine.circumstances.accelerator == "xpu"
        assert engine.circumstances.version("triton") == "9.9"
        raise RuntimeError("in the body")
    assert engine.circumstances == real


@pytest.mark.parametrize("wrong", [{"build": "xpus"}, {"python": "three"}, {"python": "3"}])
def test_a_simulation_of_what_there_cannot_be(engine: Engine, wrong: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="expected one"):
        simulated(engine, **wrong)


def test_wishes_come_back(engine: Engine, victim: ModuleType) -> None:
    wishes = engine.wishes()
    engine.apply("hundred", force=True)
    engine.restore(wishes)
    assert victim.answer() == 1
    with engine.holding("hundred", wants=True):
        wishes = engine.wishes()
        engine.revert("hundred")
        assert victim.answer() == 1
        engine.restore(wishes)
        assert victim.answer() == 101
    assert victim.answer() == 1


def test_force_ends_with_who_asked_for_it(engine: Engine, victim: ModuleType) -> None:
    with simulated(engine, torch="2.13.0"):
        engine.start()
        with engine.holding("ten", wants=True, force=True):
            assert victim.answer() == 111
        # It is wanted on activation too, but not outside of its window.
        assert victim.answer() == 101
        assert state(engine, "ten") == "skipped"


def test_what_stands_beneath(engine: Engine, victim: ModuleType) -> None:
    original = victim.answer
    slot = slot_of(victim, "answer", "victim:answer")
    engine.apply("hundred")
    assert engine.beneath(slot) == (original, [])
    mine = victim.answer
    victim.answer = foreign = lambda: 7
    assert engine.beneath(slot) == (foreign, ["test/hundred"]) or engine.beneath(slot) == (foreign, [])
    victim.answer = original
    assert engine.beneath(slot) == (original, ["test/hundred"])
    victim.answer = mine
    assert engine.beneath(slot) == (original, [])


def test_a_manifest_is_forgotten(engine: Engine, victim: ModuleType) -> None:
    original = victim.answer
    engine.apply("hundred")
    engine.remove("test")
    assert victim.answer is original and engine.status() == []
    with pytest.raises(UnknownPatchError):
        engine.status("hundred")
    engine.remove("test")
    engine.add(manifest.parse((HEADER + patch("hundred", using="remedies:add_hundred")).encode(), "again"))
    engine.apply("hundred")
    assert victim.answer() == 101


def test_a_proxy_is_not_taken_for_a_function(engine: Engine, victim: ModuleType) -> None:
    original = victim.answer
    code, attributes = original.__code__, dict(vars(original))
    engine.add(
        manifest.parse((HEADER.replace("test", "other") + patch("proxy", using="remedies:proxies")).encode(), "other")
    )
    engine.apply("proxy")
    assert victim.answer() == 11
    engine.revert("proxy")
    # What is set on a proxy is set on what it wraps: the original would hand its calls to itself forever.
    assert victim.answer is original and original() == 1
    assert original.__code__ is code and vars(original) == attributes
