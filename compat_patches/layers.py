"""Layers: what we have put into slots, in what order, and how one is taken out from among the others.

Pure bookkeeping. Nothing here imports, logs or calls a patch's code; the engine calls it under its lock.
"""

from __future__ import annotations

import sys
from types import FunctionType
from typing import Any

from .frozen import Frozen
from .plans import Plan
from .target import MISSING, ModuleSlot, Slot


class Layer:
    """One entry of ours in one slot.

    Attributes:
        patch: the qualified id of the patch that it belongs to.
        plan: what was written, and what was there before.
        below: what will be put back when this layer is taken off; changes when a layer of ours beneath goes.
        under: what of somebody else's it was beneath when it was undone.
        lingering: undone, but still referred to by something above, which is not ours to throw away.
    """

    __slots__ = ("below", "lingering", "patch", "plan", "under")

    def __init__(self, patch: str, plan: Plan) -> None:
        self.patch = patch
        self.plan = plan
        self.below = plan.below
        self.under: Any = MISSING
        self.lingering = False


class Standing(Frozen):
    """How a layer stands: ``applied``, ``overlaid`` or ``lost``, and why."""

    state: str
    reason: str = ""


class Layers:
    """All layers of this process, by slot, the earliest first."""

    def __init__(self) -> None:
        self._stacks: dict[tuple[str, int, Any], list[Layer]] = {}

    def __len__(self) -> int:
        return sum(map(len, self._stacks.values()))

    def put(self, patch: str, plans: list[Plan], into: list[Layer]) -> None:
        """Write all plans or, when one write raises or is interrupted, none.

        Args:
            patch: the qualified id of the patch.
            plans: what is to be written.
            into: takes the layers, each before it is written, so that none can be in a slot and unknown.
        """
        kept = len(into)
        try:
            for plan in plans:
                layer = Layer(patch, plan)
                into.append(layer)
                self._stacks.setdefault(plan.slot.key, []).append(layer)
                plan.slot.put(plan.entry)
        except BaseException:
            for layer in reversed(into[kept:]):
                if not layer.plan.slot.holds(layer.below):
                    layer.plan.slot.put(layer.below)
                self._forget(layer)
            del into[kept:]
            raise

    def standing(self, layer: Layer) -> Standing:
        """Look how a layer stands now. Changes nothing."""
        slot, entry = layer.plan.slot, layer.plan.entry
        found = slot.raw()
        if found is MISSING and entry is not MISSING:
            return Standing("lost", f"somebody has deleted {slot.title}")
        beneath = self._beneath_ours(layer, found)
        if slot.same(beneath, entry):
            if slot.is_current():
                return Standing("applied")
            return Standing("lost", f"{slot.title} leads elsewhere now: its module or its class was replaced")
        if _reaches(beneath, entry):
            return Standing("overlaid", f"{_described(beneath)} was put on top of it in {slot.title}")
        stack = self._stacks[slot.key]
        if any(slot.same(beneath, other.below) for other in stack[: stack.index(layer) + 1]):
            return Standing("lost", f"somebody has put back what was in {slot.title} before")
        if _is_upstreams(slot, beneath):
            return Standing("lost", f"somebody has put back what upstream defines as {slot.title}")
        return Standing(
            "overlaid", f"{_described(beneath)} stands in its place in {slot.title}, and may or may not call it"
        )

    def _beneath_ours(self, layer: Layer, found: Any) -> Any:
        """What other layers of ours, of which we know what they were put on, stand on in the end."""
        same = layer.plan.slot.same
        for other in reversed(self._stacks[layer.plan.slot.key]):
            if other is layer:
                break
            if same(other.plan.entry, found):
                found = other.below
        # Of those that were put before it, one can stand there again alone; then this layer has gone.
        return found

    def beneath(self, slot: Slot) -> tuple[Any, list[str]]:
        """What stands in a slot beneath the layers of ours that are on top of it. Changes nothing.

        Returns:
            The raw entry, and the qualified ids of the patches whose layers somebody has taken out of the slot.
        """
        stack = self._stacks.get(slot.key, [])
        lost = [layer.patch for layer in stack if not layer.lingering and self.standing(layer).state == "lost"]
        found = slot.raw()
        for layer in reversed(stack):
            if slot.same(layer.plan.entry, found):
                found = layer.below
        return found, lost

    def take_off(self, layer: Layer) -> Standing:
        """Undo a layer, whatever was put on top of it since.

        Returns:
            ``reverted``, or ``overlaid`` where something on top still refers to the entry, with the reason.
        """
        slot, entry = layer.plan.slot, layer.plan.entry
        above = self._above(layer)
        standing = self.standing(layer)
        # In this order, whoever is interrupted can do it once more: it lingers, it is quiet, it leaves the slot, and
        # only then the books.
        layer.under = self._beneath_ours(layer, slot.raw())
        layer.lingering = True
        for quieting in layer.plan.quietings:
            # Also where the entry leaves the slot: somebody may have copied it by value, and must not notice.
            quieting.hand_through()
        # Two patches can set one and the same value; then what is there is the upper one's.
        if slot.holds(entry) and (above is None or not slot.same(above.plan.entry, entry)):
            self._put_back(layer)
            return Standing("reverted")
        if standing.state == "lost":
            self._forget(layer)
            return Standing("reverted", standing.reason)
        if above is not None and (layer.plan.quietings or not above.plan.calls_below):
            above.below = layer.below
            self._forget(layer)
            return Standing("reverted")
        if above is not None:
            return Standing("overlaid", f"{above.patch} was built on it and keeps it in effect until that is undone")
        if layer.plan.quietings:
            return Standing("overlaid", f"undone: it hands calls through, as {standing.reason}")
        return Standing("overlaid", f"undone as far as it can be: {standing.reason}")

    def abandon(self, layer: Layer) -> None:
        """Strike a layer that was taken off from the books, although something may refer to it still."""
        self._forget(layer)

    def settle(self, layer: Layer) -> bool:
        """Clear a lingering layer away where nothing refers to it any more.

        Returns:
            Whether it is gone.
        """
        slot = layer.plan.slot
        if slot.holds(layer.plan.entry):
            self._put_back(layer)
            return True
        if self.standing(layer).state == "lost":
            self._forget(layer)
            return True
        return False

    def awaken(self, layer: Layer) -> bool:
        """Let a lingering layer act again in its old place.

        Returns:
            False where it is not in a place from which it could act.
        """
        slot = layer.plan.slot
        found = self._beneath_ours(layer, slot.raw())
        # Whether it is called by what came since, as after a reload, cannot be known; then it is put on top anew.
        there = slot.same(found, layer.under) or slot.same(found, layer.plan.entry) or _reaches(found, layer.plan.entry)
        if not layer.plan.quietings or not there or self.standing(layer).state == "lost":
            return False
        for quieting in layer.plan.quietings:
            quieting.act()
        layer.lingering = False
        return True

    def holds(self, layer: Layer) -> bool:
        """Whether the layer is still on the books."""
        return layer in self._stacks.get(layer.plan.slot.key, ())

    def _forget(self, layer: Layer) -> None:
        stack = self._stacks.get(layer.plan.slot.key, [])
        if layer in stack:
            stack.remove(layer)
        if not stack:
            self._stacks.pop(layer.plan.slot.key, None)

    def _above(self, layer: Layer) -> Layer | None:
        """Our own layer that was put straight on top of this one."""
        stack = self._stacks[layer.plan.slot.key]
        for other in stack[stack.index(layer) + 1 :]:
            if other.plan.slot.same(other.below, layer.plan.entry):
                return other
        return None

    def _put_back(self, layer: Layer) -> None:
        """Put back what is below, past layers of ours that were undone already and only lingered beneath this one."""
        slot, below, gone = layer.plan.slot, layer.below, [layer]
        for other in reversed(self._stacks[slot.key]):
            if other is not layer and other.lingering and slot.same(other.plan.entry, below):
                below = other.below
                gone.append(other)
        slot.put(below)
        for other in gone:
            self._forget(other)


def _reaches(found: Any, entry: Any) -> bool:
    """Whether a foreign object says that it wraps ours, by ``__wrapped__`` or as a descriptor does."""
    ours = {id(entry), id(_inner(entry))}
    seen: set[int] = set()
    while found is not None and id(found) not in seen:
        if id(found) in ours:
            return True
        seen.add(id(found))
        inner = _inner(found)
        found = inner if inner is not found else _own(found, "__wrapped__")
    return False


def _is_upstreams(slot: Slot, found: Any) -> bool:
    """Whether a function is the one that the target's own file defines, which cannot know of us."""
    inner = _inner(found)
    if type(inner) is not FunctionType or inner.__closure__ is not None or inner.__code__.co_name != slot.name:
        return False
    module = slot.owner if isinstance(slot, ModuleSlot) else sys.modules.get(getattr(slot.owner, "__module__", ""))
    return inner.__code__.co_filename == getattr(module, "__file__", None)


def _inner(entry: Any) -> Any:
    # By type(): an isinstance asks a proxy for its __class__, which may run or raise anything.
    kind = type(entry)
    if issubclass(kind, staticmethod | classmethod):
        return entry.__func__
    if issubclass(kind, property):
        return entry.fget
    return entry


def _own(value: Any, name: str) -> Any:
    """An attribute that an object really has: what ``__getattr__`` makes up may never end, as unittest.mock's call."""
    try:
        return object.__getattribute__(value, name)
    except Exception:
        return None


def _described(value: Any) -> str:
    inner = _inner(value)
    if type(inner) is FunctionType:
        # Its __module__ may be copied from what it wraps; the code says who wrote it.
        return f"a function from {inner.__code__.co_filename}:{inner.__code__.co_firstlineno}"
    kind = f"{type(inner).__module__}.{type(inner).__qualname__}"
    name = _own(inner, "__qualname__")
    return f"{kind} {name!r}" if type(name) is str else f"a {kind}"
