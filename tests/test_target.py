"""Slots: the raw entries of modules, classes, mappings and lists."""

from __future__ import annotations

import abc
import enum
import functools
import math
import os
import sys
import types
from collections import ChainMap, OrderedDict, defaultdict
from typing import Any, Protocol

import pytest

from compat_patches.container_slots import ElementSlot, ItemSlot
from compat_patches.errors import MissingTargetError
from compat_patches.manifest import Target
from compat_patches.target import MISSING, ModuleNotLoaded, ModuleSlot, Slot, find, slot_of


def function() -> int:
    return 1


class Meta(type):
    """Whatever is written by way of it is refused."""

    def __setattr__(cls, name: str, value: Any) -> None:
        raise AssertionError("nobody's code is run by writing a slot")

    def __delattr__(cls, name: str) -> None:
        raise AssertionError("nobody's code is run by emptying a slot")

    def __getattr__(cls, name: str) -> Any:
        return "made up"


class Base:
    def inherited(self) -> int:
        return 1


class Odd(Base, metaclass=Meta):
    @staticmethod
    def static() -> int:
        return 1

    @classmethod
    def class_method(cls) -> int:
        return 1

    @property
    def prop(self) -> int:
        return 1

    @functools.cached_property
    def cached(self) -> int:
        return 1

    none = None
    function = function

    class Inner:
        value = 1


class Slotted:
    __slots__ = ("member",)


class Colour(enum.Enum):
    RED = 1

    def mixed(self) -> int:
        return self.value


class Speaks(Protocol):
    def speak(self) -> int: ...


class Abstract(abc.ABC):
    @abc.abstractmethod
    def must(self) -> int: ...


def slot(text: str) -> Slot:
    return find(Target.parse(f"{__name__}:{text}"))


@pytest.mark.parametrize(
    "name",
    [
        "function",
        "Odd.static",
        "Odd.class_method",
        "Odd.prop",
        "Odd.cached",
        "Odd.none",
        "Odd.function",
        "Odd.Inner.value",
        "Slotted.member",
        "Colour.mixed",
        "Speaks.speak",
        "Abstract.must",
    ],
)
def test_an_entry_is_read_raw_and_put_back_as_the_very_same_object(name: str) -> None:
    found = slot(name)
    before = dict(vars(found.owner))
    raw = found.raw()
    assert raw is before[found.name] is found.value()
    found.put("something else")
    assert found.holds("something else")
    found.put(raw)
    after = dict(vars(found.owner))
    assert list(after) == list(before)
    assert all(after[key] is before[key] for key in before)


@pytest.mark.parametrize("name", ["Odd.inherited", "Odd.__init__", "Odd.__new__", "Slotted.__hash__", "Odd.Inner.new"])
def test_a_name_that_is_inherited_or_new_is_deleted_again(name: str) -> None:
    found = slot(name)
    before = dict(vars(found.owner))
    assert found.raw() is MISSING
    assert found.value() is MISSING if name.endswith("new") else found.value() is not MISSING
    for _ in range(2):
        found.put(function)
        assert found.raw() is function
        found.put(MISSING)
        found.put(MISSING)
    assert dict(vars(found.owner)) == before


def test_two_names_of_one_place_are_one_slot(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "Alias", Odd)
    assert slot("Odd.static").key == slot("Alias.static").key
    assert slot("Odd.static").key != slot("Base.static").key


def test_a_class_in_a_module_is_not_looked_for_in_its_metaclass() -> None:
    with pytest.raises(MissingTargetError, match=r"target missing: test_target:Odd has no 'absent'"):
        slot("Odd.absent.f")


def test_what_a_module_makes_up_on_demand_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    module = types.ModuleType("making")
    module.__getattr__ = lambda name: function  # type: ignore[method-assign]
    monkeypatch.setitem(sys.modules, "making", module)
    found = find(Target.parse("making:anything"))
    assert found.value() is MISSING
    found.put(1)
    assert module.anything == 1
    found.put(MISSING)
    assert module.anything is function


def test_a_module_with_setattr_of_its_own_is_written_past_it(monkeypatch: pytest.MonkeyPatch) -> None:
    class Refusing(types.ModuleType):
        def __setattr__(self, name: str, value: Any) -> None:
            raise AssertionError

    module = Refusing("refusing")
    monkeypatch.setitem(sys.modules, "refusing", module)
    found = find(Target.parse("refusing:name"))
    found.put(1)
    assert module.name == 1
    found.put(MISSING)
    assert not hasattr(module, "name")


def test_left_of_the_colon_is_a_module_and_not_what_hides_it(monkeypatch: pytest.MonkeyPatch) -> None:
    package, hidden = types.ModuleType("package"), types.ModuleType("package.same")
    package.same = function  # type: ignore[attr-defined]
    hidden.f = function  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "package", package)
    monkeypatch.setitem(sys.modules, "package.same", hidden)
    assert find(Target.parse("package.same:f")).owner is hidden
    with pytest.raises(MissingTargetError):
        find(Target.parse("package:same.f.g"))


def test_a_module_that_is_not_loaded_is_not_loaded_for_it() -> None:
    with pytest.raises(ModuleNotLoaded):
        find(Target.parse("no.such.module:name"))
    assert "no" not in sys.modules


def test_a_name_in_what_keeps_no_attributes_is_missing() -> None:
    with pytest.raises(MissingTargetError, match="a int, which keeps no attributes of its own"):
        slot("Odd.Inner.value.real")
    with pytest.raises(MissingTargetError):
        slot_of(object(), "name", "x:y.name")


def test_a_class_of_c_cannot_be_written_and_says_so() -> None:
    with pytest.raises(TypeError):
        slot_of(int, "bit_length", "builtins:int.bit_length").put(function)
    assert slot_of(int, "bit_length", "builtins:int.bit_length").value() is int.bit_length


def test_a_module_of_c_can_be_written() -> None:
    found = find(Target.parse("math:floor"))
    raw = found.raw()
    found.put(function)
    assert math.floor is function
    found.put(raw)
    assert math.floor is raw


def test_an_attribute_of_an_instance_falls_back_on_its_class(monkeypatch: pytest.MonkeyPatch) -> None:
    thing = types.SimpleNamespace(own=1)
    monkeypatch.setitem(globals(), "thing", thing)
    assert slot("thing.own").value() == 1
    assert slot("thing.__repr__").raw() is MISSING
    assert slot("thing.__repr__").value() is not MISSING


# --- __new__, which Python does not take back by itself ------------------------------------------------------------


class Counted:
    made = 0

    def __new__(cls, *args: Any) -> Any:
        cls.made += 1
        return super().__new__(cls)


class BelowCounted(Counted):
    def __init__(self, *args: Any) -> None:
        self.args = args


class Number(int):
    pass


class Names(dict):  # type: ignore[type-arg]
    def __init__(self, *args: Any) -> None:
        super().__init__()


@pytest.mark.parametrize("owner", [BelowCounted, Number, Names])
def test_a_class_whose_new_was_put_and_deleted_is_called_as_before(owner: type) -> None:
    def answers() -> list[str]:
        found = []
        for args in ((), (1,), (1, 2, 3)):
            try:
                made = owner(*args)
                found.append(f"{made} {vars(made)}" if owner is not BelowCounted else str(vars(made)))
            except TypeError as error:
                found.append(str(error))
        return found

    def new(cls: type, *args: Any) -> Any:
        return inherited(cls, *args)

    inherited = owner.__new__
    before, entries = answers(), {key: value for key, value in vars(owner).items() if key != "made"}
    found = slot_of(owner, "__new__", f"{__name__}:{owner.__name__}.__new__")
    for _ in range(2):
        found.put(staticmethod(new))
        assert answers() == before
        found.put(MISSING)
        assert {key: value for key, value in vars(owner).items() if key != "made"} == entries
        assert answers() == before


@pytest.mark.parametrize("name", ["__init__", "__call__", "__len__", "__eq__", "__getattr__", "__getattribute__"])
def test_a_special_method_that_was_put_and_deleted_is_as_before(name: str) -> None:
    class Owner(Base):
        def __init__(self, *args: Any) -> None:
            self.args = args

    class Below(Owner):
        pass

    def behaviour() -> list[Any]:
        first, second = Below(1, 2), Below(1, 2)
        found: list[Any] = [first.args, first == second, first == first]
        for attempt in (lambda: first(), lambda: len(first), lambda: first.absent, lambda: hash(first) and 1):
            try:
                found.append(attempt())
            except (TypeError, AttributeError) as error:
                found.append(str(error))
        return found

    before = behaviour()
    found = slot_of(Below, name, f"x:Below.{name}")
    found.put(lambda self, *args: 1 if name != "__init__" else None)
    assert found.raw() is not MISSING
    found.put(MISSING)
    assert behaviour() == before


# --- items and elements --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [dict, OrderedDict, lambda **items: defaultdict(list, items), ChainMap])
def test_an_item_is_read_put_and_dropped_and_reading_makes_none(make: Any) -> None:
    mapping = make(a=1) if make is not ChainMap else ChainMap({"a": 1})
    there, absent = ItemSlot(mapping, "a", "m:x['a']"), ItemSlot(mapping, "b", "m:x['b']")
    assert (there.raw(), absent.raw()) == (1, MISSING)
    assert dict(mapping) == {"a": 1}
    there.put(2)
    absent.put(None)
    assert dict(mapping) == {"a": 2, "b": None}
    assert absent.raw() is None
    absent.put(MISSING)
    absent.put(MISSING)
    assert dict(mapping) == {"a": 2}


def test_a_variable_of_the_environment_is_held_by_its_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STANDIN_VARIABLE", "one")
    found = ItemSlot(os.environ, "STANDIN_VARIABLE", "os:environ['STANDIN_VARIABLE']")
    assert found.holds("one") and not found.holds("two")
    found.put(MISSING)
    assert "STANDIN_VARIABLE" not in os.environ


def test_an_element_goes_back_to_its_place() -> None:
    elements = ["a", "b", "c"]
    found = ElementSlot(elements, "b", "m:x['b']")
    found.put(MISSING)
    assert elements == ["a", "c"]
    found.put("b")
    found.put("b")
    assert elements == ["a", "b", "c"]


def test_an_element_of_a_set_that_is_shared_comes_and_goes() -> None:
    elements = {"a"}
    found = ElementSlot(elements, "b", "m:x['b']")
    assert found.raw() is MISSING
    found.put("b")
    assert elements == {"a", "b"} and found.holds("b")
    found.put(MISSING)
    assert elements == {"a"}


def test_an_element_that_cannot_be_hashed_has_a_key() -> None:
    assert hash(ElementSlot([["a"]], ["a"], "m:x[['a']]").key) is not None


def test_missing_is_false_and_is_not_none() -> None:
    assert not MISSING
    assert MISSING is not None
    assert repr(MISSING) == "<missing>"
    assert isinstance(slot("function"), ModuleSlot)
