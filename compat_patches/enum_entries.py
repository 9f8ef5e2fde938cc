"""Members of enums, which an enum keeps in several places at once: each has one slot here that writes all of them."""

from __future__ import annotations

import enum
from typing import Any

from .errors import PatchError
from .manifest import Target
from .plans import Plan
from .target import MISSING, Slot, find


class MemberSlot(Slot):
    """A member under its name and all of its aliases, and by its value. The raw entry is the member."""

    __slots__ = ()

    def raw(self) -> Any:
        return self.owner._member_map_.get(self.name, MISSING)

    def put(self, entry: Any) -> None:
        enumeration, old = self.owner, self.raw()
        names = [self.name]
        if old is not MISSING:
            names = [name for name, member in enumeration._member_map_.items() if member is old]
            _forget_value(enumeration, old)
        for name in names:
            # Where the class redirects the name, because a base has it too, the table decides.
            holds_it = vars(enumeration).get(name, MISSING) is old
            if entry is not MISSING:
                enumeration._member_map_[name] = entry
                if holds_it:
                    type.__setattr__(enumeration, name, entry)
                continue
            enumeration._member_map_.pop(name, None)
            if name in enumeration._member_names_:
                enumeration._member_names_.remove(name)
            if holds_it and old is not MISSING:
                type.__delattr__(enumeration, name)
        if entry is not MISSING:
            if self.name not in enumeration._member_names_ and old is MISSING:
                enumeration._member_names_.append(self.name)
            _note_value(enumeration, entry)

    def is_current(self) -> bool:
        return _enumeration(self.title) is self.owner


class ValueSlot(Slot):
    """The value of a member, and the enum's way from the value to the member. The raw entry is the value."""

    __slots__ = ()

    def raw(self) -> Any:
        return vars(self.owner).get("_value_", MISSING)

    def put(self, entry: Any) -> None:
        member, enumeration = self.owner, type(self.owner)
        # One that was taken out of the enum since is not to be found again by its value.
        listed = enumeration._member_map_.get(member._name_) is member
        if listed:
            _forget_value(enumeration, member)
        vars(member)["_value_"] = entry
        if listed:
            _note_value(enumeration, member)

    def is_current(self) -> bool:
        enumeration = _enumeration(self.title)
        return enumeration is not None and enumeration._member_map_.get(self.name) is self.owner


def is_member(slot: Slot) -> bool:
    """Whether a slot is that of a member of an enum."""
    return isinstance(slot.owner, enum.EnumMeta) and slot.name in slot.owner.__members__


def new_member(slot: Slot, value: Any) -> Any:
    """Make a member of the enum that a slot is in; the enum does not know of it yet.

    Raises:
        PatchError: the enum has a member of that value, or makes its members in a way of its own.
    """
    enumeration: Any = slot.owner
    _refuse(slot, value)
    kind = enumeration._member_type_
    made = object.__new__(enumeration) if kind is object else kind.__new__(enumeration, value)
    made._name_, made._value_, made.__objclass__ = slot.name, value, enumeration
    made._sort_order_ = len(enumeration._member_names_)
    return made


def plan_member(slot: Slot, member: Any) -> Plan:
    """Plan that the enum in which a slot is has one member more."""
    return Plan(MemberSlot(slot.owner, slot.name, slot.title), MISSING, member)


def plan_value(slots: list[Slot], value: Any) -> list[Plan]:
    """Plan that a member of an enum has another value, by which the enum then finds it.

    The member stays the object that it is, so that whoever holds it sees the new value. Where it is itself a string or
    a number, which cannot change, it is replaced by a new one under all of its names.

    Args:
        slots: all that hold the member; one of them at least is the enum's own.
        value: the new value.

    Raises:
        PatchError: another member has that value, or the enum makes its members in a way of its own.
    """
    slot = next(filter(is_member, slots))
    enumeration: Any = slot.owner
    member = enumeration.__members__[slot.name]
    if enumeration._member_type_ is object:
        _refuse(slot, value)
        place = ValueSlot(member, member._name_, f"{slot.title.rpartition('.')[0]}.{member._name_}")
        return [Plan(place, place.raw(), value)]
    made = new_member(slot, value)
    made._name_ = member._name_
    if hasattr(member, "_sort_order_"):  # From Python 3.11.
        made._sort_order_ = member._sort_order_
    own = MemberSlot(enumeration, member._name_, f"{slot.title.rpartition('.')[0]}.{member._name_}")
    return [Plan(own, member, made)] + [Plan(other, other.raw(), made) for other in slots if not is_member(other)]


def _refuse(slot: Slot, value: Any) -> None:
    """Raise where a member that we make would not be what the enum itself would make of the value."""
    enumeration: Any = slot.owner
    where, kind = f"{slot.title}: {enumeration.__name__}", enumeration._member_type_
    if issubclass(enumeration, enum.Flag):
        raise PatchError(f"{where} is a flag, whose members are combined; expected an enum")
    for name, does in (("__init__", "initialises"), ("__new_member__", "makes"), ("value", "tells the values of")):
        if any(name in vars(base) for base in enumeration.__mro__ if isinstance(base, enum.EnumMeta) and _is_own(base)):
            raise PatchError(f"{where} {does} its members itself, by {name}; expected a plain enum")
    if any(slot.name in vars(base) for base in enumeration.__mro__[1:]):
        raise PatchError(f"{where} has {slot.name!r} from a class that it is derived from; expected another name")
    if kind is not object and not isinstance(value, kind):
        raise PatchError(f"{where} has members that are a {kind.__name__} each; found {value!r}, expected such a value")
    for member in enumeration:
        if member.value == value:
            raise PatchError(f"{slot.title}: {value!r} is the value of {member!r} already; expected another one")


def _is_own(base: type) -> bool:
    """Whether a class is somebody's, and not the library's."""
    return base.__module__ != "enum"


def _note_value(enumeration: Any, member: Any) -> None:
    value = member._value_
    try:
        enumeration._value2member_map_.setdefault(value, member)
    except TypeError:
        # What cannot be hashed is looked for one by one, from Python 3.12 in lists of their own.
        _add(enumeration, "_unhashable_values_", value)
        named = vars(enumeration).get("_unhashable_values_map_")
        if named is not None:
            named.setdefault(member._name_, []).append(value)
    else:
        _add(enumeration, "_hashable_values_", value)


def _forget_value(enumeration: Any, member: Any) -> None:
    value, table = member._value_, enumeration._value2member_map_
    try:
        if table.get(value) is member:
            del table[value]
    except TypeError:
        _drop(enumeration, "_unhashable_values_", value)
        named = vars(enumeration).get("_unhashable_values_map_", {})
        if value in named.get(member._name_, ()):
            named[member._name_].remove(value)
            if not named[member._name_]:
                del named[member._name_]
    else:
        _drop(enumeration, "_hashable_values_", value)


def _add(enumeration: Any, name: str, value: Any) -> None:
    """Add a value to a list that an enum has from some Python on."""
    values = vars(enumeration).get(name)
    if values is not None and value not in values:
        values.append(value)


def _drop(enumeration: Any, name: str, value: Any) -> None:
    """Take an :func:`_add` back."""
    values = vars(enumeration).get(name, ())
    if value in values:
        values.remove(value)


def _enumeration(title: str) -> Any:
    try:
        owner = find(Target.parse(title)).owner
    except LookupError:
        return None
    return owner if isinstance(owner, enum.EnumMeta) else None
