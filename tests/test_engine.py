"""The engine: states, threads, interrupts, and what it costs to go round and round."""

from __future__ import annotations

import contextlib
import gc
import importlib
import itertools
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from standins import World, run_all, run_python

import compat_patches
from compat_patches import engine as engine_module
from compat_patches.errors import PatchError, UnknownPatchError
from compat_patches.layers import Layer, Layers
from compat_patches.target import ModuleSlot


@pytest.fixture
def target(world: World) -> Any:
    return world.load("target", "def f(): return 1\ndef g(): return 1\nclass Class:\n    def m(self): return 1")


# --- applying and undoing ------------------------------------------------------------------------------------------


def test_applying_a_thousand_times_from_eight_threads_leaves_one_layer(world: World, target: Any) -> None:
    world.declare({"id": "p", "target": "target:f", "action": "wrap", "using": "impl:add_one"}, start=False)
    original = target.f

    def apply() -> None:
        for _ in range(125):
            world.engine.apply("p")
            assert target.f() == 2

    run_all(*[apply] * 8)
    assert world.layers == 1
    world.engine.revert("p")
    assert target.f is original


def test_two_names_of_one_slot_are_patched_once(world: World) -> None:
    target = world.load("target", "class Class:\n    def f(self): return 1\nAlias = Class")
    world.wrap("target:Class.f", also_bind=["target:Alias.f"])
    assert (target.Class().f(), world.layers) == (2, 1)


def test_a_patch_is_applied_over_all_of_its_slots_or_none(world: World, target: Any) -> None:
    before = dict(vars(target))
    step = {"action": "wrap", "using": "impl:add_one"}
    world.declare(
        {"id": "p", "step": [{"target": "target:f", **step}, {"target": "target:absent", **step}]},
        {
            "id": "q",
            "step": [{"target": "target:f", **step}, {"target": "target:g", "action": "wrap", "using": "impl:fails"}],
        },
        {"id": "r", "step": [{"target": "target:f", **step}, {"target": "builtins:int.real", **step}]},
    )
    assert [status.state for status in world.engine.status()] == ["failed"] * 3
    assert (dict(vars(target)), world.layers) == (before, 0)


@pytest.mark.parametrize("number", range(4))
@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt, SystemExit, MemoryError])
def test_a_write_that_raises_midway_leaves_nothing_behind(
    world: World, target: Any, monkeypatch: pytest.MonkeyPatch, number: int, error: type[BaseException]
) -> None:
    before = dict(vars(target))
    put, calls = ModuleSlot.put, itertools.count()

    def broken(self: ModuleSlot, entry: Any) -> None:
        turn = next(calls)
        if turn == number // 2 and number % 2 == 0:
            raise error
        put(self, entry)
        if turn == number // 2 and number % 2 == 1:
            raise error

    monkeypatch.setattr(ModuleSlot, "put", broken)
    step = {"action": "wrap", "using": "impl:add_one"}
    with pytest.raises(KeyboardInterrupt) if error is KeyboardInterrupt else contextlib.nullcontext():
        world.declare({"id": "p", "step": [{"target": "target:f", **step}, {"target": "target:g", **step}]})
    monkeypatch.setattr(ModuleSlot, "put", put)
    assert (dict(vars(target)), world.layers) == (before, 0)
    assert world.engine.apply("p")[0].state == "applied"
    assert (target.f(), target.g()) == (2, 2)
    world.engine.revert("p")
    assert dict(vars(target)) == before


def test_undoing_what_is_pending_keeps_it_from_ever_firing(world: World) -> None:  # case 22
    world.wrap("late:f")
    status = world.engine.revert("p")[0]
    assert (status.state, status.reason) == ("reverted", "undone before it was applied")
    assert world.load("late", "def f(): return 1").f() == 1
    assert world.state() == "reverted"


def test_groups_and_unknown_names(world: World, target: Any) -> None:
    wrap = {"action": "wrap", "using": "impl:add_one", "groups": ["both"]}
    world.declare({"id": "p", "target": "target:f", **wrap}, {"id": "q", "target": "target:g", **wrap})
    world.engine.revert("both")
    assert (target.f(), target.g()) == (1, 1)
    with pytest.raises(UnknownPatchError, match="did you mean 'both'"):
        world.engine.apply("bothh")


def test_what_is_opt_in_waits_to_be_named(world: World, target: Any) -> None:
    wrap = {"action": "wrap", "using": "impl:add_one"}
    world.declare(
        {"id": "p", "target": "target:f", "enabled": False, **wrap},
        {"id": "q", "target": "target:f", "scope": "context", **wrap},
        {"id": "r", "target": "target:f", "irreversible": True, **wrap},
    )
    assert [status.state for status in world.engine.status()] == ["skipped"] * 3
    assert all(status.reason for status in world.engine.status())
    world.engine.apply("p")
    assert target.f() == 2
    assert world.engine.apply("r")[0].state == "applied"
    status = world.engine.revert("r")[0]
    assert (status.state, status.reason) == ("applied", "cannot be undone")


def test_force_passes_over_predicates_and_never_over_a_missing_target(world: World, target: Any) -> None:
    wrap = {"action": "wrap", "using": "impl:add_one", "requires": ["no-such-distribution>=1"]}
    world.declare({"id": "p", "target": "target:f", **wrap}, {"id": "q", "target": "target:absent", **wrap})
    assert world.reason("p") == "no-such-distribution is not installed, wanted no-such-distribution>=1"
    assert [status.state for status in world.engine.apply("p", "q", force=True)] == ["applied", "failed"]
    assert target.f() == 2


# --- contexts ------------------------------------------------------------------------------------------------------


def test_an_exception_within_contexts_undoes_everything(world: World, target: Any) -> None:  # case 21
    original, other = target.f, target.g
    wrap = {"action": "wrap", "scope": "context"}
    world.declare(
        {"id": "p", "target": "target:f", "using": "impl:add_one", **wrap},
        {"id": "q", "target": "target:g", "using": "impl:add_one", **wrap},
    )
    for error in (ValueError, KeyboardInterrupt, SystemExit, GeneratorExit):
        with pytest.raises(error), world.engine.holding("p", wants=True):
            assert (target.f(), target.g()) == (2, 1)
            with world.engine.holding("p", "q", wants=True):
                assert (target.f(), target.g(), world.layers) == (2, 2, 2)
                raise error
        assert (target.f is original, target.g is other, world.layers) == (True, True, 0)


def test_contexts_of_both_kinds_nest_and_overlap(world: World, target: Any) -> None:
    world.wrap("target:f")
    outer = world.engine.holding("p", wants=False)
    inner = world.engine.holding("p", wants=True)
    outer.__enter__()
    assert target.f() == 1
    inner.__enter__()
    assert target.f() == 2
    outer.__exit__(None, None, None)  # In the wrong order, as between threads.
    assert target.f() == 2
    inner.__exit__(None, None, None)
    assert (target.f(), world.layers) == (2, 1)


def test_a_context_that_the_garbage_collector_ends_in_the_middle_of_a_change_is_left_after_it(
    world: World, target: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = target.f
    world.wrap("target:f", scope="context")

    def drop_a_context() -> None:
        context = world.engine.holding("p", wants=True)
        context.__enter__()
        circle: list[Any] = [context]
        circle.append(circle)

    def collect_garbage(layers: Layers, layer: Layer) -> bool:
        found = holds(layers, layer)
        gc.collect()
        return found

    holds = Layers.holds
    drop_a_context()
    assert target.f() == 2
    with monkeypatch.context() as patched:
        patched.setattr(Layers, "holds", collect_garbage)
        assert world.engine.status("p")[0].state == "applied"
    assert (target.f is original, world.state(), world.layers) == (True, "reverted", 0)


def test_a_name_that_is_unknown_enters_nothing(world: World, target: Any) -> None:
    world.declare({"id": "p", "target": "target:f", "action": "wrap", "using": "impl:add_one", "scope": "context"})
    with pytest.raises(UnknownPatchError), world.engine.holding("p", "absent", wants=True):
        raise AssertionError("not reached")
    assert target.f() == 1


def test_contexts_in_eight_threads_leave_what_was_there(world: World, target: Any) -> None:  # case 21
    original = target.f
    world.declare({"id": "p", "target": "target:f", "action": "wrap", "using": "impl:add_one", "scope": "context"})

    def body() -> None:
        for _ in range(50):
            with world.engine.holding("p", wants=True):
                assert target.f() == 2

    run_all(*[body] * 8)
    assert (target.f is original, world.layers) == (True, 0)


# --- strictness ----------------------------------------------------------------------------------------------------


def test_what_is_strict_raises_and_applies_the_others(strict_world: World) -> None:  # case 28
    target = strict_world.load("target", "def f(): return 1\ndef g(): return 1")
    with pytest.raises(PatchError, match="test-1/p failed: RuntimeError: the patch is broken") as caught:
        strict_world.declare(
            {"id": "p", "target": "target:f", "action": "wrap", "using": "impl:fails"},
            {"id": "q", "target": "target:g", "action": "wrap", "using": "impl:add_one"},
        )
    assert isinstance(caught.value.__cause__, RuntimeError)
    assert (target.f(), target.g()) == (1, 2)


def test_what_is_strict_within_a_context_undoes_it(strict_world: World) -> None:
    target = strict_world.load("target", "def f(): return 1\ndef g(): return 1")
    context = {"action": "wrap", "scope": "context"}
    strict_world.declare(
        {"id": "p", "target": "target:f", "using": "impl:add_one", **context},
        {"id": "q", "target": "target:g", "using": "impl:fails", **context},
    )
    with pytest.raises(PatchError), strict_world.engine.holding("p", "q", wants=True):
        raise AssertionError("not reached")
    assert (target.f(), strict_world.layers) == (1, 0)


# --- threads -------------------------------------------------------------------------------------------------------


def test_apply_revert_reload_and_import_from_eight_threads(world: World) -> None:
    world.write("target", "def f(): return 1")
    world.write("other", "from target import f\ndef g(): return f()")
    world.declare(
        {"id": "p", "target": "target:f", "action": "wrap", "using": "impl:add_one", "rebind": True},
        {"id": "q", "target": "target:f", "action": "wrap", "using": "impl:add_ten"},
        {"id": "r", "target": "other:g", "action": "wrap", "using": "impl:add_hundred"},
    )
    until = time.monotonic() + 2

    def repeat(*actions: Callable[[], Any]) -> Callable[[], None]:
        def run() -> None:
            while time.monotonic() < until:
                for action in actions:
                    action()

        return run

    engine = world.engine
    run_all(
        repeat(lambda: engine.apply("p"), lambda: engine.revert("p")),
        repeat(lambda: engine.apply("p", "q", "r"), lambda: engine.revert("q", "r", "p")),
        repeat(lambda: engine.apply("q"), lambda: engine.revert("q")),
        repeat(lambda: importlib.import_module("target"), lambda: importlib.import_module("other").g()),
        repeat(lambda: importlib.reload(importlib.import_module("target"))),
        repeat(lambda: engine.status(), lambda: engine.verify()),
        repeat(lambda: importlib.import_module("target").f()),
        repeat(lambda: engine.holding("q", wants=True).__enter__(), lambda: engine.apply("r")),
    )
    engine.apply("p", "q", "r")
    target, other = sys.modules["target"], sys.modules["other"]
    importlib.reload(target)
    importlib.reload(other)
    assert target.f() == 12 and other.g() == 112
    engine.revert("p", "q", "r")
    assert (target.f(), other.f(), other.g(), world.layers) == (1, 1, 1, 0)
    assert target.f.__code__.co_filename == target.__file__


def test_no_lock_is_held_while_a_patchs_code_runs(world: World, target: Any) -> None:
    world.write(
        "slow",
        """
        import threading
        entered, go_on = threading.Event(), threading.Event()
        def factory(original):
            entered.set()
            assert go_on.wait(30)
            return lambda: original() + 1
        """,
    )
    slow = world.load("slow")
    world.declare(
        {"id": "p", "target": "target:f", "action": "wrap", "using": "slow:factory"},
        {"id": "q", "target": "target:g", "action": "wrap", "using": "impl:add_one"},
        start=False,
    )

    def others() -> None:
        assert slow.entered.wait(30)
        try:
            world.engine.apply("q")
            world.engine.revert("q")
            assert world.engine.status("p")[0].state == "pending"
        finally:
            slow.go_on.set()

    run_all(lambda: world.engine.apply("p"), others)
    assert target.f() == 2


def test_a_patch_that_is_undone_while_its_code_runs_is_not_applied(world: World, target: Any) -> None:
    world.write("slow", "def factory(original):\n    hook()\n    return lambda: 7\nhook = None")
    slow = world.load("slow")
    slow.hook = lambda: world.engine.revert("p")
    world.declare({"id": "p", "target": "target:f", "action": "wrap", "using": "slow:factory"}, start=False)
    assert world.engine.apply("p")[0].state == "reverted"
    assert (target.f(), world.layers) == (1, 0)


def test_a_slot_that_changes_while_a_patchs_code_runs_is_planned_anew(world: World, target: Any) -> None:
    world.write("slow", "def factory(original):\n    hook()\n    return lambda: original() + 1\nhook = None")
    slow = world.load("slow")

    def change() -> None:
        slow.hook = lambda: None
        target.f = lambda: 50

    slow.hook = change
    world.wrap("target:f", "slow:factory")
    assert target.f() == 51


def test_a_slot_that_never_rests_is_given_up(world: World, target: Any) -> None:
    world.write("slow", "def factory(original):\n    hook()\n    return lambda: original() + 1\nhook = None")

    def change() -> None:
        target.f = lambda: 50

    world.load("slow").hook = change
    status = world.wrap("target:f", "slow:factory")
    assert status.state == "failed"
    assert status.reason == "others keep changing target:f; gave up after 16 attempts"
    assert target.f() == 50


def test_a_patchs_code_that_applies_and_undoes_patches_is_no_recursion(world: World, target: Any) -> None:  # case 29
    world.write("again", "def factory(original):\n    hook()\n    return lambda: original() + 1\nhook = None")
    depth = itertools.count()

    def hook() -> None:
        if next(depth) < 5:
            world.engine.apply("p")

    world.load("again").hook = hook
    world.declare({"id": "p", "target": "target:f", "action": "wrap", "using": "again:factory"}, start=False)
    world.engine.apply("p")
    assert (target.f(), world.layers) == (2, 1)


# --- interrupts ----------------------------------------------------------------------------------------------------

OURS = str(Path(engine_module.__file__).parent)


@contextlib.contextmanager
def interrupted_at(turn: int) -> Iterator[list[int]]:
    """Raise KeyboardInterrupt when one of our functions is called for the turn-th time, as a signal's handler does."""
    calls = [0]

    def trace(frame: Any, event: str, argument: Any) -> None:
        code = frame.f_code
        if event == "call" and code.co_name != "<genexpr>" and code.co_filename.startswith(OURS):
            calls[0] += 1
            if calls[0] == turn:
                sys.settrace(None)
                raise KeyboardInterrupt

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        yield calls
    finally:
        sys.settrace(before)


def calls_of(action: Callable[[], Any]) -> int:
    with interrupted_at(-1) as calls:
        action()
    return calls[0]


@pytest.mark.parametrize("doing", ["apply", "revert", "import", "reload", "context"])
def test_an_interrupt_at_any_call_leaves_everything_in_order(world: World, doing: str) -> None:
    world.write("target", "def f(): return 1\ng = f\nclass Class:\n    def m(self): return 1")
    wrap = {"action": "wrap", "using": "impl:add_one"}
    world.load("impl")
    world.declare(
        {
            "id": "p",
            "step": [{"target": "target:f", "also_bind": ["target:g"], **wrap}, {"target": "target:Class.m", **wrap}],
        }
    )
    engine = world.engine

    def settle(applied: bool) -> Any:
        target = importlib.import_module("target")
        (engine.apply if applied else engine.revert)("p")
        answers = (target.f(), target.g(), target.Class().m(), target.f is target.g)
        assert answers == ((2, 2, 2, True) if applied else (1, 1, 1, True))
        assert world.layers == (3 if applied else 0)
        assert world.state() == ("applied" if applied else "reverted")
        return target

    def within() -> None:
        with engine.holding("p", wants=True):
            pass

    actions: dict[str, tuple[bool, Callable[[], Any]]] = {
        "apply": (False, lambda: engine.apply("p")),
        "revert": (True, lambda: engine.revert("p")),
        "import": (True, lambda: importlib.import_module("target")),
        "reload": (True, lambda: importlib.reload(sys.modules["target"])),
        "context": (False, within),
    }
    applied, action = actions[doing]

    def prepare() -> None:
        settle(applied)
        if doing == "import":
            del sys.modules["target"]

    prepare()
    total = calls_of(action)
    assert total > 10
    for turn in range(1, total + 1):
        prepare()
        with contextlib.suppress(KeyboardInterrupt), interrupted_at(turn):
            action()
        # Another thread finds no lock held.
        run_all(lambda: engine.status())
        if doing in ("import", "reload"):
            importlib.reload(importlib.import_module("target"))
        settle(not applied)
        settle(applied)
    target = settle(False)
    assert "__wrapped__" not in vars(target.f)


# --- going round ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rounds", [1000])
def test_rounds_of_apply_and_undo_grow_nothing(world: World, target: Any, rounds: int) -> None:  # case 20
    world.load("copy_of", "from target import f")
    world.declare(
        {"id": "p", "target": "target:f", "action": "wrap", "using": "impl:add_one", "rebind": True},
        {"id": "q", "target": "target:Class.m", "action": "replace", "using": "impl:seven"},
    )
    path, layers = list(sys.meta_path), world.layers

    def blocks(number: int) -> int:
        for _ in range(number):
            world.engine.revert("p", "q")
            world.engine.apply("p", "q")
        gc.collect()
        return sys.getallocatedblocks()

    before = blocks(100)
    # A single object a round would be a block a round.
    assert blocks(rounds) - before < rounds / 2
    assert (world.layers, sys.meta_path) == (layers, path)
    assert (target.f(), target.Class().m()) == (2, 7)


def test_reloads_grow_nothing(world: World, target: Any) -> None:
    world.wrap("target:f")
    for _ in range(200):
        importlib.reload(target)
    assert (world.layers, target.f()) == (1, 2)
    assert len(world.engine._settler.watches) == 1


# --- processes -----------------------------------------------------------------------------------------------------


def test_importing_the_package_brings_nothing_heavy_along(world: World) -> None:
    code = """
        import sys
        import compat_patches
        heavy = {"torch", "wrapt", "packaging", "tomllib", "tomli", "psutil", "asyncio", "dataclasses", "logging"}
        print(sorted(heavy & set(sys.modules)))
    """
    done = run_python(code, "-W", "error", folder=world.folder, COMPAT_PATCHES="on")
    assert (done.stdout, done.stderr) == ("[]\n", "")


def test_the_public_functions_are_the_engines(world: World) -> None:
    assert {"apply", "revert", "applied", "reverted", "status", "verify"} <= set(compat_patches.__all__)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")
def test_a_fork_while_another_thread_holds_the_lock_does_not_hang_the_child(world: World, target: Any) -> None:
    world.wrap("target:f")
    stop = threading.Event()

    def churn() -> None:
        while not stop.is_set():
            world.engine.revert("p")
            world.engine.apply("p")

    thread = threading.Thread(target=churn, daemon=True)
    thread.start()
    try:
        for _ in range(20):
            child = os.fork()
            if child == 0:
                status = 1
                with contextlib.suppress(BaseException):
                    world.engine.apply("p")
                    status = 0 if target.f() == 2 else 2
                os._exit(status)
            deadline = time.monotonic() + 30
            while (done := os.waitpid(child, os.WNOHANG)) == (0, 0):
                if time.monotonic() > deadline:
                    os.kill(child, 9)
                    os.waitpid(child, 0)
                    pytest.fail("the child hangs")
                time.sleep(0.005)
            assert os.waitstatus_to_exitcode(done[1]) == 0
    finally:
        stop.set()
        thread.join(30)
