"""All orders of importing the targets, applying and undoing, each in a process of its own.

The orders form a tree: what two of them begin with alike is done once, in a process that is then forked. So each order
runs in a process whose history is that order and nothing else, while a target is imported once for each different
beginning, and what it imports itself, where that can be had without it, once and for all.

Processes cannot compare objects, so a slot is compared by what it holds in words: the kind of object, where its code
stands, and the same of all that it wraps.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import sys
import time
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from types import FunctionType
from typing import Any

from ...functions import is_quiet
from ...target import MISSING
from ..slots import named_slots
from .forking import all_in_fork, in_fork
from .subject import Subject, subjects

IMPORT = "import"
_MOST_GROUPS = 2
"""Imports that are permuted one by one; further ones go with the last. Four events make 24 orders, five 120."""


_MOST_PRELOADS = 12
"""How often it is tried to import more of what the targets import, without the targets."""


def run(path: str, patch_ids: list[str]) -> dict[str, Any]:
    """Run all orders of one patch, or of two that share a slot; called in a fresh process.

    Returns:
        ``orders``: how many there are, ``imports``: how many times targets were imported for them, ``seconds``, and
        ``problems``: what is wrong, each with its order.
    """
    began = time.monotonic()
    with subjects(path, patch_ids) as found:
        suite = _Suite(found)
        suite.run()
    return {
        "orders": suite.orders,
        "imports": suite.imports,
        "seconds": round(time.monotonic() - began, 1),
        "problems": suite.problems,
    }


@dataclass(slots=True)
class _Reference:
    """What one import of everything, before any order, has shown.

    Attributes:
        groups: the targets' modules, those together that come with one another's import.
        preloadable: further modules that are loaded with them, in the order of their imports.
        untouched: what the slots hold when nothing is applied, in words.
        applied: the same for each patch, when it alone is applied.
    """

    groups: list[list[str]]
    preloadable: list[str]
    untouched: dict[str, str]
    applied: dict[str, dict[str, str]]


class _Suite:
    def __init__(self, found: list[Subject]) -> None:
        self.subjects = {subject.patch.id: subject for subject in found}
        self.orders = self.imports = 0
        self.problems: list[str] = []
        self._modules = tuple(dict.fromkeys(name for subject in found for name in subject.modules))
        self._reference = _Reference(**in_fork(self._refer))

    def run(self) -> None:
        self._preload()
        for answer in self._walk((), tuple(self._events())):
            self.orders += answer["order"] is not None
            self.imports += answer["imported"]
            self.problems += answer["problems"]

    # --- before the first order --------------------------------------------------------------------------------

    def _refer(self) -> dict[str, Any]:
        before = set(sys.modules)
        whole = []
        for root in dict.fromkeys(name.partition(".")[0] for name in self._modules):
            importlib.import_module(root)
            if any(name in sys.modules for name in self._modules):
                # What is in it cannot be had without the targets.
                whole.append(root)
        groups: list[list[str]] = []
        for name in self._modules:
            if len(groups) == _MOST_GROUPS or (groups and name in sys.modules):
                groups[-1].append(name)
            else:
                groups.append([name])
            importlib.import_module(name)
        new = [name for name in sys.modules if name not in before and name not in self._modules]
        return {
            "groups": groups,
            "preloadable": [name for name in new if name.partition(".")[0] not in whole],
            "untouched": self._seen(),
            "applied": {name: in_fork(functools.partial(self._seen_with, name)) for name in self.subjects},
        }

    def _seen_with(self, name: str) -> dict[str, str]:
        self.subjects[name].apply()
        return self._seen()

    def _preload(self) -> None:
        """Import what the targets' modules import, as far as that leaves them unimported themselves."""
        left = self._reference.preloadable
        for _ in range(_MOST_PRELOADS):
            fit = in_fork(functools.partial(_imported_without, self._modules, left))
            for name in left[:fit]:
                with contextlib.suppress(Exception):
                    importlib.import_module(name)
            # The next one brings the targets with it.
            left = left[fit + 1 :]
            if not left:
                break

    # --- orders ------------------------------------------------------------------------------------------------

    def _events(self) -> Iterator[str]:
        yield from (f"{IMPORT} {' '.join(group)}" for group in self._reference.groups)
        for name in self.subjects:
            yield f"apply {name}"
            yield f"undo {name}"

    def _walk(self, done: tuple[str, ...], left: tuple[str, ...]) -> Iterator[dict[str, Any]]:
        # Of one patch all orders are run, undoing before applying too; of two that would be many alike.
        events = [e for e in left if len(self.subjects) == 1 or f"apply {e.removeprefix('undo ')}" not in left]
        for event in events:
            rest = tuple(other for other in left if other != event)
            if len(events) == 1:
                yield from self._go_on((*done, event), rest)
            else:
                yield from all_in_fork(functools.partial(self._go_on, (*done, event), rest))

    def _go_on(self, done: tuple[str, ...], left: tuple[str, ...]) -> Iterator[dict[str, Any]]:
        verb, _, names = done[-1].partition(" ")
        try:
            if verb == IMPORT:
                for name in names.split():
                    importlib.import_module(name)
            else:
                subject = self.subjects[names]
                subject.apply() if verb == "apply" else subject.revert()
            problems = list(self._check(done))
            if not left:
                problems += self._check_the_end(done)
        except Exception as error:
            problems = [f"{' > '.join(done)}: raised {type(error).__name__}: {error}\n{traceback.format_exc()}"]
        yield {"order": None if left else done, "imported": verb == IMPORT, "problems": problems}
        if not problems:
            yield from self._walk(done, left)

    def _check(self, done: tuple[str, ...]) -> Iterator[str]:
        """What is not as it should be after these events."""
        imported = all(f"{IMPORT} {' '.join(group)}" in done for group in self._reference.groups)
        wanted = [name for name in self.subjects if _is_wanted(name, done)]
        for name in wanted:
            [status] = self.subjects[name].engine.status(self.subjects[name].patch.qualified_id)
            expected = "applied" if imported else "pending"
            if status.state != expected and not (expected == "pending" and status.state == "applied"):
                yield f"{' > '.join(done)}: {name} is {status.state} ({status.reason}), expected {expected}"
        if not imported:
            return
        seen = self._seen()
        if not wanted:
            yield from _compared(done, seen, self._reference.untouched)
        elif len(wanted) == 1:
            yield from _compared(done, seen, self._reference.applied[wanted[0]])

    def _check_the_end(self, done: tuple[str, ...]) -> Iterator[str]:
        for name in (name for name in self.subjects if _is_wanted(name, done)):
            self.subjects[name].revert()
        yield from _compared((*done, "undo all"), self._seen(), self._reference.untouched)

    # --- what slots hold ---------------------------------------------------------------------------------------

    def _seen(self) -> dict[str, str]:
        steps = [step for subject in self.subjects.values() for step in subject.patch.steps]
        return {slot.title: _in_words(slot.raw()) for step in steps for slot in named_slots(step)}


def _is_wanted(name: str, done: tuple[str, ...]) -> bool:
    events = [event for event in done if event in (f"apply {name}", f"undo {name}")]
    return bool(events) and events[-1].startswith("apply")


def _compared(done: tuple[str, ...], seen: dict[str, str], expected: dict[str, str]) -> Iterator[str]:
    for title in sorted({*seen, *expected}):
        if seen.get(title) != expected.get(title):
            yield f"{' > '.join(done)}: {title} holds {seen.get(title)}, expected {expected.get(title)}"


def _in_words(entry: Any) -> str:
    """An entry in words that are the same in every process."""
    parts = []
    seen: set[int] = set()
    while entry is not None and id(entry) not in seen:
        seen.add(id(entry))
        kind = type(entry).__name__
        inner = entry.__func__ if isinstance(entry, staticmethod | classmethod) else entry
        inner = inner.fget if isinstance(inner, property) else inner
        if type(inner) is FunctionType and is_quiet(inner):
            # Undone beneath another patch, which is all that still refers to it.
            pass
        elif type(inner) is FunctionType:
            parts.append(f"{kind} at {inner.__code__.co_filename}:{inner.__code__.co_firstlineno}")
        elif entry is MISSING:
            parts.append("nothing")
        elif callable(inner) or hasattr(inner, "__dict__"):
            parts.append(f"{kind} {getattr(inner, '__module__', '')}.{getattr(inner, '__qualname__', '')}")
        else:
            parts.append(f"{kind} {inner!r}")
        entry = getattr(inner, "__wrapped__", None)
    return " around ".join(parts)


def _imported_without(modules: tuple[str, ...], names: list[str]) -> int:
    """Import one module after the other, until the targets' come with one of them.

    Returns:
        How many left the targets' modules unimported.
    """
    for number, name in enumerate(names):
        with contextlib.suppress(Exception):
            importlib.import_module(name)
        if any(module in sys.modules for module in modules):
            return number
    return len(names)
