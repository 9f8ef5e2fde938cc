"""Layers: what we have put into slots, in what order, and how one is taken out from among the others.

Pure bookkeeping. Nothing here imports, logs or calls a patch's code; the engine calls it under its lock.
"""

from __future__ import annotations

import sys
from types import FunctionType
from typing import Any

from .frozen import Frozen
from .plans import Plan
from .remnants import Remnants
from .remnants import inner as _inner
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
        # Those in the stacks that linger, so that nobody has to look for them among all.
        self._lingering: dict[Layer, None] = {}
        # Those that have left the stacks.
        self._remnants = Remnants()

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
        beneath = self._beneath_ours(layer, slot.raw())
        if beneath is MISSING and entry is not MISSING:
            return Standing("lost", f"somebody has deleted {slot.title}")
        if slot.same(beneath, entry):
            if slot.is_current():
                return Standing("applied")
            return Standing("lost", f"{slot.title} leads elsewhere now: its module or its class was replaced")
        if _reaches(beneath, entry):
            return Standing("overlaid", f"{_described(beneath)} was put on top of it in {slot.title}")
        stack = self._stacks[slot.key]
        belows = [self._remnants.see_through(slot, other.below) for other in stack[: stack.index(layer) + 1]]
        if any(slot.same(beneath, below) for below in belows):
            return Standing("lost", f"somebody has put back what was in {slot.title} before")
        if _is_upstreams(slot, beneath):
            return Standing("lost", f"somebody has put back what upstream defines as {slot.title}")
        return Standing(
            "overlaid", f"{_described(beneath)} stands in its place in {slot.title}, and may or may not call it"
        )

    def _beneath_ours(self, layer: Layer, found: Any) -> Any:
        """What other layers of ours, of which we know what they were put on, stand on in the end."""
        slot = layer.plan.slot
        found = self._remnants.see_through(slot, found)
        for other in reversed(self._stacks[slot.key]):
            if other is layer:
                break
            if slot.same(other.plan.entry, found):
                found = self._remnants.see_through(slot, other.below)
        # Of those that were put before it, one can stand there again alone; then this layer has gone.
        return found

    def beneath(self, slot: Slot) -> tuple[Any, list[str]]:
        """What stands in a slot beneath the layers of ours that are on top of it. Changes nothing.

        Returns:
            The raw entry, and the qualified ids of the patches whose layers somebody has taken out of the slot.
        """
        stack = self._stacks.get(slot.key, [])
        lost = [layer.patch for layer in stack if not layer.lingering and self.standing(layer).state == "lost"]
        found = self._remnants.see_through(slot, slot.raw())
        for layer in reversed(stack):
            if slot.same(layer.plan.entry, found):
                found = self._remnants.see_through(slot, layer.below)
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
        if not layer.lingering:
            # Later it may be beneath something else, and what that calls cannot be known.
            layer.under = self._beneath_ours(layer, slot.raw())
        layer.lingering = True
        self._lingering[layer] = None
        for quieting in layer.plan.quietings:
            # Also where the entry leaves the slot: somebody may have copied it by value, and must not notice.
            quieting.hand_through()
        # Two patches can set one and the same value; then what is there is the upper one's.
        if self._is_on_top(layer) and (above is None or not slot.same(above.plan.entry, entry)):
            self._put_back(layer)
            return Standing("reverted")
        if standing.state == "lost":
            if above is not None:
                # Whoever undoes that one later is not to bring this one back.
                above.below = layer.below
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

    def clear_away(self) -> None:
        """Take what was undone, and somebody has uncovered or put back since, out of the slots."""
        self._remnants.clear_away()
        for layer in list(self._lingering):
            # A value has no identity: what is found there may be another's, who has set the same.
            if layer.plan.quietings and self.holds(layer) and self._is_on_top(layer):
                self._put_back(layer)

    def settle(self, layer: Layer) -> bool:
        """Clear a lingering layer away where nothing refers to it any more.

        Returns:
            Whether it is gone.
        """
        if self._is_on_top(layer):
            self._put_back(layer)
            return True
        if self.standing(layer).state == "lost":
            self._forget(layer)
            return True
        return False

    def awaken(self, layers: list[Layer]) -> bool:
        """Let all layers of a patch act again, of which some linger: those in their old places, and the others anew.

        Args:
            layers: all that were put together. Those that have gone are replaced.

        Returns:
            False, and nothing is changed, where one is not in a place from which it is known to act.
        """
        gone = [layer for layer in layers if not self.holds(layer)]
        if not all(self._is_free(layer) if layer in gone else self._can_act(layer) for layer in layers):
            return False
        see_through = self._remnants.see_through
        plans = [layer.plan.replace(below=see_through(layer.plan.slot, layer.plan.slot.raw())) for layer in gone]
        for plan in plans:
            self._remnants.forget(plan.slot, plan.entry)
        self.put(layers[0].patch, plans, layers)
        for layer in gone:
            layers.remove(layer)
        for layer in layers:
            for quieting in layer.plan.quietings:
                quieting.act()
            layer.lingering = False
            self._lingering.pop(layer, None)
        return True

    def _is_free(self, layer: Layer) -> bool:
        """Whether a slot holds what a layer that has gone was put on, so that the same can be put there again."""
        if layer.plan.registration is not None:
            # It was taken back, and has to be made anew.
            return False
        slot, see_through = layer.plan.slot, self._remnants.see_through
        return slot.same(see_through(slot, slot.raw()), see_through(slot, layer.below)) and slot.is_current()

    def _can_act(self, layer: Layer) -> bool:
        if not layer.lingering:
            return True
        slot, entry = layer.plan.slot, layer.plan.entry
        found = self._beneath_ours(layer, slot.raw())
        # Whether it is called by what came since, as after a reload, cannot be known; then it is put on top anew.
        there = slot.same(found, layer.under) or slot.same(found, entry) or _reaches(found, entry)
        return bool(layer.plan.quietings) and there and self.standing(layer).state != "lost"

    def holds(self, layer: Layer) -> bool:
        """Whether the layer is still on the books."""
        return layer in self._stacks.get(layer.plan.slot.key, ())

    def _is_on_top(self, layer: Layer) -> bool:
        """Whether nothing stands on a layer but what means nothing any more."""
        slot = layer.plan.slot
        return slot.same(self._remnants.see_through(slot, slot.raw()), layer.plan.entry)

    def _forget(self, layer: Layer) -> None:
        if layer.lingering and layer.plan.quietings:
            self._remnants.remember(layer.plan.slot, layer.plan.entry, layer.below)
        self._lingering.pop(layer, None)
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
        slot, gone = layer.plan.slot, [layer]
        below = self._remnants.see_through(slot, layer.below)
        for other in reversed(self._stacks[slot.key]):
            if other is not layer and other.lingering and slot.same(other.plan.entry, below):
                below = self._remnants.see_through(slot, other.below)
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
