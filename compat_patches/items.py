"""Actions on what is held elsewhere than by a name: in containers, in the environment, in somebody's registry."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any

from . import registrations
from .container_slots import ElementSlot, IndexSlot, ItemSlot
from .errors import MissingTargetError, PatchError
from .manifest import Step
from .plans import NotNeeded, Plan, load, value_of
from .target import MISSING, Slot, find


def _held(step: Step) -> Any:
    """What stands in the target: a container, or what something is registered with."""
    slot = find(step.target)
    held = slot.value()
    if held is MISSING:
        raise MissingTargetError(slot.title, slot.title.partition(":")[0], slot.name)
    return held


def _key(step: Step) -> Any:
    return step.key if step.key_object is None else load(step.key_object)


def _plan_set_item(step: Step) -> list[Plan]:
    container, key = _held(step), _key(step)
    title = f"{step.target}[{key!r}]"
    if isinstance(container, list):
        if type(key) is not int or not -len(container) <= key < len(container):
            raise PatchError(f"{title}: found a list of {len(container)}; expected `key` to be an index of it")
        slot: Slot = IndexSlot(container, range(len(container))[key], title)
    elif hasattr(container, "__setitem__"):
        slot = ItemSlot(container, key, title)
    else:
        raise PatchError(f"{step.target} is a {type(container).__name__}; action 'set_item' needs a mapping or a list")
    return [Plan(slot, slot.raw(), value_of(step))]


def _plan_insert_item(step: Step) -> list[Plan]:
    container, element = _held(step), value_of(step)
    title = f"{step.target}[{element!r}]"
    if not isinstance(container, list | set):
        raise PatchError(f"{step.target} is a {type(container).__name__}; action 'insert_item' needs a list or a set")
    if isinstance(container, set) and step.key is not None:
        raise PatchError(f"{step.target} is a set, which has no order; expected no `key`")
    slot = ElementSlot(container, element, title, step.key)
    if slot.raw() is not MISSING:
        raise NotNeeded(f"{title} is there already")
    return [Plan(slot, MISSING, element)]


def _plan_discard_item(step: Step) -> list[Plan]:
    container, key = _held(step), _key(step)
    title = f"{step.target}[{key!r}]"
    if isinstance(container, list | set):
        slot: Slot = ElementSlot(container, key, title)
    elif hasattr(container, "__delitem__"):
        slot = ItemSlot(container, key, title)
    else:
        raise PatchError(
            f"{step.target} is a {type(container).__name__}; action 'discard_item' needs a mapping, a list or a set"
        )
    if slot.raw() is MISSING:
        raise NotNeeded(f"{title} is not there")
    return [Plan(slot, slot.raw(), MISSING)]


def _plan_env(step: Step) -> list[Plan]:
    slot = ItemSlot(os.environ, step.key, f"os:environ[{step.key!r}]")
    found = slot.raw()
    value = step.value
    if step.mode == "setdefault" and found is not MISSING:
        raise NotNeeded(f"{step.key} is set already, to {found!r}")
    if step.mode == "prepend" and found:
        if value in found.split(os.pathsep):
            raise NotNeeded(f"{step.key} has {value!r} already")
        value = f"{value}{os.pathsep}{found}"
    if found == value:
        raise NotNeeded(f"{step.key} is {value!r} already")
    late = f"too late for what torch read of {step.key} when it was imported" if "torch" in sys.modules else ""
    return [Plan(slot, found, value, calls_below=step.mode == "prepend" and bool(found), caution=late)]


class _RegistrationSlot(ItemSlot):
    """A place among the registrations of this process."""

    __slots__ = ()

    def is_current(self) -> bool:
        return True


def _plan_register(step: Step) -> list[Plan]:
    """Register, and plan to write that down."""
    _held(step)  # Something has to be there.
    target, using = str(step.target), str(step.using)
    place, title = (target, using), f"{target}, by {using}"
    registration = registrations.enter(place, title, lambda: load(using)())
    if registration is None:
        raise NotNeeded(f"{title} is registered already")
    slot = _RegistrationSlot(registrations.ENTERED, place, title)
    return [Plan(slot, MISSING, registration, registration=registration)]


PLANNERS: dict[str, Callable[[Step], list[Plan]]] = {
    "set_item": _plan_set_item,
    "insert_item": _plan_insert_item,
    "discard_item": _plan_discard_item,
    "env": _plan_env,
    "register": _plan_register,
}
