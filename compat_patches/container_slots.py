"""Slots inside of containers: a key of a mapping, an element of a list or of a set, a variable of the environment."""

from __future__ import annotations

from typing import Any

from .manifest import Target
from .target import MISSING, Slot, find


class _InnerSlot(Slot):
    """A place inside of a container that a module or a class holds; ``title`` is the container's, and ``[key]``."""

    __slots__ = ()

    def is_current(self) -> bool:
        try:
            return find(Target.parse(self.title.partition("[")[0])).value() is self.owner
        except LookupError:
            return False


class ItemSlot(_InnerSlot):
    """A key of a mapping; ``os.environ`` is one."""

    __slots__ = ()

    def raw(self) -> Any:
        # A defaultdict makes an entry of every look-up; nothing is to appear because we looked.
        if self.name not in self.owner:
            return MISSING
        try:
            return self.owner[self.name]
        except KeyError:
            return MISSING

    def same(self, one: Any, other: Any) -> bool:
        # os.environ makes a new string of every look-up.
        return one is other or (type(one) is str and type(other) is str and one == other)

    def put(self, entry: Any) -> None:
        if entry is MISSING:
            self.owner.pop(self.name, None)
        else:
            self.owner[self.name] = entry


class IndexSlot(_InnerSlot):
    """An element of a list, by its index. Where others have moved what was put there, it is found by identity."""

    __slots__ = ("_put",)

    def __init__(self, owner: list[Any], name: int, title: str) -> None:
        super().__init__(owner, name, title)
        self._put: Any = MISSING

    def _index(self) -> int:
        elements = list(self.owner)
        there = self.name < len(elements)
        if self._put is MISSING or (there and elements[self.name] is self._put):
            return int(self.name)
        return next((index for index, element in enumerate(elements) if element is self._put), int(self.name))

    def raw(self) -> Any:
        index = self._index()
        return self.owner[index] if index < len(self.owner) else MISSING

    def put(self, entry: Any) -> None:
        index = self._index()
        if index < len(self.owner):
            self.owner[index] = self._put = entry


class ElementSlot(_InnerSlot):
    """The presence of one element in a list or a set. The raw entry is the element, or :data:`MISSING`.

    Where in a list the element stood is remembered when it is taken out, so that putting it back does not reorder.
    ``position`` is where one that was not there is put; at the end where it is None.
    """

    __slots__ = ("_position",)

    def __init__(self, owner: Any, name: Any, title: str, position: int | None = None) -> None:
        super().__init__(owner, name, title)
        self._position = position
        try:
            hash(name)
        except TypeError:
            # A list can hold lists.
            self.key = (*self.key[:2], repr(name))

    def raw(self) -> Any:
        for element in tuple(self.owner):
            if element is self.name or element == self.name:
                return element
        return MISSING

    def same(self, one: Any, other: Any) -> bool:
        return (one is MISSING) == (other is MISSING)

    def put(self, entry: Any) -> None:
        present = self.raw()
        if entry is MISSING:
            if present is MISSING:
                return
            if isinstance(self.owner, list):
                self._position = self.owner.index(present)
            self.owner.remove(present)
        elif present is MISSING:
            if isinstance(self.owner, list):
                self.owner.insert(len(self.owner) if self._position is None else self._position, entry)
            else:
                self.owner.add(entry)
