"""What a call registers and another takes back: operators of torch.library, native libraries, anybody's registry."""

from __future__ import annotations

import gc
import importlib
import os
import sys
import threading
from collections.abc import Callable
from typing import Any

import pytest
from standins import World, run_all

from compat_patches import registrations
from compat_patches.errors import PatchError

REGISTRY = """
    import contextlib
    import threading

    entries = []
    log = []

    def add(name):
        if name in entries:
            raise ValueError(f"{name} is registered already")
        entries.append(name)
        log.append(f"+{name}")

    def f():
        return 1
"""
IMPLEMENTATION = """
    import contextlib
    import time
    import registry

    class Counted:
        # Unlike a generator, it notices when it is left twice.
        inside = 0
        most = 0

        def __enter__(self):
            cls = type(self)
            cls.inside += 1
            cls.most = max(cls.most, cls.inside)
            registry.log.append("+")

        def __exit__(self, *_):
            time.sleep(0.0002)
            type(self).inside -= 1
            registry.log.append("-")

    @contextlib.contextmanager
    def ours():
        registry.add("ours")
        try:
            yield
        finally:
            registry.entries.remove("ours")
            registry.log.append("-ours")

    @contextlib.contextmanager
    def fails_on_entering():
        registry.add("ours")
        registry.entries.remove("ours")
        raise ValueError("no room")
        yield

    @contextlib.contextmanager
    def fails_on_leaving():
        registry.add("ours")
        yield
        raise ValueError("stuck")

    def no_context():
        return 7

    def fails(original):
        raise ValueError("on purpose")
"""


@pytest.fixture
def registry(world: World) -> Any:
    world.write("mine", IMPLEMENTATION)
    found = world.load("registry", REGISTRY)
    yield found
    assert not registrations._taken
    assert not registrations.ENTERED


def registering(using: str = "mine:ours", **fields: Any) -> dict[str, Any]:
    return {"id": "p", "target": "registry:add", "action": "register", "using": using, **fields}


def test_it_is_entered_once_and_left(world: World, registry: Any) -> None:
    assert world.declare(registering())[0].state == "applied"
    world.engine.apply("p")
    assert (registry.entries, world.state(), world.layers) == (["ours"], "applied", 1)
    assert world.engine.verify("p")[0].state == "applied"
    world.engine.revert("p")
    assert (registry.entries, world.state(), world.layers) == ([], "reverted", 0)
    world.engine.apply("p")
    assert registry.log == ["+ours", "-ours", "+ours"]
    world.engine.revert("p")


def test_it_waits_for_the_module_of_its_target(world: World) -> None:
    world.write("mine", IMPLEMENTATION)
    world.write("registry", REGISTRY)
    assert world.declare(registering())[0].state == "pending"
    registry = world.load("registry")
    assert (world.state(), registry.entries) == ("applied", ["ours"])
    world.engine.revert("p")


def test_a_registry_that_is_not_there_fails(world: World, registry: Any) -> None:
    status = world.declare(registering(target="registry:missing"))[0]
    assert status.state == "failed" and "registry has no 'missing'" in status.reason
    assert registry.log == []


def test_what_fails_on_entering_leaves_nothing(world: World, registry: Any) -> None:
    status = world.declare(registering("mine:fails_on_entering"))[0]
    assert (status.state, status.reason, registry.entries) == ("failed", "ValueError: no room", [])
    assert world.layers == 0


def test_what_is_no_context_manager_is_refused(world: World, registry: Any) -> None:
    status = world.declare(registering("mine:no_context"))[0]
    assert status.state == "failed" and "found 7; expected a context manager" in status.reason


def test_what_fails_on_leaving_is_told(world: World, registry: Any, caplog: pytest.LogCaptureFixture) -> None:
    world.declare(registering("mine:fails_on_leaving"))
    status = world.engine.revert("p")[0]
    assert status.state == "failed" and "could not be taken back: ValueError: stuck" in status.reason
    assert "stuck" in caplog.text and "ValueError: stuck" in (status.traceback or "")
    assert world.layers == 0


@pytest.mark.parametrize("first", [0, 1])
def test_a_patch_of_which_another_step_fails_registers_nothing(world: World, registry: Any, first: int) -> None:
    steps = [registering(), {"target": "registry:f", "action": "wrap", "using": "mine:fails"}]
    del steps[0]["id"]
    status = world.declare({"id": "p", "step": steps[first:] + steps[:first]})[0]
    assert status.state == "failed" and "on purpose" in status.reason
    assert registry.entries == []
    assert registry.log == (["+ours", "-ours"] if first == 0 else [])


def test_two_patches_that_register_the_same_register_it_once(world: World, registry: Any) -> None:
    statuses = world.declare(registering(), {**registering(), "id": "q"})
    assert [status.state for status in statuses] == ["applied", "skipped"]
    assert "is registered already" in statuses[1].reason
    world.engine.revert("p")
    assert registry.entries == []
    assert world.engine.apply("q")[0].state == "applied"
    world.engine.revert("q")


def test_it_is_left_and_entered_again_where_another_step_was_lost(world: World, registry: Any) -> None:
    steps = [registering(), {"target": "registry:f", "action": "wrap", "using": "impl:add_one"}]
    del steps[0]["id"]
    world.declare({"id": "p", "step": steps})
    original = registry.f.__wrapped__
    registry.f = original
    assert world.state() == "lost"
    world.engine.apply("p")
    assert (world.state(), registry.entries, registry.f()) == ("applied", ["ours"], 2)
    assert registry.log == ["+ours", "-ours", "+ours"]
    world.engine.revert("p")
    assert (registry.entries, registry.f) == ([], original)


def test_contexts_enter_and_leave(world: World, registry: Any) -> None:
    world.declare(registering(scope="context"))
    with world.engine.holding("p", wants=True):
        assert registry.entries == ["ours"]
        with world.engine.holding("p", wants=False):
            assert registry.entries == []
        assert registry.entries == ["ours"]
    assert registry.entries == []


def test_threads_register_once(world: World, registry: Any) -> None:
    world.declare(registering(), start=False)

    def many() -> None:
        for _ in range(100):
            world.engine.apply("p")

    run_all(*[many] * 8)
    assert (registry.entries, registry.log, world.state()) == (["ours"], ["+ours"], "applied")
    world.engine.revert("p")


def test_threads_that_apply_and_undo_at_random_never_register_twice(world: World, registry: Any) -> None:
    world.declare(registering(), start=False)

    def many() -> None:
        for _ in range(100):
            with world.engine.holding("p", wants=True):
                pass
            world.engine.apply("p")
            world.engine.revert("p")

    run_all(*[many] * 4)
    world.engine.revert("p")
    assert world.state() == "reverted" and registry.entries == []
    assert registry.log == ["+ours", "-ours"] * (len(registry.log) // 2)


def test_a_context_that_asks_for_itself_is_refused(world: World, registry: Any) -> None:
    registry.apply = lambda: world.engine.apply("p")
    world.write(
        "circular",
        """
        import contextlib
        import registry

        @contextlib.contextmanager
        def ours():
            registry.apply()
            registry.add("ours")
            yield
            registry.entries.remove("ours")
        """,
    )
    status = world.declare(registering("circular:ours"))[0]
    assert (status.state, registry.entries) == ("applied", ["ours"])
    world.engine.revert("p")
    with pytest.raises(PatchError, match="this very thread"):
        taken = registrations._take(("a", "b"), "a")
        try:
            registrations._take(("a", "b"), "a")
        finally:
            registrations._give_up(("a", "b"), taken)


def test_a_child_does_not_wait_for_threads_that_it_does_not_have(world: World, registry: Any) -> None:
    place = ("registry:add", "mine:ours")
    entered, leave = threading.Event(), threading.Event()

    def hold() -> None:
        taken = registrations._take(place, "a test")
        entered.set()
        leave.wait()
        registrations._give_up(place, taken)

    thread = threading.Thread(target=hold)
    thread.start()
    entered.wait()
    world.declare(registering(), start=False)
    child = os.fork()
    if child == 0:
        try:
            os._exit(0 if world.engine.apply("p")[0].state == "applied" and registry.entries == ["ours"] else 1)
        finally:
            os._exit(2)
    _, status = os.waitpid(child, 0)
    leave.set()
    thread.join()
    assert os.waitstatus_to_exitcode(status) == 0


def test_it_is_left_as_often_as_it_was_entered_and_never_entered_twice(world: World, registry: Any) -> None:
    world.declare(
        registering("mine:Counted", enabled=False), {**registering("mine:Counted"), "id": "q", "enabled": False}
    )
    counted = world.load("mine").Counted
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)

    def many(name: str) -> Callable[[], None]:
        def body() -> None:
            for _ in range(150):
                world.engine.apply(name)
                world.engine.revert(name)

        return body

    try:
        run_all(*[many(name) for name in "pqpq"])
    finally:
        sys.setswitchinterval(interval)
        world.engine.revert("p", "q")
    assert (counted.inside, counted.most) == (0, 1)
    assert registry.log == ["+", "-"] * (len(registry.log) // 2)
    assert {status.state for status in world.engine.status("p", "q")} <= {"reverted", "skipped"}


def test_who_undoes_it_finds_it_left_whoever_has_left_it(world: World, registry: Any) -> None:
    world.declare(registering("mine:Counted", enabled=False))
    world.load("other", "def f(): return 1")
    world.declare({"id": "q", "target": "other:f", "action": "wrap", "using": "impl:add_one", "enabled": False})
    counted = world.load("mine").Counted
    done = threading.Event()

    def others() -> None:
        while not done.is_set():
            world.engine.apply("q")
            world.engine.revert("q")

    def ours() -> list[tuple[str, int]]:
        seen = []
        try:
            for _ in range(200):
                seen.append((world.engine.apply("p")[0].state, counted.inside))
                seen.append((world.engine.revert("p")[0].state, counted.inside))
        finally:
            done.set()
        return seen

    (seen, *_) = run_all(ours, others, others)
    assert set(seen) == {("applied", 1), ("reverted", 0)}


def test_a_context_that_the_collector_ends_meanwhile_is_no_deadlock(world: World, registry: Any) -> None:
    world.declare(registering("mine:Counted", enabled=False))
    thresholds = gc.get_threshold()
    gc.set_threshold(1)
    try:
        for _ in range(200):
            cycle: list[Any] = [world.engine.holding("p", wants=True)]
            cycle.append(cycle)
            cycle[0].__enter__()
            del cycle
            world.engine.apply("p")
            world.engine.revert("p")
    finally:
        gc.set_threshold(*thresholds)
    gc.collect()
    world.engine.revert("p")
    assert world.load("mine").Counted.inside == 0


def test_a_registry_that_is_executed_again_gets_it_again(world: World, registry: Any) -> None:
    world.declare(registering("mine:Counted"))
    importlib.reload(registry)
    assert (world.state(), registry.log, world.layers) == ("applied", ["-", "+"], 1)
    assert world.load("mine").Counted.inside == 1
    world.engine.revert("p")


def test_strictness_raises_what_fails_on_leaving(strict_world: World) -> None:
    strict_world.write("mine", IMPLEMENTATION)
    strict_world.load("registry", REGISTRY)
    strict_world.declare(registering("mine:fails_on_leaving"))
    with pytest.raises(PatchError, match="could not be taken back: ValueError: stuck"):
        strict_world.engine.revert("p")
    assert strict_world.state() == "failed"


def test_an_interrupt_on_leaving_is_told_and_goes_on(world: World, registry: Any) -> None:
    world.write(
        "rude", "class Rude:\n    def __enter__(self): pass\n    def __exit__(self, *_): raise KeyboardInterrupt\n"
    )
    world.declare(registering("rude:Rude"))
    with pytest.raises(KeyboardInterrupt):
        world.engine.revert("p")
    assert world.state() == "failed" and "could not be taken back: KeyboardInterrupt" in world.reason()


# --- torch ---------------------------------------------------------------------------------------------------------

OPERATOR = """
    import contextlib
    import torch

    @contextlib.contextmanager
    def double():
        with torch.library._scoped_library("compat_patches_test", "FRAGMENT") as library:
            library.define("double(Tensor x) -> Tensor")
            library.impl("double", lambda x: x * 2, "CompositeExplicitAutograd")
            yield
"""


@pytest.fixture(scope="module")
def torch() -> Any:
    # Of the module's scope, as an import of torch changes what a `world` looks at.
    return pytest.importorskip("torch")


def test_an_operator_of_torch_library_is_released(world: World, torch: Any) -> None:
    world.write("mine", OPERATOR)
    namespace = torch.ops.compat_patches_test
    for _ in range(3):
        status = world.declare(
            {"id": f"p{_}", "target": "torch.library:Library", "action": "register", "using": "mine:double"}
        )[0]
        assert status.state == "applied", status.reason
        assert namespace.double(torch.ones(2)).tolist() == [2.0, 2.0]
        assert torch.compile(lambda x: namespace.double(x) + 1, backend="eager")(torch.ones(1)).tolist() == [3.0]
        world.engine.revert(f"p{_}")
        assert not hasattr(namespace, "double")
        torch._dynamo.reset()


def test_a_native_library_is_loaded_for_good_and_only_by_name(world: World) -> None:
    world.write(
        "mine",
        """
        import contextlib
        import ctypes
        import ctypes.util

        loaded = []

        def preload():
            loaded.append(ctypes.CDLL(ctypes.util.find_library("m"), mode=ctypes.RTLD_GLOBAL))
            return contextlib.nullcontext()
        """,
    )
    import ctypes  # noqa: F401  # the target's module

    patch = {"id": "p", "target": "ctypes:CDLL", "action": "register", "using": "mine:preload", "irreversible": True}
    assert world.declare(patch)[0].state == "skipped"
    assert world.engine.apply("p")[0].state == "applied"
    assert world.engine.revert("p")[0].reason == "cannot be undone"
    (library,) = world.load("mine").loaded
    assert library.abs(-3) == 3
    registrations.ENTERED.clear()
