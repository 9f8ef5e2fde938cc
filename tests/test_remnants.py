"""Remnants: what was undone is known as long as anybody holds it, in its slot and as it was, and no longer."""

from __future__ import annotations

import functools
import gc
import sys
import weakref
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import pytest

from compat_patches.remnants import Remnants, inner
from compat_patches.target import MISSING, Slot, slot_of


def made() -> Callable[..., Any]:
    return lambda *args: 1


@pytest.fixture
def module(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    module = ModuleType("stand_in")
    monkeypatch.setitem(sys.modules, "stand_in", module)
    yield module


@pytest.fixture
def slot(module: Any) -> Slot:
    return slot_of(module, "f", "stand_in:f")


@pytest.mark.parametrize("around", [lambda f: f, staticmethod, classmethod, property, functools.cached_property])
def test_an_entry_comes_to_what_stood_beneath_it_also_in_a_new_descriptor(
    slot: Slot, around: Callable[[Any], Any]
) -> None:
    remnants, function, below = Remnants(), made(), made()
    remnants.remember(slot, around(function), below)
    assert inner(around(function)) is function
    assert remnants.see_through(slot, around(function)) is below
    assert remnants.see_through(slot, below) is below


def test_several_are_seen_through_in_any_order_of_their_undoing(slot: Slot) -> None:
    first, second, below = made(), made(), made()
    for order in ([(first, below), (second, first)], [(second, first), (first, below)]):
        remnants = Remnants()
        for entry, beneath in order:
            remnants.remember(slot, entry, beneath)
        assert remnants.see_through(slot, second) is below


def test_it_is_known_in_its_slot_alone(module: Any, slot: Slot) -> None:
    remnants, function = Remnants(), made()
    remnants.remember(slot, function, MISSING)
    other = slot_of(module, "g", "stand_in:g")
    assert remnants.see_through(other, function) is function
    module.g = function
    remnants.clear_away()
    assert module.g is function


def test_what_somebody_has_built_around_it_is_not_it(slot: Slot) -> None:
    remnants, entry = Remnants(), property(made())
    remnants.remember(slot, entry, MISSING)
    theirs = entry.setter(lambda self, value: None)
    assert remnants.see_through(slot, theirs) is theirs
    assert remnants.see_through(slot, staticmethod(entry.fget)) is not MISSING


@pytest.mark.parametrize(
    "entry", [7, None, MISSING, len, int, [], functools.partial(made())], ids=lambda entry: type(entry).__name__
)
def test_what_is_no_function_is_not_remembered(slot: Slot, entry: Any) -> None:
    remnants = Remnants()
    remnants.remember(slot, entry, 1)
    remnants.remember(slot, made(), 1)
    assert remnants.see_through(slot, entry) is entry


@pytest.mark.parametrize("below", [made(), MISSING], ids=["held", "missing"])
def test_it_is_taken_out_of_its_slot(module: Any, slot: Slot, below: Any) -> None:
    remnants, function = Remnants(), made()
    remnants.remember(slot, function, below)
    remnants.clear_away()
    assert not hasattr(module, "f")
    module.f = function
    remnants.clear_away()
    assert getattr(module, "f", MISSING) is below


def test_what_acts_again_is_no_remnant(module: Any, slot: Slot) -> None:
    remnants, function = Remnants(), made()
    remnants.remember(slot, function, MISSING)
    remnants.forget(slot, function)
    module.f = function
    remnants.clear_away()
    assert module.f is function
    assert remnants.see_through(slot, function) is function


def test_it_goes_with_the_last_that_holds_it(slot: Slot) -> None:
    remnants, function = Remnants(), made()
    reference = weakref.ref(function)
    remnants.remember(slot, property(function), MISSING)
    del function
    gc.collect()
    assert reference() is None
    assert not remnants._places


def test_a_class_that_another_took_the_place_of_is_not_kept_alive(module: Any) -> None:
    remnants, function = Remnants(), made()
    module.C = type("C", (), {"f": lambda self: function()})
    reference = weakref.ref(module.C)
    remnants.remember(slot_of(module.C, "f", "stand_in:C.f"), function, MISSING)
    module.C = type("C", (), {})
    remnants.clear_away()
    gc.collect()
    assert reference() is None
    assert not remnants._places
