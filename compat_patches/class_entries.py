"""Entries that a class keeps in several places at once: the members of an enum, the defaults of a dataclass."""

from __future__ import annotations

import dataclasses
import enum
import inspect
from types import FunctionType, MemberDescriptorType
from typing import Any

from .errors import PatchError
from .manifest import Target
from .plans import Plan
from .target import MISSING, ClassSlot, ElementSlot, InstanceSlot, ItemSlot, Slot, find

# --- members of enums ----------------------------------------------------------------------------------------------


def new_member(slot: Slot, value: Any) -> Any:
    """Make a member of the enum that a slot is in; the enum does not know of it yet.

    Raises:
        PatchError: the enum has a member of that value, or makes its members in a way of its own.
    """
    enumeration: Any = slot.owner
    _refuse_value(slot, value)
    make = getattr(enumeration, "__new_member__", None)
    kind = enumeration._member_type_
    if make is not None:
        made = make(enumeration, value)
    else:
        made = object.__new__(enumeration) if kind is object else kind.__new__(enumeration, value)
    made._name_, made._value_, made.__objclass__ = slot.name, value, enumeration
    made._sort_order_ = len(enumeration._member_names_)
    return made


def _refuse_value(slot: Slot, value: Any) -> None:
    enumeration: Any = slot.owner
    if issubclass(enumeration, enum.Flag):
        raise PatchError(
            f"{slot.title}: {enumeration.__name__} is a flag, whose members are combined; expected an enum"
        )
    if getattr(enumeration, "__init__", None) is not getattr(enum.Enum, "__init__", None):
        raise PatchError(f"{slot.title}: {enumeration.__name__} initialises its members itself; expected a plain enum")
    for member in enumeration:
        if member.value == value:
            raise PatchError(f"{slot.title}: {value!r} is the value of {member!r} already; expected another one")


def plan_member(slot: Slot, member: Any) -> list[Plan]:
    """Plan where else a member that is put into ``slot`` has to stand, for the enum to list and to find it."""
    enumeration = slot.owner
    where = slot.title.rpartition(".")[0]
    places: list[tuple[Slot, Any]] = [
        (ItemSlot(enumeration._member_map_, slot.name, f"{where}._member_map_[{slot.name!r}]"), member),
        (ElementSlot(enumeration._member_names_, slot.name, f"{where}._member_names_[{slot.name!r}]"), slot.name),
        *_found_by_value(slot, member.value, member),
    ]
    return [Plan(place, place.raw(), entry) for place, entry in places]


def is_member(slot: Slot) -> bool:
    """Whether a slot is that of a member of an enum."""
    return isinstance(slot.owner, enum.EnumMeta) and slot.name in slot.owner.__members__


def plan_value(slot: Slot, value: Any) -> list[Plan]:
    """Plan that a member of an enum has another value, by which the enum then finds it.

    The member stays the object that it is, so that whoever holds it sees the new value. Where it is itself a string or
    a number, which cannot change, it is replaced by a new one under all of its names.

    Raises:
        PatchError: another member has that value, or the enum makes its members in a way of its own.
    """
    enumeration: Any = slot.owner
    member = enumeration.__members__[slot.name]
    _refuse_value(slot, value)
    places: list[tuple[Slot, Any]] = []
    if enumeration._member_type_ is object:
        places.append((InstanceSlot(member, "_value_", f"{slot.title}._value_"), value))
        found = member
    else:
        found = new_member(slot, value)
        found._name_ = member._name_
        if hasattr(member, "_sort_order_"):  # From Python 3.11.
            found._sort_order_ = member._sort_order_
        where = slot.title.rpartition(".")[0]
        for name in [name for name, other in enumeration.__members__.items() if other is member]:
            title = f"{where}.{name}"
            places.append((ClassSlot(enumeration, name, title), found))
            places.append((ItemSlot(enumeration._member_map_, name, f"{where}._member_map_[{name!r}]"), found))
    places += _found_by_value(slot, member.value, MISSING)
    places += _found_by_value(slot, value, found)
    return [Plan(place, place.raw(), entry) for place, entry in places]


def _found_by_value(slot: Slot, value: Any, entry: Any) -> list[tuple[Slot, Any]]:
    table = slot.owner._value2member_map_
    try:
        hash(value)
    except TypeError:
        # The enum looks for what cannot be hashed among all members.
        return []
    where = slot.title.rpartition(".")[0]
    return [(ItemSlot(table, value, f"{where}._value2member_map_[{value!r}]"), entry)]


# --- defaults of dataclasses ---------------------------------------------------------------------------------------


class FieldSlot(Slot):
    """The default that a field of a dataclass tells, and hands on to dataclasses that derive from it."""

    __slots__ = ()

    def raw(self) -> Any:
        default = self.owner.default
        return MISSING if default is dataclasses.MISSING else default

    def put(self, entry: Any) -> None:
        self.owner.default = dataclasses.MISSING if entry is MISSING else entry

    def is_current(self) -> bool:
        return _fields(_class_of(self.title)).get(self.name) is self.owner


class ParameterSlot(Slot):
    """The default of a parameter of a function, which has one."""

    __slots__ = ()

    def _place(self) -> int | None:
        """Where it stands among the defaults of positional parameters; None where it is a keyword's."""
        code = self.owner.__code__
        positional = code.co_varnames[: code.co_argcount]
        with_default = positional[len(positional) - len(self.owner.__defaults__ or ()) :]
        return with_default.index(self.name) if self.name in with_default else None

    def raw(self) -> Any:
        place = self._place()
        if place is None:
            return (self.owner.__kwdefaults__ or {}).get(self.name, MISSING)
        return self.owner.__defaults__[place]

    def put(self, entry: Any) -> None:
        place = self._place()
        if place is None:
            self.owner.__kwdefaults__ = {**(self.owner.__kwdefaults__ or {}), self.name: entry}
        else:
            defaults = self.owner.__defaults__
            self.owner.__defaults__ = (*defaults[:place], entry, *defaults[place + 1 :])

    def is_current(self) -> bool:
        owner = _class_of(self.title)
        return owner is not None and inspect.unwrap(owner.__init__) is self.owner


def plan_default(plan: Plan) -> list[Plan]:
    """Plan all places of the default of a dataclass's field, where what is planned is one; else that plan alone.

    Raises:
        PatchError: the field has no default that could be set.
    """
    slot = plan.slot
    field = _fields(slot.owner).get(slot.name) if isinstance(slot, ClassSlot) else None
    if field is None:
        return [plan]
    init = inspect.unwrap(slot.owner.__init__)
    places: list[Slot] = [FieldSlot(field, slot.name, slot.title)]
    if field.init and isinstance(init, FunctionType):
        places.append(ParameterSlot(init, slot.name, slot.title))
    if any(place.raw() is MISSING for place in places):
        raise PatchError(f"{slot.title} is a field without a plain default; wrap {slot.owner.__qualname__}.__init__")
    # With slots=True the class holds a descriptor under that name, and no default.
    kept = [] if isinstance(plan.below, MemberDescriptorType) else [plan]
    return kept + [Plan(place, place.raw(), plan.entry) for place in places]


def _class_of(title: str) -> Any:
    try:
        return find(Target.parse(title)).owner
    except LookupError:
        return None


def _fields(owner: Any) -> dict[str, Any]:
    return vars(owner).get("__dataclass_fields__", {}) if isinstance(owner, type) else {}
