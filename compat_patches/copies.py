"""Copies by value: modules that did ``from x import y`` before the patch of ``x.y`` came."""

from __future__ import annotations

import sys
from collections.abc import Collection
from types import ModuleType
from typing import Any

from .target import ModuleSlot, Slot


def find_copies(values: Collection[Any], known: Collection[Slot], but_not_in: Collection[str]) -> list[Slot]:
    """Find the module-level names that hold one of ``values``.

    Args:
        values: what is looked for, by identity.
        known: slots that are known to hold it, left out of the answer.
        but_not_in: modules (their packages' submodules too) that are not looked at.

    Returns:
        Slots of modules, in the order in which the modules were imported.
    """
    # A number or a string is shared by everybody; its copies mean nothing.
    sought = {id(value) for value in values if callable(value)}
    if not sought:
        return []
    keys = {slot.key for slot in known}
    found: list[Slot] = []
    for name, module in list(sys.modules.items()):
        # By type(): an isinstance would ask a stand-in for its __class__, and a lazy one would import what it is for.
        if not issubclass(type(module), ModuleType):
            continue
        if any(name == other or name.startswith(other + ".") for other in but_not_in):
            continue
        # Past __getattribute__: a module of importlib.util.LazyLoader would be executed by vars().
        for key, held in list(object.__getattribute__(module, "__dict__").items()):
            if id(held) in sought:
                slot = ModuleSlot(module, key, f"{name}:{key}")
                if slot.key not in keys:
                    keys.add(slot.key)
                    found.append(slot)
    return found
