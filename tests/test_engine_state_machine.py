"""Whatever is done in whatever order: each patch acts once where it is applied, and nothing is left where it is not.

The environment variable ``STATE_MACHINE_EXAMPLES`` says how many examples are run, of up to 40 steps each. Where it is
not set, as in CI, each machine runs 350 of them, which are 10,500 steps and more; the test fails where they are fewer.
With ``CI`` set Hypothesis draws the same examples every time; to search by hand::

    STATE_MACHINE_EXAMPLES=5000 pytest --hypothesis-seed=random -rP tests/test_engine_state_machine.py
"""

from __future__ import annotations

import importlib
import inspect
import itertools
import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from standins import IMPLEMENTATION, World, waited_for

WORTH = {"one": 1, "ten": 10, "hundred": 100}
FOREIGN = 1000
EXAMPLES = int(os.environ.get("STATE_MACHINE_EXAMPLES", "350"))
STEPS = 40
NAMES = st.sampled_from(sorted(WORTH))
PLACES = st.sampled_from([0, 1])


class Foreign(NamedTuple):
    """A function of somebody else's, what it was put on, and whether it calls that."""

    function: Any
    inner: Any
    calls: bool


class Context(NamedTuple):
    """An open ``with``; one that somebody who asked by name has passed over has nothing more to say."""

    manager: Any
    name: str
    wants: bool
    passed_over: bool = False


class WorldMachine(RuleBasedStateMachine):
    """An engine and a folder of modules for each example."""

    steps = 0

    def __init__(self) -> None:
        super().__init__()
        # The invariants are looked at once before the first step.
        type(self).steps -= 1
        self.before = waited_for()
        self.bytecode, sys.dont_write_bytecode = sys.dont_write_bytecode, True
        self.folder = Path(tempfile.mkdtemp())
        sys.path.insert(0, str(self.folder))
        self.world = World(self.folder)
        self.world.write("impl", IMPLEMENTATION)

    def count_the_step(self) -> None:
        type(self).steps += 1

    def end(self) -> None:
        sys.path.remove(str(self.folder))
        sys.dont_write_bytecode = self.bytecode
        for name in self.world.written:
            sys.modules.pop(name, None)
        shutil.rmtree(self.folder)


class Machine(WorldMachine):
    """The model is a set of ids that are applied, and the foreign layers on top of the function.

    A foreign layer that does not say what it wraps may or may not call what is beneath it. Beneath one that does not,
    and where one came after the original had been put back, a patch that is applied acts once or, overlaid, not at all.
    """

    def __init__(self) -> None:
        super().__init__()
        self.world.write("target", "def f(): return 0")
        self.wanted = set(WORTH)
        self.foreign: list[Foreign] = []
        self.lost: set[str] = set()
        self.contexts: list[Context] = []
        self.world.declare(
            *(
                {"id": name, "target": "target:f", "action": "wrap", "using": f"impl:add_{name}"}
                for name in ("one", "ten", "hundred")
            )
        )

    @property
    def target(self) -> Any:
        return sys.modules.get("target")

    def acting(self) -> set[str]:
        acting = set(self.wanted)
        for context in self.contexts:
            if not context.passed_over:
                (acting.add if context.wants else acting.discard)(context.name)
        return acting

    def pass_over(self, name: str) -> None:
        self.contexts = [
            context._replace(passed_over=True) if context.name == name else context for context in self.contexts
        ]

    def settled(self, name: str) -> None:
        if not self.foreign:
            self.lost.discard(name)

    @rule(name=NAMES)
    def apply(self, name: str) -> None:
        self.pass_over(name)
        self.wanted.add(name)
        self.world.engine.apply(name)
        self.settled(name)

    @rule(name=NAMES)
    def revert(self, name: str) -> None:
        self.pass_over(name)
        self.wanted.discard(name)
        self.world.engine.revert(name)
        self.settled(name)

    @rule(name=NAMES, wants=st.booleans())
    def enter(self, name: str, wants: bool) -> None:
        context = self.world.engine.holding(name, wants=wants)
        context.__enter__()
        self.contexts.append(Context(context, name, wants))
        self.settled(name)

    @precondition(lambda self: self.contexts)
    @rule(data=st.data())
    def leave(self, data: st.DataObject) -> None:
        context = data.draw(st.sampled_from(self.contexts))
        self.contexts.remove(context)
        context.manager.__exit__(None, None, None)
        self.settled(context.name)

    @initialize(loaded=st.booleans())
    def begin(self, loaded: bool) -> None:
        if loaded:
            self.load()

    @precondition(lambda self: self.target is None)
    @rule()
    def load(self) -> None:
        importlib.import_module("target")

    @precondition(lambda self: self.target is not None)
    @rule()
    def reload(self) -> None:
        self.foreign.clear()
        self.lost.clear()
        importlib.reload(self.target)

    @precondition(lambda self: self.target is not None and len(self.foreign) < 3)
    @rule(tells=st.booleans(), calls=st.sampled_from([True, True, True, False]))
    def wrap_by_hand(self, tells: bool, calls: bool) -> None:
        inner = self.target.f

        def theirs() -> int:
            return (inner() if calls else 0) + FOREIGN

        if tells:
            theirs.__wrapped__ = inner  # type: ignore[attr-defined]
        self.target.f = theirs
        self.foreign.append(Foreign(theirs, inner, calls))

    @precondition(lambda self: self.foreign and self.target.f is self.foreign[-1].function)
    @rule()
    def unwrap_by_hand(self) -> None:
        self.target.f = self.foreign.pop().inner

    @precondition(lambda self: self.target is not None and not self.foreign)
    @rule()
    def put_the_original_back(self) -> None:
        self.target.f = inspect.unwrap(self.target.f)
        self.lost |= self.acting()

    @rule()
    def verify(self) -> None:
        self.world.engine.verify()

    @invariant()
    def each_patch_acts_once_where_it_is_applied(self) -> None:
        self.count_the_step()
        if self.target is None:
            return
        states = {status.id: status.state for status in self.world.engine.status()}
        reached = list(itertools.takewhile(lambda foreign: foreign.calls, reversed(self.foreign)))
        hidden = len(reached) < len(self.foreign)
        result = self.target.f()
        assert result // FOREIGN == len(reached) + hidden
        for name, worth in WORTH.items():
            times = result // worth % 10
            if name not in self.acting():
                assert times == 0
            elif states[name] == "applied" or not (hidden or name in self.lost):
                assert times == 1
            else:
                assert times <= 1

    @invariant()
    def states_say_so(self) -> None:
        for status in self.world.engine.status():
            if self.target is None:
                assert status.state == ("pending" if status.id in self.acting() else "reverted")
            elif status.id in self.acting():
                assert status.state in ("applied", "overlaid", *(["lost"] if status.id in self.lost else []))
            else:
                assert status.state in ("reverted", "overlaid")
            assert status.reason or status.state in ("applied", "reverted")

    def teardown(self) -> None:
        target = self.target
        try:
            while self.foreign and target.f is self.foreign[-1].function:
                target.f = self.foreign.pop().inner
            for context in self.contexts:
                context.manager.__exit__(None, None, None)
            self.world.engine.close()
            self.world.engine.verify()
            if target is not None and not self.foreign:
                assert target.f() == 0
                assert target.f.__closure__ is None and not hasattr(target.f, "__wrapped__")
                assert self.world.layers == 0
        finally:
            self.end()
        assert waited_for() == self.before


class PairMachine(WorldMachine):
    """Patches of two slots act in both or in none, whatever is on top of either."""

    def __init__(self) -> None:
        super().__init__()
        self.modules = [
            self.world.load("target", "def f(): return 0"),
            self.world.load("user", "from target import f"),
        ]
        self.original = self.modules[0].f
        self.foreign: list[list[Foreign]] = [[], []]
        self.wanted = set(WORTH)
        both = {"target": "target:f", "also_bind": ["user:f"], "action": "wrap"}
        self.world.declare(*({"id": name, "using": f"impl:add_{name}", **both} for name in WORTH))

    @rule(name=NAMES)
    def apply(self, name: str) -> None:
        self.wanted.add(name)
        state = self.world.engine.apply(name)[0].state
        # Where others have wrapped the two apart there is no one object to wrap any more.
        assert state in ("applied", "overlaid") or (state == "failed" and any(self.foreign))

    @rule(name=NAMES)
    def revert(self, name: str) -> None:
        self.wanted.discard(name)
        self.world.engine.revert(name)

    @rule(place=PLACES, tells=st.booleans())
    def wrap_by_hand(self, place: int, tells: bool) -> None:
        inner = self.modules[place].f

        def theirs() -> int:
            return inner() + FOREIGN

        if tells:
            theirs.__wrapped__ = inner  # type: ignore[attr-defined]
        self.modules[place].f = theirs
        self.foreign[place].append(Foreign(theirs, inner, True))

    @rule(place=PLACES)
    def unwrap_by_hand(self, place: int) -> None:
        if self.foreign[place] and self.modules[place].f is self.foreign[place][-1].function:
            self.modules[place].f = self.foreign[place].pop().inner

    @rule()
    def verify(self) -> None:
        self.world.engine.verify()

    @invariant()
    def each_patch_acts_in_both_or_in_none(self) -> None:
        self.count_the_step()
        results = [module.f() for module in self.modules]
        assert [result // FOREIGN for result in results] == list(map(len, self.foreign))
        for status in self.world.engine.status():
            # What failed is called so until it is applied.
            acts = status.id in self.wanted and status.state != "failed"
            assert status.state in (("applied", "overlaid") if acts else ("reverted", "overlaid", "failed"))
            assert [result // WORTH[status.id] % 10 for result in results] == [acts, acts]

    def teardown(self) -> None:
        try:
            self.world.engine.close()
            for module, foreign in zip(self.modules, self.foreign, strict=True):
                while foreign and module.f is foreign[-1].function:
                    module.f = foreign.pop().inner
                    self.world.engine.verify()
            assert self.foreign == [[], []]
            assert [module.f for module in self.modules] == [self.original] * 2
            assert self.world.layers == 0
        finally:
            self.end()
        assert waited_for() == self.before


@pytest.mark.parametrize("machine", [Machine, PairMachine])
def test_whatever_is_done_in_whatever_order(
    machine: type[WorldMachine], record_property: Callable[[str, Any], None]
) -> None:
    machine.steps = 0
    # Not its TestCase, which says nothing of how much it has done.
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=EXAMPLES, stateful_step_count=STEPS, deadline=None, suppress_health_check=list(HealthCheck)
        ),
    )
    record_property("steps", machine.steps)
    print(f"{machine.__name__}: {machine.steps:,} steps")
    # Hypothesis ends some of the examples early.
    assert machine.steps >= EXAMPLES * STEPS * 3 // 4
