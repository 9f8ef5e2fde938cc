"""Slots: the places that hold what a patch changes.

A slot is an owner and a name in it. It reads and writes the owner's raw entry: what ``owner.__dict__`` holds, with no
descriptor bound and no inherited value, so that what was there can be put back exactly, or deleted where there was
nothing. Writing goes past ``__setattr__`` of modules and metaclasses: undoing must not run anybody's code.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable
from contextvars import ContextVar
from types import ModuleType
from typing import Any

from .errors import MissingTargetError, PatchError
from .manifest import Target


class _Missing:
    """The type of :data:`MISSING`."""

    def __repr__(self) -> str:
        return "<missing>"

    def __bool__(self) -> bool:
        return False


MISSING = _Missing()
"""Stands for an entry that is not there; never for one that is None."""


class Slot:
    """One place that can be read raw, written and emptied.

    Two slots with equal ``key`` are the same place, whatever names led to it. The key holds the owner's ``id``, so it
    is good for as long as the slot, which holds the owner, is alive.
    """

    __slots__ = ("key", "name", "owner", "title")

    def __init__(self, owner: Any, name: Any, title: str) -> None:
        self.owner = owner
        self.name = name
        self.title = title
        self.key = (type(self).__name__, id(owner), name)

    def raw(self) -> Any:
        """The owner's own entry, :data:`MISSING` where it has none."""
        raise NotImplementedError

    def value(self) -> Any:
        """The raw entry, or else what the owner inherits under that name, unbound; else :data:`MISSING`."""
        return self.raw()

    def holds(self, entry: Any) -> bool:
        """Whether the raw entry is this one."""
        return self.same(self.raw(), entry)

    def same(self, one: Any, other: Any) -> bool:
        """Whether two entries are the same: by identity, unless the slot has none to keep."""
        return one is other

    def is_current(self) -> bool:
        """Whether the name of the slot still leads to this owner; a reload may have made another one."""
        try:
            return find(Target.parse(self.title)).key == self.key
        except LookupError:
            return False

    def put(self, entry: Any) -> None:
        """Write an entry; :data:`MISSING` empties the slot."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.title}>"


class ModuleSlot(Slot):
    """A name in a module."""

    __slots__ = ()

    def raw(self) -> Any:
        return vars(self.owner).get(self.name, MISSING)

    def put(self, entry: Any) -> None:
        if entry is MISSING:
            vars(self.owner).pop(self.name, None)
        else:
            vars(self.owner)[self.name] = entry


class InstanceSlot(Slot):
    """A name in an object that keeps its attributes in a plain ``__dict__``, and is not kept alive where possible."""

    __slots__ = ("class_of_owner", "reference")

    def __init__(self, owner: Any, name: str, title: str) -> None:
        self.class_of_owner = type(owner)
        self.reference: Callable[[], Any]
        try:
            # All that refer to one object share one reference, so that its id stands for the object, and is not taken
            # by another one when the object has gone.
            self.reference = weakref.ref(owner)
            identity = id(self.reference)
        except TypeError:
            # A types.SimpleNamespace cannot be referred to weakly; it is held.
            self.reference, identity = (lambda: owner), id(owner)
        self.name = name
        self.title = title
        self.key = (type(self).__name__, identity, name)

    @property
    def owner(self) -> Any:
        return self.reference()

    def _entries(self) -> dict[str, Any]:
        owner = self.reference()
        return {} if owner is None else vars(owner)

    def raw(self) -> Any:
        return self._entries().get(self.name, MISSING)

    def value(self) -> Any:
        found = self.raw()
        return _inherited(self.class_of_owner, self.name) if found is MISSING else found

    def put(self, entry: Any) -> None:
        if entry is MISSING:
            self._entries().pop(self.name, None)
        else:
            self._entries()[self.name] = entry


class ConfigSlot(Slot):
    """What a user has set of an option of a module such as ``torch._inductor.config``.

    ``torch.utils._config_module`` moves the options of such a module out of its ``__dict__``, and keeps what was set
    apart from the default. In torch 2.13 that is a ``ContextVar``: an option is set for a thread.
    """

    __slots__ = ()

    def raw(self) -> Any:
        override = self._option.user_override
        if isinstance(override, ContextVar):
            override = override.get()
        return MISSING if override is _unset() else override

    def value(self) -> Any:
        return getattr(self.owner, self.name, MISSING)

    def put(self, entry: Any) -> None:
        # Also where it is emptied: torch's own code marks what it has cached of the module as out of date.
        setattr(self.owner, self.name, self._option.default if entry is MISSING else entry)
        if entry is not MISSING:
            return
        option = self._option
        if isinstance(option.user_override, ContextVar):
            option.user_override.set(_unset())
        else:
            option.user_override = _unset()

    @property
    def _option(self) -> Any:
        return self.owner._config[self.name]


def _unset() -> Any:
    return sys.modules["torch.utils._config_module"]._UNSET_SENTINEL


class ClassSlot(Slot):
    """A name in a class."""

    __slots__ = ()

    def raw(self) -> Any:
        return vars(self.owner).get(self.name, MISSING)

    def value(self) -> Any:
        return _inherited(self.owner, self.name)

    def put(self, entry: Any) -> None:
        if entry is not MISSING:
            type.__setattr__(self.owner, self.name, entry)
        elif self.name in vars(self.owner):
            type.__delattr__(self.owner, self.name)


def find(target: Target) -> Slot:
    """Find the slot of a target whose module is loaded. Imports nothing.

    The last part of the name need not be there; the parts before it must.

    Raises:
        MissingTargetError: names the part that is missing.
        LookupError: the module is not loaded.
    """
    owner: Any = sys.modules.get(target.module)
    if owner is None:
        raise ModuleNotLoaded(target)
    *path, name = target.qualname.split(".")
    holder = target.module
    options = _options_of(owner)
    if options is not None and target.qualname in options:
        if options[target.qualname].alias is not None:
            raise PatchError(f"{target} stands for {options[target.qualname].alias}; patch that")
        return ConfigSlot(owner, target.qualname, str(target))
    for part in path:
        inner = _raw_of(owner, part)
        if inner is MISSING:
            raise MissingTargetError(str(target), holder, part)
        owner = inner
        holder = f"{holder}{':' if ':' not in holder else '.'}{part}"
    return slot_of(owner, name, str(target))


def _options_of(module: Any) -> Any:
    """The options of a module such as ``torch._inductor.config``; None for any other."""
    declaring = sys.modules.get("torch.utils._config_module")
    kind = getattr(declaring, "ConfigModule", None)
    return module._config if kind is not None and issubclass(type(module), kind) else None


def slot_of(owner: Any, name: str, title: str) -> Slot:
    """The slot of an attribute of ``owner``."""
    if isinstance(owner, type):
        return ClassSlot(owner, name, title)
    try:
        vars(owner)
    except TypeError:
        raise MissingTargetError(
            title, f"a {type(owner).__name__}, which keeps no attributes of its own,", name
        ) from None
    if isinstance(owner, ModuleType):
        return ModuleSlot(owner, name, title)
    return InstanceSlot(owner, name, title)


class ModuleNotLoaded(LookupError):
    """The target's module has not been imported; the engine waits for it."""

    def __init__(self, target: Target) -> None:
        super().__init__(f"{target.module} is not imported")
        self.target = target


def _raw_of(owner: Any, name: str) -> Any:
    if isinstance(owner, type):
        return _inherited(owner, name)
    try:
        found = vars(owner).get(name, MISSING)
    except TypeError:
        return MISSING
    if found is MISSING and not isinstance(owner, ModuleType):
        return _inherited(type(owner), name)
    return found


def _inherited(owner: type, name: str) -> Any:
    for base in owner.__mro__:
        entry = vars(base).get(name, MISSING)
        if entry is not MISSING:
            return entry
    return MISSING
