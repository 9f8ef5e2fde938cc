"""Defaults of dataclasses, which a class keeps in several places at once."""

from __future__ import annotations

import dataclasses
import inspect
from types import FunctionType, MemberDescriptorType
from typing import Any

from .errors import PatchError
from .manifest import Target
from .plans import Plan
from .target import MISSING, ClassSlot, Slot, find


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
