"""Actions: what each does to a slot, and how its effect is taken out again.

An action plans: from what stands in a slot and from the patch's implementation it makes the entry that will stand
there. Nothing is written here. The engine writes all entries of a patch at once, and undoes them by putting the raw
entries back. Where somebody has meanwhile put something of theirs on top, the entry is still called from there; it is
then made quiet (:class:`~compat_patches.functions.Quieting`) through what the plan says about it.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from enum import Enum, EnumMeta
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
from typing import Any

from .errors import MissingTargetError, PatchError
from .functions import (
    Quieting,
    bound_by,
    bound_to_class_by,
    bound_weakly,
    copy_function,
    do_nothing,
    forwarder,
    getter_of,
    is_quiet,
    is_somebodys,
    take_identity,
)
from .manifest import Step, Target
from .plans import NotNeeded, Plan, load, value_of
from .target import MISSING, ClassSlot, InstanceSlot, Slot, find

__all__ = ["NotNeeded", "Plan", "load", "modules_awaited", "plan"]


def modules_awaited(step: Step) -> tuple[str, ...]:
    """The modules that must have been executed before a step can be planned."""
    modules = [target.module for target in step.targets]
    if step.action == "alias" and step.using is not None:
        modules.append(Target.parse(step.using).module)
    if step.key_object is not None:
        modules.append(Target.parse(step.key_object).module)
    return tuple(dict.fromkeys(modules))


def plan(step: Step) -> list[Plan]:
    """Plan a step over all of its slots.

    Imports and calls the patch's implementation, so no lock may be held.

    Raises:
        NotNeeded: there is nothing to do.
        MissingTargetError: a part of a target is not there.
        PatchError: the implementation or the target is not of a kind that the action can work with.
    """
    # What few patches need is imported when one does: this is a part of the price of importing torch.
    if step.action in _ENTRIES:
        return _plan_attribute(step)
    from .items import PLANNERS

    return PLANNERS[step.action](step)


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
    calls_below = step.action in ("wrap", "alias", "proxy")
    plans = [Plan(slot, below, entry, quietings, calls_below) for slot, below in zip(slots, belows, strict=True)]
    if step.action == "set":
        from .dataclass_entries import plan_default
        from .enum_entries import is_member, plan_value

        if any(map(is_member, slots)):
            return plan_value(slots, entry)
        return [each for plan in plans for each in plan_default(plan)]
    if step.action == "inject":
        plans += _plan_exports(slots)
        if isinstance(entry, Enum):
            from .enum_entries import plan_member

            plans = [plan_member(plan.slot, entry) if type(entry) is plan.slot.owner else plan for plan in plans]
    return plans


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
            from .container_slots import ElementSlot

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
    value = value_of(step)
    if isinstance(slot.owner, EnumMeta) and type(value) is not FunctionType:
        from .enum_entries import new_member

        return new_member(slot, value), ()
    if type(value) is FunctionType:
        value = copy_function(value)
        value.__module__ = getattr(slot.owner, "__name__", value.__module__)
        value.__name__ = slot.name
        value.__qualname__ = slot.title.partition(":")[2]
        if isinstance(slot, ClassSlot):
            value.__module__ = slot.owner.__module__
    return value, ()


def _proxy(step: Step, slot: Slot, current: Any) -> tuple[Any, tuple[Quieting, ...]]:
    if callable(current):
        # torch.compile runs straight past a proxy of a function, without a word.
        raise PatchError(f"{slot.title} is called; action 'proxy' is for containers, and 'wrap' for what is called")
    proxy = load(str(step.using))(current)
    if proxy is current or getattr(proxy, "__wrapped__", None) is not current:
        raise PatchError(
            f"{step.using} returned {proxy!r} for {slot.title}; expected a wrapt.ObjectProxy of what it got, so that "
            "what others change meanwhile is kept"
        )
    return proxy, ()


def _set(step: Step, slot: Slot, current: Any) -> tuple[Any, tuple[Quieting, ...]]:
    return value_of(step), ()


_ENTRIES: dict[str, Callable[[Step, Slot, Any], tuple[Any, tuple[Quieting, ...]]]] = {
    "wrap": _wrap,
    "replace": _replace,
    "alias": _alias,
    "noop": _noop,
    "inject": _inject,
    "proxy": _proxy,
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
    if isinstance(slot, InstanceSlot) and slot.raw() is MISSING:
        return _rebuild_inherited(slot, current, make)
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


def _rebuild_inherited(slot: InstanceSlot, current: Any, make: Callable[[Any], Any]) -> Any:
    """Stand in, on one instance, for what it inherits: made as for its class, and bound to the instance, weakly."""
    owner = slot.class_of_owner
    rebuilt = _rebuild(ClassSlot(owner, slot.name, slot.title), current, make)
    if not hasattr(type(rebuilt), "__get__"):
        return rebuilt
    if hasattr(type(rebuilt), "__set__"):
        raise PatchError(f"{slot.title} is a property, which Python looks up in the class; patch {owner.__qualname__}")
    return bound_weakly(rebuilt, slot.reference, slot.title)


def _rebuild_foreign(slot: Slot, current: Any, make: Callable[[Any], Any]) -> Any:
    """Stand in for a descriptor that binds in its own way, as a wrapper of wrapt's, which is told the instance."""
    if isinstance(current, staticmethod) or slot.name == "__new__":
        return staticmethod(make(current.__get__(None, slot.owner)))
    if isinstance(current, classmethod) or slot.name in _IMPLICIT:
        return classmethod(make(bound_to_class_by(current, slot.owner, slot.name)))
    return make(bound_by(current, slot.owner, slot.name))
