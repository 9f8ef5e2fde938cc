"""Layers: several patches on one slot, with others' work above, between and below, undone in every order."""

from __future__ import annotations

import functools
import gc
import importlib
import itertools
import os
from collections.abc import Callable
from typing import Any
from unittest import mock

import pytest
from standins import World

PATCHES = {"one": ("impl:add_one", 1), "ten": ("impl:add_ten", 10), "hundred": ("impl:add_hundred", 100)}
FOREIGN = 1000


def by_hand(module: Any, name: str) -> None:
    original = getattr(module, name)
    setattr(module, name, lambda *args: original(*args) + FOREIGN)


def by_wraps(module: Any, name: str) -> None:
    original = getattr(module, name)

    @functools.wraps(original)
    def theirs(*args: Any) -> Any:
        return original(*args) + FOREIGN

    setattr(module, name, theirs)


def by_wrapt(module: Any, name: str) -> None:
    wrapt = pytest.importorskip("wrapt")
    wrapt.wrap_function_wrapper(
        module, name, lambda wrapped, instance, args, kwargs: wrapped(*args, **kwargs) + FOREIGN
    )


def by_mock(module: Any, name: str) -> None:
    original = getattr(module, name)
    setattr(module, name, mock.MagicMock(side_effect=lambda *args: original(*args) + FOREIGN))


WAYS = [by_hand, by_wraps, by_wrapt, by_mock]


def declare(world: World, *order: str) -> None:
    world.declare(*({"id": name, "target": "target:f", "action": "wrap", "using": PATCHES[name][0]} for name in order))


def worth(*names: str) -> int:
    return sum(PATCHES[name][1] for name in names)


@pytest.fixture
def target(world: World) -> Any:
    return world.load("target", "def f(): return 0")


@pytest.mark.parametrize("undone", [*itertools.permutations(PATCHES)], ids="-".join)
def test_three_patches_are_undone_in_any_order(world: World, target: Any, undone: tuple[str, ...]) -> None:  # case 17
    original = target.f
    declare(world, *PATCHES)
    left = list(PATCHES)
    for name in undone:
        left.remove(name)
        status = world.engine.revert(name)[0]
        assert (status.state, target.f()) == ("reverted", worth(*left)), status.reason
        assert world.layers == len(left)
    assert target.f is original


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("position", range(4))
@pytest.mark.parametrize("undone", [*itertools.permutations(PATCHES)], ids="-".join)
def test_a_foreign_layer_anywhere_keeps_working_whatever_is_undone(
    world: World, target: Any, way: Callable[..., None], position: int, undone: tuple[str, ...]
) -> None:  # case 18
    upstream = target.f
    order = list(PATCHES)
    declare(world, *order[:position])
    way(target, "f")
    theirs = target.f
    declare(world, *order[position:])
    left = list(order)
    assert target.f() == FOREIGN + worth(*left)
    for name in undone:
        left.remove(name)
        status = world.engine.revert(name)[0]
        assert target.f() == FOREIGN + worth(*left)
        # What only another layer of ours refers to is gone; what theirs refers to has to stay there, quiet.
        assert (status.state, bool(status.reason)) == (
            ("overlaid", True) if order[:position][-1:] == [name] else ("reverted", False)
        )
    assert target.f is theirs
    # Undone patches come back where they are, and act once.
    for name in undone:
        left.append(name)
        assert world.engine.apply(name)[0].state in ("applied", "overlaid")
        assert target.f() == FOREIGN + worth(*left)
    world.engine.revert(*order)
    assert target.f() == FOREIGN
    target.f = upstream
    world.engine.verify()
    assert (target.f(), world.layers) == (0, 0)


@pytest.mark.parametrize("way", WAYS)
def test_a_foreign_layer_that_goes_away_leaves_ours(world: World, target: Any, way: Callable[..., None]) -> None:
    original = target.f
    declare(world, "one")
    ours = target.f
    way(target, "f")
    assert world.engine.verify()[0].state == "overlaid"
    assert target.f() == FOREIGN + 1
    target.f = ours
    assert (world.engine.verify()[0].state, target.f()) == ("applied", 1)
    world.engine.revert("one")
    assert target.f is original


def test_mock_patches_around_ours_put_back_what_was_there(world: World, target: Any) -> None:  # case 18
    original = target.f
    declare(world, "one")
    with mock.patch("target.f", return_value=50):
        assert target.f() == 50
        assert world.state("one") == "overlaid"
    assert (target.f(), world.state("one")) == (1, "applied")
    with mock.patch("target.f", return_value=50):
        assert world.engine.revert("one")[0].state == "overlaid"
    # The mock has put our entry back after we had gone.
    assert target.f() == 0
    world.engine.verify()
    assert (target.f is original, world.state("one"), world.layers) == (True, "reverted", 0)


def test_a_patch_that_came_within_a_mock_is_lost_with_it_and_comes_again(world: World, target: Any) -> None:  # case 19
    original = target.f
    with mock.patch("target.f", return_value=50):
        declare(world, "one")
        assert target.f() == 51
    assert target.f is original
    status = world.engine.verify("one")[0]
    assert (status.state, status.reason) == ("lost", "somebody has put back what upstream defines as target:f")
    assert world.engine.apply("one")[0].state == "applied"
    assert target.f() == 1
    world.engine.revert("one")
    assert (target.f is original, world.layers) == (True, 0)


def test_an_original_that_was_put_back_is_lost_and_applied_again(world: World, target: Any) -> None:  # case 19
    original = target.f
    declare(world, "one")
    target.f = original
    status = world.engine.verify()[0]
    assert status.state == "lost"
    assert status.reason == "somebody has put back what was in target:f before"
    assert (world.engine.apply("one")[0].state, target.f(), world.layers) == ("applied", 1, 1)
    world.engine.revert("one")
    assert (target.f is original, world.layers) == (True, 0)


def test_undoing_what_was_lost_leaves_what_is_there(world: World, target: Any) -> None:  # case 19
    original = target.f
    declare(world, "one")
    target.f = original
    status = world.engine.revert("one")[0]
    assert (status.state, target.f is original, world.layers) == ("reverted", True, 0)


def test_a_target_that_was_deleted_is_lost(world: World, target: Any) -> None:
    declare(world, "one")
    del target.f
    status = world.engine.verify()[0]
    assert (status.state, status.reason) == ("lost", "somebody has deleted target:f")
    world.engine.revert("one")
    assert not hasattr(target, "f")
    assert world.layers == 0


def test_the_original_that_comes_back_beneath_three_patches(world: World, target: Any) -> None:  # case 19
    original = target.f
    declare(world, *PATCHES)
    target.f = original
    assert [status.state for status in world.engine.verify()] == ["lost"] * 3
    world.engine.apply("ten", "one")
    assert target.f() == 11
    world.engine.apply("hundred")
    assert (target.f(), world.layers) == (111, 3)
    world.engine.revert(*PATCHES)
    assert (target.f is original, world.layers) == (True, 0)


def test_a_copy_by_value_of_ours_that_was_taken_before_the_undoing_hands_through(world: World, target: Any) -> None:
    declare(world, "one", "ten")
    copy = target.f
    world.engine.revert("ten")
    assert copy() == 1
    world.engine.revert("one")
    assert copy() == 0
    world.engine.apply("one")
    assert (copy(), target.f()) == (0, 1)


@pytest.mark.parametrize("replacing", ["noop", "replace", "set"])
def test_a_patch_beneath_one_that_does_not_call_it_is_undone_at_once(
    world: World, target: Any, replacing: str
) -> None:  # case 17
    original = target.f
    declare(world, "one")
    value = {"noop": {"value": 7}, "replace": {"using": "impl:seven"}, "set": {"using": "impl:seven"}}[replacing]
    world.declare({"id": "seven", "target": "target:f", "action": replacing, **value})
    assert target.f() == 7
    assert world.engine.revert("one")[0].state == "reverted"
    world.engine.revert("seven")
    assert target.f is original


@pytest.mark.parametrize("undone", [*itertools.permutations((1, 2, 3))], ids=str)
def test_replacements_that_cannot_hand_through_are_undone_in_any_order(
    world: World, undone: tuple[int, ...]
) -> None:  # case 17
    target = world.load("target", "value = 0")
    values = (1, 2, 3)
    world.declare(*({"id": f"p{n}", "target": "target:value", "action": "set", "value": n} for n in values))
    assert target.value == 3
    for number in range(1, 4):
        assert world.engine.revert(f"p{undone[number - 1]}")[0].state == "reverted"
        assert target.value == max({*values} - {*undone[:number]}, default=0)


def test_patches_that_set_the_same_value_are_undone_each_on_its_own(world: World) -> None:  # case 17
    for number, order in enumerate([("p", "q"), ("q", "p")]):
        target = world.load(f"target{number}", "value = 0\ntable = {'a': 0}")
        p, q = f"p{number}", f"q{number}"
        set_it = {"target": f"target{number}:value", "action": "set", "value": 1}
        world.declare({"id": p, **set_it}, {"id": q, **set_it})
        world.engine.revert(f"{order[0]}{number}")
        assert (target.value, world.state(f"{order[1]}{number}")) == (1, "applied")
        world.engine.revert(f"{order[1]}{number}")
        assert (target.value, world.layers) == (0, 0)


@pytest.mark.parametrize("mode", ["prepend", "set"])
@pytest.mark.parametrize("undone", [*itertools.permutations(("p", "q", "r"))], ids="-".join)
def test_patches_of_one_variable_are_undone_in_any_order(
    world: World, monkeypatch: pytest.MonkeyPatch, undone: tuple[str, ...], mode: str
) -> None:  # case 17
    monkeypatch.setenv("STANDIN_PATH", "user")
    env = {"action": "env", "key": "STANDIN_PATH", "mode": mode}
    world.declare(*({"id": name, "value": name, **env} for name in ("p", "q", "r")))
    assert os.environ["STANDIN_PATH"] == ("r:q:p:user" if mode == "prepend" else "r")
    for name in undone:
        status = world.engine.revert(name)[0]
        if mode == "prepend":
            # Built into what another patch has set on top of it, and said so.
            assert (status.state == "overlaid") == (name in os.environ["STANDIN_PATH"].split(os.pathsep))
    world.engine.verify()
    assert (os.environ["STANDIN_PATH"], world.layers) == ("user", 0)


def test_a_class_beneath_a_wrapper_stays_until_the_wrapper_goes(world: World) -> None:
    world.write("sub", "def factory(original):\n    class Sub(original):\n        extra = 1\n    return Sub")
    target = world.load("target", "class Class: pass")
    original = target.Class
    wrap = {"target": "target:Class", "action": "wrap", "using": "sub:factory"}
    world.declare({"id": "p", **wrap}, {"id": "q", **wrap})
    status = world.engine.revert("p")[0]
    assert status.state == "overlaid"
    assert "test-1/q was built on it" in status.reason
    world.engine.revert("q")
    assert (target.Class is original, world.layers) == (True, 0)
    assert world.engine.verify("p")[0].state == "reverted"


class Endless:
    """Has every attribute, and each time another one; as unittest.mock.call, whose attributes never end either."""

    def __init__(self, above: Any = None) -> None:
        self.above = above

    def __call__(self) -> int:
        return 5

    def __getattr__(self, name: str) -> Endless:
        return Endless(self)


class Raising:
    """As a proxy that is out of its context: whatever it is asked for, it raises."""

    def __call__(self) -> int:
        return 5

    def __getattribute__(self, name: str) -> Any:
        raise RuntimeError("working outside of the context")


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    "make",
    [Endless, Raising, mock.MagicMock, lambda: mock.call, lambda: 5, lambda: None, lambda: len],
    ids=["endless", "raising", "mock", "call", "number", "none", "builtin"],
)
def test_whatever_stands_on_top_is_looked_at_without_being_asked(
    world: World, target: Any, make: Callable[[], Any]
) -> None:
    foreign = make()
    original = target.f
    declare(world, "one")
    ours = target.f
    target.f = foreign
    status = world.engine.verify()[0]
    assert status.state == "overlaid"
    assert "target:f" in status.reason
    assert world.engine.revert("one")[0].state == "overlaid"
    assert target.f is foreign
    target.f = ours
    world.engine.verify()
    assert (target.f is original, world.layers) == (True, 0)


@pytest.mark.parametrize("rounds", [3000])
def test_rounds_of_apply_and_undo_leave_the_original(world: World, target: Any, rounds: int) -> None:  # case 20
    original = target.f
    declare(world, "one")
    for _ in range(rounds):
        world.engine.revert("one")
        assert world.layers == 0
        world.engine.apply("one")
        assert world.layers == 1
    assert target.f() == 1
    world.engine.revert("one")
    assert target.f is original


def test_a_class_that_another_took_the_place_of_is_lost_and_both_are_put_right(world: World) -> None:
    target = world.load("target", "class C:\n    def f(self): return 1")
    first = target.C
    original = vars(first)["f"]
    assert world.wrap("target:C.f").state == "applied"
    second = target.C = type("C", (), {"f": lambda self: 2})
    assert (world.state(), "leads elsewhere" in world.reason()) == ("lost", True)
    world.engine.apply("p")
    assert (world.state(), second().f(), vars(first)["f"]) == ("applied", 3, original)
    world.engine.revert("p")
    assert (second().f(), first().f()) == (2, 1)


# --- what of ours somebody else still holds ------------------------------------------------------------------------


def test_a_quiet_layer_that_was_passed_over_is_taken_out_when_it_comes_to_light(world: World, target: Any) -> None:
    original = target.f
    declare(world, "one")
    ours = target.f
    by_hand(target, "f")
    first = target.f
    by_hand(target, "f")
    world.engine.revert("one")
    target.f = first
    # Whether what is there now calls the quiet one is not known, so that another is put on top.
    assert world.engine.apply("one")[0].state == "applied"
    assert target.f() == FOREIGN + 1
    assert world.engine.revert("one")[0].state == "reverted"
    assert target.f is first
    target.f = ours
    world.engine.verify()
    assert (target.f is original, world.state("one"), world.layers) == (True, "reverted", 0)


@pytest.mark.parametrize("look", ["apply", "revert", "verify"])
def test_whoever_looks_takes_it_out(world: World, target: Any, look: str) -> None:
    original = target.f
    declare(world, "one", "ten")
    world.engine.revert("ten")
    ours = target.f
    target.f = lambda: 7
    world.engine.revert("one")
    target.f = original
    world.engine.verify()
    assert world.layers == 0
    target.f = ours
    assert target.f() == 0
    getattr(world.engine, look)("ten")
    world.engine.revert("ten")
    assert target.f is original


def test_one_that_was_undone_before_a_reload_is_not_woken_up_by_it(world: World, target: Any) -> None:
    declare(world, "one")
    by_hand(target, "f")
    world.engine.revert("one")
    importlib.reload(target)
    by_hand(target, "f")
    # Undone once more, it has not come into another place by that.
    world.engine.revert("one")
    assert world.engine.apply("one")[0].state == "applied"
    assert target.f() == FOREIGN + 1
    world.engine.revert("one")
    assert target.f() == FOREIGN


@pytest.mark.parametrize(
    "body, undecorated",
    [
        ("def m(self): return 0", lambda entry: entry),
        ("@staticmethod\n    def m(): return 0", lambda entry: entry.__func__),
        ("@classmethod\n    def m(cls): return 0", lambda entry: entry.__func__),
        ("@property\n    def m(self): return 0", lambda entry: entry.fget),
    ],
    ids=["method", "staticmethod", "classmethod", "property"],
)
def test_a_descriptor_that_comes_to_light_is_taken_out(
    world: World, body: str, undecorated: Callable[[Any], Any]
) -> None:
    target = world.load("target", f"class C:\n    {body}")
    original = vars(target.C)["m"]
    world.wrap("target:C.m")
    ours = vars(target.C)["m"]
    assert undecorated(ours) is not undecorated(original)
    for theirs in (1, 2):
        target.C.m = theirs
        world.engine.revert("p")
        world.engine.apply("p") if theirs == 1 else None
    target.C.m = original
    world.engine.verify()
    target.C.m = ours
    world.engine.verify()
    assert (vars(target.C)["m"] is original, world.layers) == (True, 0)


def test_a_setter_that_was_put_around_a_quiet_property_is_kept(world: World) -> None:
    target = world.load("target", "class C:\n    @property\n    def p(self): return 0")
    world.wrap("target:C.p")
    ours = target.C.p
    target.C.p = 7
    world.engine.revert("p")
    target.C.p = theirs = ours.setter(lambda self, value: None)
    world.engine.verify()
    assert vars(target.C)["p"] is theirs


def test_what_nobody_holds_any_more_is_forgotten(world: World, target: Any) -> None:
    declare(world, "one")
    remnants = world.engine._settler.layers._remnants._places
    for _ in range(10):
        by_hand(target, "f")
        world.engine.revert("one")
        target.f = lambda: 7
        world.engine.apply("one")
        gc.collect()
        assert len(remnants) <= 1
    world.engine.revert("one")
    gc.collect()
    assert len(remnants) == 0


def test_a_patch_of_two_slots_comes_back_in_both_though_one_was_beneath_somebody_elses(world: World) -> None:
    target, user = world.load("target", "def f(): return 0"), world.load("user", "from target import f")
    original = target.f
    world.wrap("target:f", also_bind=["user:f"])
    ours = user.f
    by_hand(user, "f")
    for _ in range(3):
        assert world.engine.revert("p")[0].state == "overlaid"
        assert (target.f is original, user.f()) == (True, FOREIGN)
        assert world.engine.apply("p")[0].state == "overlaid"
        assert (target.f(), user.f(), world.layers) == (1, FOREIGN + 1, 2)
    world.engine.revert("p")
    world.engine.verify()
    world.engine.apply("p")
    assert (target.f(), user.f()) == (1, FOREIGN + 1)
    user.f = ours
    world.engine.revert("p")
    assert (target.f is original, user.f is original, world.layers) == (True, True, 0)


def test_a_patch_of_two_slots_does_not_come_back_in_one_alone(world: World) -> None:
    target, user = world.load("target", "def f(): return 0"), world.load("user", "from target import f")
    world.wrap("target:f", also_bind=["user:f"])
    by_hand(user, "f")
    world.engine.revert("p")
    target.f = lambda: 5
    status = world.engine.apply("p")[0]
    assert (status.state, target.f(), user.f()) == ("failed", 5, FOREIGN)
    assert "user:f holds another object than target:f" in status.reason


def test_an_undone_patch_that_is_uncovered_in_one_of_two_slots_is_in_nobodys_way(world: World) -> None:
    target, user = world.load("target", "def f(): return 0"), world.load("user", "from target import f")
    both = {"target": "target:f", "also_bind": ["user:f"], "action": "wrap"}
    world.declare(*({"id": name, "using": PATCHES[name][0], **both} for name in ("one", "ten", "hundred")))
    world.engine.revert("ten")
    ours = target.f
    by_hand(target, "f")
    world.engine.revert("hundred")
    target.f = ours
    assert world.engine.apply("ten")[0].state == "applied"
    assert (target.f(), user.f()) == (11, 11)
    assert (world.state("hundred"), world.layers) == ("reverted", 4)


@pytest.mark.parametrize("order", ["pq", "qp"])
@pytest.mark.parametrize("container", ["{}", "set()"])
def test_one_patch_takes_out_what_another_has_put_in(world: World, container: str, order: str) -> None:
    target = world.load("target", f"held = {container}")
    put = {"action": "set_item", "key": "k"} if container == "{}" else {"action": "insert_item"}
    world.declare(
        {"id": "p", "target": "target:held", "value": "k", **put},
        {"id": "q", "target": "target:held", "action": "discard_item", "key": "k", "enabled": False},
    )
    world.engine.apply("q")
    assert "k" not in target.held
    world.engine.apply("p")
    assert [status.state for status in world.engine.status("p", "q")] == ["applied", "applied"]
    for name in order:
        world.engine.revert(name)
    assert (len(target.held), world.layers) == (0, 0)
