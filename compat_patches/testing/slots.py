"""The slots that patches name, whether or not anything of them is applied, and what they hold, in words."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

from ..container_slots import ElementSlot, ItemSlot
from ..manifest import Step, Target
from ..target import MISSING, Slot, find


def named_slots(step: Step) -> Iterator[Slot]:
    """The slots of a step that can be found now. Imports nothing, and leaves out what is not there."""
    if step.action == "env":
        yield ItemSlot(os.environ, step.key, f"os:environ[{step.key!r}]")
        return
    for target in step.targets:
        slot = _slot(target, step)
        if slot is not None:
            yield slot


def _slot(target: Target, step: Step) -> Slot | None:
    try:
        slot = find(target)
    except LookupError:
        return None
    if step.action not in ("set_item", "discard_item"):
        return slot
    container = slot.value()
    title = f"{target}[{step.key!r}]"
    if isinstance(container, list | set):
        return ElementSlot(container, step.key, title)
    return ItemSlot(container, step.key, title) if hasattr(container, "__setitem__") else None


def described(entry: Any) -> str:
    """An entry in words, short enough for one line."""
    if entry is MISSING:
        return "nothing"
    inner = entry.__func__ if isinstance(entry, staticmethod | classmethod) else entry
    code = getattr(inner, "__code__", None)
    if code is not None:
        # A wrapper bears the name of what it wraps; where its code stands tells them apart.
        return f"{type(entry).__name__} {inner.__qualname__} ({code.co_filename}:{code.co_firstlineno})"
    text = repr(entry)
    return text if len(text) <= 120 else f"{text[:117]}..."
