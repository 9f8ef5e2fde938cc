"""Actions: what each does to a slot, and how its effect is taken out again.

An action plans: from what stands in a slot and from the patch's implementation it makes the entry that will stand
there. Nothing is written here. The engine writes all entries of a patch at once, and undoes them by putting the raw
entries back. Where somebody has meanwhile put something of theirs on top, the entry is still called from there; it is
then made quiet (:class:`~compat_patches.functions.Quieting`) through what the plan says about it.
"""

from __future__ import annotations

import copy
import functools
import importlib
import os
import sys
from collections.abc import Callable
from types import (
    BuiltinFunctionType,
    ClassMethodDescriptorType,
    FunctionType,
    GetSetDescriptorType,
    MemberDescriptorType,
    MethodDescriptorType,
    ModuleType,
    WrapperDescriptorType,
)
from typing import Any, NamedTuple

from .errors import MissingTargetError, PatchError
from .functions import (
    Quieting,
    bound_by,
    bound_to_class_by,
    copy_function,
    do_nothing,
    forwarder,
    getter_of,
    is_quiet,
    is_somebodys,
    take_identity,
)
from .manifest import Step, Target
from .target import MISSING, ClassSlot, ElementSlot, ItemSlot, Slot, find


class NotNeeded(Exception):
    """There is nothing to do; the text says why."""


class Plan(NamedTuple):
    """What will be written into a slot.

    Attributes:
        slot: where.
        below: the raw entry that was there when the plan was made.
        entry: what is to stand there.
        quietings: makes the entry hand its calls through, for each plain function in it.
        calls_below: the entry uses what stood there, so that it cannot outlive it.
    """

    slot: Slot
    below: Any
    entry: Any
    quietings: tuple[Quieting, ...] = ()
    calls_below: bool = False


def modules_awaited(step: Step) -> tuple[str, ...]:
    """The modules that must have been executed before a step can be planned."""
    modules = [target.module for target in step.targets]
    if step.action == "alias" and step.using is not None:
        modules.append(Target.parse(step.using).module)
    return tuple(dict.fromkeys(modules))


def plan(step: Step) -> list[Plan]:
    """Plan a step over all of its slots.

    Imports and calls the patch's implementation, so no lock may be held.

    Raises:
        NotNeeded: there is nothing to do.
        MissingTargetError: a part of a target is not there.
        PatchError: the implementation or the target is not of a kind that the action can work with.
    """
    planner = _PLANNERS.get(step.action)
    if planner is None:
        return _plan_attribute(step)
    return planner(step)


def load(reference: str) -> Any:
    """Import the object that ``module:Qualified.name`` names.

    Raises:
        PatchError: the module has no such name. What the import raises goes through.
    """
    target = Target.parse(reference)
    found: Any = importlib.import_module(target.module)
    for part in target.qualname.split("."):
        try:
            found = getattr(found, part)
        except AttributeError:
            raise PatchError(f"implementation missing: {target.module} has no {part!r} (wanted {reference})") from None
    return found


# --- attributes of modules and classes -----------------------------------------------------------------------------


def _plan_attribute(step: Step) -> list[Plan]:
    slots = list({slot.key: slot for slot in map(find, step.targets)}.values())
    first = slots[0]
    current = first.value()
    if step.action == "inject":
        there = [slot.title for slot in slots if slot.value() is not MISSING]
        if there:
            raise NotNeeded(f"{' and '.join(there)} is there already")
    elif current is MISSING:
        holder, _, name = first.title.replace(":", ".").rpartition(".")
        raise MissingTargetError(first.title, holder, name)
    for other in slots[1:]:
        if other.value() is not current:
            raise PatchError(
                f"{other.title} holds another object than {first.title}: found {other.value()!r}, expected "
                f"{current!r}; somebody has changed one of the two"
            )
    for slot in slots:
        _refuse_new_of_object(slot)
    # Read before the implementation is called: what others put there meanwhile makes the engine plan anew.
    belows = [slot.raw() for slot in slots]
    entry, quietings = _ENTRIES[step.action](step, first, current)
    calls_below = step.action in ("wrap", "alias")
    plans = [Plan(slot, below, entry, quietings, calls_below) for slot, below in zip(slots, belows, strict=True)]
    return plans + (_plan_exports(slots) if step.action == "inject" else [])


def _refuse_new_of_object(slot: Slot) -> None:
    """CPython does not take a ``__new__`` back: once deleted, ``object`` refuses the arguments of ``__init__``."""
    if slot.name == "__new__" and slot.raw() is MISSING and slot.value() is vars(object)["__new__"]:
        raise PatchError(
            f"{slot.title} is inherited from object, and Python cannot undo what is put there: the class would take no "
            f"arguments any more; patch its '__init__', or replace the class"
        )


def _plan_exports(slots: list[Slot]) -> list[Plan]:
    """A name that appears in a module belongs into its ``__all__`` as well."""
    plans = []
    for slot in slots:
        exports = vars(slot.owner).get("__all__") if isinstance(slot.owner, ModuleType) else None
        if isinstance(exports, list) and slot.name not in exports:
            element = ElementSlot(exports, slot.name, f"{slot.owner.__name__}:__all__")
            plans.append(Plan(element, MISSING, slot.name))
    return plans


def _wrap(step: Step, slot: Slot, current: Any) -> tuple[Any, tuple[Quieting, ...]]:
    factory = load(str(step.using))
    quietings = []

    def make(original: Any) -> Any:
        if not callable(original):
            raise PatchError(
                f"{slot.title} is a {type(original).__name__}, which is not called; action 'wrap' needs a function, a "
                "class or a property"
            )
        stand_in = factory(original)
        if not callable(stand_in):
            raise PatchError(f"{step.using} returned {stand_in!r} for {slot.title}; expected a function or a class")
        if stand_in is original:
            raise NotNeeded(f"{step.using} left {slot.title} as it is")
        # Not isinstance: a wrapt proxy says that it is a function, and hands what is set on it to the original.
        if type(stand_in) is FunctionType:
            if is_quiet(stand_in):
                raise PatchError(
                    f"{step.using} returned the function that it had returned before, which was undone; expected a "
                    "new one of every call"
                )
            if is_somebodys(stand_in, original):
                # Undoing must not change what others call.
                stand_in = copy_function(stand_in)
            take_identity(stand_in, original, transparent=True)
            quietings.append(Quieting(stand_in, original))
        elif isinstance(stand_in, type):
            take_identity(stand_in, original, transparent=False)
        return stand_in

    return _rebuild(slot, current, make), tuple(quietings)


def _replace(step: Step, slot: Slot, current: Any) -> tuple[Any, tuple[Quieting, ...]]:
    replacement = load(str(step.using))
    quietings = []

    def make(original: Any) -> Any:
        if type(replacement) is not FunctionType:
            return replacement
        stand_in = copy_function(replacement)
        take_identity(stand_in, original, transparent=False)
        quietings.append(Quieting(stand_in, original))
        return stand_in

    return _rebuild(slot, current, make), tuple(quietings)


def _alias(step: Step, slot: Slot, current: Any) -> tuple[Any, tuple[Quieting, ...]]:
    source_slot = find(Target.parse(str(step.using)))
    source = getattr(source_slot.owner, source_slot.name, MISSING)
    if source is MISSING:
        raise MissingTargetError(str(step.using), source_slot.title.partition(":")[0], source_slot.name)
    if isinstance(source, type) or not callable(source):
        return source, ()
    quietings = []

    def make(original: Any) -> Any:
        # An object of its own: Dynamo asserts when one object stands under two names.
        stand_in = forwarder(source)
        take_identity(stand_in, source, transparent=True)
        take_identity(stand_in, original, transparent=False)
        quietings.append(Quieting(stand_in, original))
        return stand_in

    return _rebuild(slot, current, make), tuple(quietings)


def _noop(step: Step, slot: Slot, current: Any) -> tuple[Any, tuple[Quieting, ...]]:
    quietings = []

    def make(original: Any) -> Any:
        stand_in = do_nothing(step.value)
        take_identity(stand_in, original, transparent=True)
        quietings.append(Quieting(stand_in, original))
        return stand_in

    return _rebuild(slot, current, make), tuple(quietings)


def _inject(step: Step, slot: Slot, current: Any) -> tuple[Any, tuple[Quieting, ...]]:
    value = _value(step)
    if type(value) is FunctionType:
        value = copy_function(value)
        value.__module__ = getattr(slot.owner, "__name__", value.__module__)
        value.__name__ = slot.name
        value.__qualname__ = slot.title.partition(":")[2]
        if isinstance(slot, ClassSlot):
            value.__module__ = slot.owner.__module__
    return value, ()


def _set(step: Step, slot: Slot, current: Any) -> tuple[Any, tuple[Quieting, ...]]:
    return _value(step), ()


def _value(step: Step) -> Any:
    return load(step.using) if step.using is not None else copy.deepcopy(step.value)


_ENTRIES: dict[str, Callable[[Step, Slot, Any], tuple[Any, tuple[Quieting, ...]]]] = {
    "wrap": _wrap,
    "replace": _replace,
    "alias": _alias,
    "noop": _noop,
    "inject": _inject,
    "set": _set,
}
_IMPLICIT = {"__new__": staticmethod, "__init_subclass__": classmethod, "__class_getitem__": classmethod}


# What does the same whether it is bound to an instance or called with one.
_CALLED_UNBOUND = (
    type,
    FunctionType,
    BuiltinFunctionType,
    MethodDescriptorType,
    WrapperDescriptorType,
    type(functools.lru_cache(do_nothing)),
)
# Made by Python's own library for methods, and not callable themselves.
_METHODS = (functools.partialmethod, functools.singledispatchmethod)


def _rebuild(slot: Slot, current: Any, make: Callable[[Any], Any]) -> Any:
    """Make the stand-in for what a raw entry holds, in a descriptor of the kind that held it."""
    rebuilt = _rebuild_descriptor(slot, current, make)
    set_name = getattr(type(rebuilt), "__set_name__", None)
    if set_name is not None and isinstance(slot, ClassSlot):
        # Python does this for what stands in the body of a class, not for what is set later.
        set_name(rebuilt, slot.owner, slot.name)
    return rebuilt


def _rebuild_descriptor(slot: Slot, current: Any, make: Callable[[Any], Any]) -> Any:
    # By type(): a proxy of wrapt's says that its __class__ is that of what it wraps.
    kind = type(current)
    if issubclass(kind, staticmethod | classmethod):
        return kind(make(current.__func__))
    if issubclass(kind, property):
        if current.fget is None:
            raise PatchError(f"{slot.title} is a property that cannot be read; there is no function to patch")
        return kind(make(current.fget), current.fset, current.fdel, current.__doc__)
    if issubclass(kind, functools.cached_property):
        return functools.cached_property(make(current.func))
    if not isinstance(slot, ClassSlot):
        return make(current)
    if kind is ClassMethodDescriptorType:
        return classmethod(make(current))
    if kind in (GetSetDescriptorType, MemberDescriptorType):
        getter = getter_of(current, slot.owner, slot.name)
        return property(make(getter), current.__set__, current.__delete__, current.__doc__)
    binds = hasattr(kind, "__get__")
    if issubclass(kind, functools.partial):
        # Up to Python 3.13 it is not bound to an instance; 3.13 has a __get__ that warns of the change to come.
        binds = sys.version_info >= (3, 14)
    elif binds and (callable(current) or issubclass(kind, _METHODS)) and not issubclass(kind, _CALLED_UNBOUND):
        return _rebuild_foreign(slot, current, make)
    stand_in = make(current)
    if type(stand_in) is FunctionType:
        # Python does this for a function in the body of a class, not for one that is set later.
        if slot.name in _IMPLICIT:
            return _IMPLICIT[slot.name](stand_in)
        # A builtin or a functools.partial in a class is not bound to the instance; a function would be.
        if not binds:
            return staticmethod(stand_in)
    return stand_in


def _rebuild_foreign(slot: Slot, current: Any, make: Callable[[Any], Any]) -> Any:
    """Stand in for a descriptor that binds in its own way, as a wrapper of wrapt's, which is told the instance."""
    if isinstance(current, staticmethod) or slot.name == "__new__":
        return staticmethod(make(current.__get__(None, slot.owner)))
    if isinstance(current, classmethod) or slot.name in _IMPLICIT:
        return classmethod(make(bound_to_class_by(current, slot.owner, slot.name)))
    return make(bound_by(current, slot.owner, slot.name))


# --- items, elements, the environment ------------------------------------------------------------------------------


def _container(step: Step) -> Any:
    slot = find(step.target)
    container = slot.value()
    if container is MISSING:
        raise MissingTargetError(slot.title, slot.title.partition(":")[0], slot.name)
    return container


def _plan_set_item(step: Step) -> list[Plan]:
    container = _container(step)
    if not hasattr(container, "__setitem__") or isinstance(container, list):
        raise PatchError(f"{step.target} is a {type(container).__name__}; action 'set_item' needs a mapping")
    slot = ItemSlot(container, step.key, f"{step.target}[{step.key!r}]")
    return [Plan(slot, slot.raw(), _value(step))]


def _plan_discard_item(step: Step) -> list[Plan]:
    container = _container(step)
    title = f"{step.target}[{step.key!r}]"
    if isinstance(container, list | set):
        slot: Slot = ElementSlot(container, step.key, title)
    elif hasattr(container, "__delitem__"):
        slot = ItemSlot(container, step.key, title)
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
    return [Plan(slot, found, value, calls_below=step.mode == "prepend" and bool(found))]


_PLANNERS: dict[str, Callable[[Step], list[Plan]]] = {
    "set_item": _plan_set_item,
    "discard_item": _plan_discard_item,
    "env": _plan_env,
}
