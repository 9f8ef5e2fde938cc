"""Whatever is done in whatever order: each patch acts once where it is applied, and nothing is left where it is not."""

from __future__ import annotations

import importlib
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from standins import IMPLEMENTATION, World, waited_for

WORTH = {"one": 1, "ten": 10, "hundred": 100}
FOREIGN = 1000
NAMES = st.sampled_from(sorted(WORTH))


class Machine(RuleBasedStateMachine):
    """The model is a set of ids that are applied, and the number of foreign layers on top of the function."""

    def __init__(self) -> None:
        super().__init__()
        self.before = waited_for()
        self.bytecode, sys.dont_write_bytecode = sys.dont_write_bytecode, True
        self.folder = Path(tempfile.mkdtemp())
        sys.path.insert(0, str(self.folder))
        self.world = World(self.folder)
        self.world.write("impl", IMPLEMENTATION)
        self.world.write("target", "def f(): return 0")
        self.wanted = set(WORTH)
        self.foreign: list[Any] = []
        self.contexts: list[tuple[Any, str, bool]] = []
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
        for _, name, wants in self.contexts:
            (acting.add if wants else acting.discard)(name)
        return acting

    @rule(name=NAMES)
    def apply(self, name: str) -> None:
        self.contexts = [context for context in self.contexts if context[1] != name]
        self.wanted.add(name)
        self.world.engine.apply(name)

    @rule(name=NAMES)
    def revert(self, name: str) -> None:
        self.contexts = [context for context in self.contexts if context[1] != name]
        self.wanted.discard(name)
        self.world.engine.revert(name)

    @rule(name=NAMES, wants=st.booleans())
    def enter(self, name: str, wants: bool) -> None:
        context = self.world.engine.holding(name, wants=wants)
        context.__enter__()
        self.contexts.append((context, name, wants))

    @precondition(lambda self: self.contexts)
    @rule(data=st.data())
    def leave(self, data: st.DataObject) -> None:
        context = data.draw(st.sampled_from(self.contexts))
        self.contexts.remove(context)
        context[0].__exit__(None, None, None)

    @precondition(lambda self: self.target is None)
    @rule()
    def load(self) -> None:
        importlib.import_module("target")

    @precondition(lambda self: self.target is not None)
    @rule()
    def reload(self) -> None:
        self.foreign.clear()
        importlib.reload(self.target)

    @precondition(lambda self: self.target is not None and len(self.foreign) < 3)
    @rule(tells=st.booleans())
    def wrap_by_hand(self, tells: bool) -> None:
        inner = self.target.f

        def theirs() -> int:
            return inner() + FOREIGN

        if tells:
            theirs.__wrapped__ = inner  # type: ignore[attr-defined]
        self.target.f = theirs
        self.foreign.append((theirs, inner))

    @precondition(lambda self: self.foreign and self.target.f is self.foreign[-1][0])
    @rule()
    def unwrap_by_hand(self) -> None:
        _, self.target.f = self.foreign.pop()

    @rule()
    def verify(self) -> None:
        self.world.engine.verify()

    @invariant()
    def each_patch_acts_once_where_it_is_applied(self) -> None:
        if self.target is not None:
            expected = sum(WORTH[name] for name in self.acting()) + FOREIGN * len(self.foreign)
            assert self.target.f() == expected

    @invariant()
    def states_say_so(self) -> None:
        for status in self.world.engine.status():
            if self.target is None:
                assert status.state == ("pending" if status.id in self.acting() else "reverted")
            elif status.id in self.acting():
                assert status.state in ("applied", "overlaid")
            else:
                assert status.state in ("reverted", "overlaid")
            assert status.reason or status.state in ("applied", "reverted")

    def teardown(self) -> None:
        target = self.target
        try:
            while self.foreign and target.f is self.foreign[-1][0]:
                _, target.f = self.foreign.pop()
            self.world.engine.close()
            self.world.engine.verify()
            if target is not None and not self.foreign:
                assert target.f() == 0
                assert target.f.__closure__ is None and not hasattr(target.f, "__wrapped__")
                assert self.world.layers == 0
        finally:
            sys.path.remove(str(self.folder))
            sys.dont_write_bytecode = self.bytecode
            for name in ("target", "impl"):
                sys.modules.pop(name, None)
            shutil.rmtree(self.folder)
        assert waited_for() == self.before


Machine.TestCase.settings = settings(
    max_examples=200, stateful_step_count=15, deadline=None, suppress_health_check=list(HealthCheck)
)
TestMachine = Machine.TestCase
