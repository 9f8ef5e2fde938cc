"""Copies by value: modules that did ``from x import y`` before the patch came."""

from __future__ import annotations

import sys
import types

import pytest
from standins import World

from compat_patches.copies import find_copies
from compat_patches.target import ModuleSlot


def test_copies_are_found_in_the_order_in_which_modules_came(world: World) -> None:
    target = world.load("target", "def f(): pass\nalso = f")
    one = world.load("one", "from target import f")
    world.load("two", "from target import f as g")
    found = find_copies([target.f], [ModuleSlot(target, "f", "target:f")], ())
    assert [slot.title for slot in found] == ["target:also", "one:f", "two:g"]
    assert all(slot.holds(target.f) for slot in found)
    assert [slot.title for slot in find_copies([target.f], [ModuleSlot(one, "f", "one:f")], ("two", "target"))] == []


def test_what_everybody_has_is_no_copy(world: World) -> None:
    world.load("target", "value = 12345\nname = 'a'")
    assert find_copies([sys.modules["target"].value, None, "a"], [], ()) == []


def test_what_is_no_module_is_passed_over(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    class Raising:
        def __getattribute__(self, name: str) -> object:
            raise RuntimeError

    target = world.load("target", "def f(): pass")
    monkeypatch.setitem(sys.modules, "none", None)  # type: ignore[arg-type]
    monkeypatch.setitem(sys.modules, "namespace", types.SimpleNamespace(f=target.f))  # type: ignore[arg-type]
    assert [slot.title for slot in find_copies([target.f], [], ())] == ["target:f"]
    monkeypatch.setitem(sys.modules, "raising", Raising())  # type: ignore[arg-type]
    assert [slot.title for slot in find_copies([target.f], [], ())] == ["target:f"]


def test_a_copy_is_reported_and_left_alone(world: World) -> None:  # case 11
    world.load("target", "def f(): return 1")
    copy = world.load("copy_of", "from target import f")
    status = world.wrap("target:f")
    assert copy.f() == 1
    assert status.reason.endswith("; copies made before were left alone: copy_of:f")


def test_a_copy_is_rebound_where_the_patch_says_so_and_put_back(world: World) -> None:  # case 11
    target = world.load("target", "def f(): return 1\nclass Class: pass")
    copy = world.load("copy_of", "from target import f")
    original = target.f
    status = world.wrap("target:f", rebind=True)
    assert (copy.f is target.f, copy.f(), "copies" in status.reason) == (True, 2, False)
    world.engine.revert("p")
    assert copy.f is target.f is original
    assert world.layers == 0


def test_the_implementations_own_module_is_not_rebound(world: World) -> None:  # case 11
    target = world.load("target", "def f(): return 1")
    world.load("own", "from target import f\ndef factory(original):\n    return lambda: f() + 1")
    world.wrap("target:f", "own:factory", rebind=True)
    assert target.f() == 2  # It would call itself without end.


def test_a_copy_that_somebody_has_changed_since_is_left_to_them(world: World) -> None:
    target = world.load("target", "def f(): return 1")
    copy = world.load("copy_of", "from target import f")
    world.wrap("target:f", rebind=True)
    copy.f = theirs = lambda: 9
    world.engine.revert("p")
    assert (copy.f, target.f()) == (theirs, 1)


def test_copies_of_a_copied_class_are_rebound(world: World) -> None:  # case 11
    target = world.load("target", "class Class: pass")
    copy = world.load("copy_of", "from target import Class")
    original = target.Class
    world.write("sub", "def factory(original):\n    class Sub(original): pass\n    return Sub")
    world.wrap("target:Class", "sub:factory", rebind=True)
    assert copy.Class is target.Class is not original
    assert (copy.Class.__name__, copy.Class.__module__) == ("Class", "target")
    world.engine.revert("p")
    assert copy.Class is target.Class is original


def test_a_module_that_was_copied_to_between_two_rounds_is_found(world: World) -> None:  # case 11
    world.load("target", "def f(): return 1")
    world.wrap("target:f", rebind=True)
    world.engine.revert("p")
    copy = world.load("copy_of", "from target import f")
    world.engine.apply("p")
    assert copy.f() == 2


def test_a_module_that_came_for_another_one_is_looked_into(world: World) -> None:
    world.load("target", "def f(): return 1")
    world.load("other", "")
    world.wrap("target:f", rebind=True)
    world.engine.revert("p")
    del sys.modules["other"]
    copy = world.load("copy_of", "from target import f")
    world.engine.apply("p")
    assert copy.f() == 2


def test_a_reload_gives_the_copy_back_its_own(world: World) -> None:
    import importlib

    target = world.load("target", "def f(): return 1")
    copy = world.load("copy_of", "from target import f")
    world.wrap("target:f", rebind=True)
    importlib.reload(target)
    assert target.f() == 2
    importlib.reload(copy)
    assert copy.f is target.f
    world.engine.revert("p")
    assert (target.f(), world.layers) == (1, 0)
