"""What slots, their owners and the objects in them look like, so that undoing can be seen to be exact."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator
from types import FunctionType, ModuleType
from typing import Any

from ...container_slots import ElementSlot, ItemSlot
from ...target import MISSING, Slot
from ..slots import described

# Python itself fills these in when somebody asks for annotations.
_PYTHONS_OWN = frozenset({"__annotations__", "__annotations_cache__", "__annotate_func__"})
_PARTS = ("__code__", "__defaults__", "__kwdefaults__", "__name__", "__qualname__", "__module__", "__doc__")


class Photograph:
    """The owners of slots, entry for entry, and the functions in the slots, part for part."""

    def __init__(self, slots: Iterable[Slot]) -> None:
        self._slots = list(slots)
        self._owners = {id(slot.owner): (slot, _entries(slot)) for slot in self._slots}
        self._functions = [
            (slot.title, function, _parts(function)) for slot in self._slots for function in functions_in(slot.value())
        ]

    def differences(self) -> Iterator[str]:
        """What is not as it was."""
        for slot, before in self._owners.values():
            yield from self._owner_differences(slot, before)
        for title, function, before in self._functions:
            now = _parts(function)
            for name in sorted({*before, *now}):
                one, other = before.get(name, MISSING), now.get(name, MISSING)
                if not same(one, other):
                    yield (
                        f"the original of {title} itself has been changed: its {name} was {described(one)}, now it is "
                        f"{described(other)}"
                    )

    def _owner_differences(self, slot: Slot, before: dict[Any, Any] | list[Any]) -> Iterator[str]:
        now = _entries(slot)
        if isinstance(before, list) or isinstance(now, list):
            if before != now:
                yield f"{slot.title.partition('[')[0]} was {before!r}, now it is {now!r}"
            return
        place = slot.title.partition("[")[0] if isinstance(slot, ItemSlot) else _owner_title(slot)
        for name in {**before, **now}:
            one, other = before.get(name, MISSING), now.get(name, MISSING)
            if same(one, other) or name in _PYTHONS_OWN:
                continue
            if one is MISSING and isinstance(other, ModuleType):
                # A submodule that the implementation has imported.
                continue
            if one is MISSING:
                yield f"{place} had no entry {name!r} of its own, and now it has {described(other)}; it must be deleted"
            elif other is MISSING:
                yield f"{place} has lost its entry {name!r}, {described(one)}"
            else:
                yield f"{place} had {described(one)} as {name!r}, now it has {described(other)}"


def same(one: Any, other: Any) -> bool:
    """Whether two entries are one: the same object, or equal strings, which the environment makes anew each time."""
    return one is other or (type(one) is str and type(other) is str and one == other)


def functions_in(entry: Any) -> list[FunctionType]:
    """The plain functions that a raw entry consists of."""
    parts = [entry]
    if isinstance(entry, staticmethod | classmethod):
        parts = [entry.__func__]
    elif isinstance(entry, property):
        parts = [entry.fget, entry.fset, entry.fdel]
    elif isinstance(entry, functools.cached_property | functools.partial):
        parts = [entry.func]
    # Not isinstance: a proxy says that it is a function.
    return [part for part in parts if type(part) is FunctionType]


def _owner_title(slot: Slot) -> str:
    if isinstance(slot.owner, ModuleType):
        return slot.owner.__name__
    return slot.title.rpartition(".")[0] or slot.title


def _entries(slot: Slot) -> dict[Any, Any] | list[Any]:
    if isinstance(slot, ElementSlot):
        return list(slot.owner) if isinstance(slot.owner, list) else sorted(slot.owner, key=repr)
    return dict(slot.owner) if isinstance(slot, ItemSlot) else dict(vars(slot.owner))


def _parts(function: FunctionType) -> dict[str, Any]:
    return {**{name: getattr(function, name) for name in _PARTS}, **vars(function)}
