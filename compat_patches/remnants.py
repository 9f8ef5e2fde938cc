"""Remnants: functions of ours that were undone for good while somebody else still held them.

Such a function hands its calls through and means nothing any more, but whoever holds it can put it back into its slot
at any time: who takes a wrapper off puts back what it was put on. It is known there for as long as anybody holds it,
and no longer, as it is referred to weakly. Pure bookkeeping; nothing here calls anybody's code.
"""

from __future__ import annotations

import functools
from types import FunctionType
from typing import Any
from weakref import WeakKeyDictionary

from .frozen import Frozen
from .target import Slot


class _Place(Frozen):
    """Where a remnant has stood.

    Attributes:
        slot: the place.
        around: what the entry held besides the function; see :func:`_around`.
        below: what stood beneath it.
    """

    slot: Slot
    around: tuple[Any, ...]
    below: Any


class Remnants:
    """All remnants of this process."""

    def __init__(self) -> None:
        # By the function, as a descriptor around it cannot be referred to weakly.
        self._places: WeakKeyDictionary[FunctionType, dict[tuple[str, int, Any], _Place]] = WeakKeyDictionary()

    def remember(self, slot: Slot, entry: Any, below: Any) -> None:
        """From now on take an entry, which hands its calls through, for what stood beneath it."""
        function = inner(entry)
        if type(function) is FunctionType:
            self._places.setdefault(function, {})[slot.key] = _Place(slot, _around(entry), below)

    def forget(self, slot: Slot, entry: Any) -> None:
        """Take an entry for what it is again, as it is about to act."""
        function = inner(entry)
        if type(function) is FunctionType:
            self._places.get(function, {}).pop(slot.key, None)

    def see_through(self, slot: Slot, found: Any) -> Any:
        """What an entry of a slot comes to: itself or, where it is a remnant, what that stood on in the end."""
        seen: set[int] = set()
        while self._places:
            function = inner(found)
            place = self._places.get(function, {}).get(slot.key) if type(function) is FunctionType else None
            # Two that were put upon each other in turn, by whoever held both, lead nowhere.
            if place is None or id(function) in seen or not _same(place.around, _around(found)):
                break
            seen.add(id(function))
            found = place.below
        return found

    def clear_away(self) -> None:
        """Take all that stand in a slot openly out of it; forget those whose slot is none any more."""
        for function, places in list(self._places.items()):
            for key, place in list(places.items()):
                found = place.slot.raw()
                below = self.see_through(place.slot, found)
                if below is not found:
                    place.slot.put(below)
                if not place.slot.is_current():
                    # Only what keeps the owner alive keeps the slot; this would be the last to do so.
                    del places[key]
            if not places:
                self._places.pop(function, None)


def inner(entry: Any) -> Any:
    """The function within a descriptor of Python's own; anything else is returned as it is."""
    # By type(): an isinstance asks a proxy for its __class__, which may run or raise anything.
    kind = type(entry)
    if issubclass(kind, staticmethod | classmethod):
        return entry.__func__
    if issubclass(kind, property):
        return entry.fget
    if issubclass(kind, functools.cached_property):
        return entry.func
    return entry


def _around(entry: Any) -> tuple[Any, ...]:
    """All that tells one descriptor around a function from another, as a property with another's setter."""
    kind = type(entry)
    return (kind, entry.fset, entry.fdel) if issubclass(kind, property) else (kind,)


def _same(one: tuple[Any, ...], other: tuple[Any, ...]) -> bool:
    return len(one) == len(other) and all(left is right for left, right in zip(one, other, strict=True))
