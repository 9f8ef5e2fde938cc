"""Registrations: what a call puts into somebody's registry, and another call takes out again.

An operator of ``torch.library`` or a native library is in no slot that could be read and written. ``using`` returns a
context manager for it, which is entered when the patch is applied and left when it is undone. Both are foreign code, so
both are done without the engine's lock: entering is a part of planning, and leaving follows when the books are closed.
Meanwhile the place is taken, and another thread that wants it waits, so that nothing is registered twice.
"""

from __future__ import annotations

import os
import threading
from contextlib import AbstractContextManager
from threading import get_ident
from typing import Any

from .errors import MissingTargetError, PatchError
from .manifest import Step
from .plans import NotNeeded, Plan, load
from .target import MISSING, ItemSlot, find

_LONGEST_WAIT = 60
"""Seconds for which a thread waits while another enters or leaves. Registering takes milliseconds, loading a library
seconds; a thread that waits longer is most likely waited for."""

_Place = tuple[str, str]
_entered: dict[_Place, Registration] = {}
_taken: dict[_Place, _Taken] = {}
_lock = threading.Lock()


class _Taken:
    """A place where a thread is entering or leaving."""

    __slots__ = ("done", "thread")

    def __init__(self) -> None:
        self.thread = get_ident()
        self.done = threading.Event()


class Registration:
    """A context manager that was entered for a patch.

    Attributes:
        title: its target and what it was made by.
    """

    __slots__ = ("_context", "_place", "_taken", "title")

    def __init__(self, place: _Place, taken: _Taken, title: str, context: AbstractContextManager[Any]) -> None:
        self._place = place
        self._taken = taken
        self._context = context
        self.title = title

    def settle(self, kept: bool) -> None:
        """Say whether the plan that this was entered for was carried out; where not, it is left."""
        taken = self._taken
        try:
            if not kept:
                self._context.__exit__(None, None, None)
        finally:
            _give_up(self._place, taken)

    def prepare_to_leave(self) -> None:
        """Take the place, until :meth:`leave`. Calls nobody and waits for nobody; under the engine's lock."""
        # Nobody is entering: the entry is there, or was until now. Whoever entered it may not have said yet that it was
        # kept; what waits for that looks again.
        with _lock:
            self._taken = _taken[self._place] = _Taken()

    def leave(self) -> None:
        """Take out what was registered. Raises whatever the context manager raises."""
        self.settle(kept=False)


class RegistrationSlot(ItemSlot):
    """A place among the registrations of this process."""

    __slots__ = ()

    def is_current(self) -> bool:
        return True


def plan(step: Step) -> list[Plan]:
    """Enter what ``using`` returns, and plan to write that down. Who got the plan has to settle it.

    Raises:
        NotNeeded: that very thing is registered already.
        MissingTargetError: what it would be registered with is not there.
        PatchError: ``using`` returns no context manager, or another thread is in there for too long.
    """
    holder = find(step.target)
    if holder.value() is MISSING:
        raise MissingTargetError(holder.title, holder.title.partition(":")[0], holder.name)
    place = (str(step.target), str(step.using))
    title = f"{step.target}, by {step.using}"
    taken = _take(place, title)
    try:
        if place in _entered:
            raise NotNeeded(f"{title} is registered already")
        context = load(str(step.using))()
        if not (hasattr(type(context), "__enter__") and hasattr(type(context), "__exit__")):
            raise PatchError(
                f"{step.using} returned {context!r}; expected a context manager, which registers when it is entered, "
                "and takes that back when it is left"
            )
        context.__enter__()
        registration = Registration(place, taken, title, context)
    except BaseException:
        _give_up(place, taken)
        raise
    return [Plan(RegistrationSlot(_entered, place, title), MISSING, registration, registration=registration)]


def _take(place: _Place, title: str) -> _Taken:
    while True:
        with _lock:
            other = _taken.get(place)
            if other is None:
                _taken[place] = _Taken()
                return _taken[place]
        if other.thread == get_ident():
            raise PatchError(f"{title}: asked for while this very thread registers it, or takes it back")
        if not other.done.wait(_LONGEST_WAIT):
            raise PatchError(
                f"{title}: another thread has been registering it, or taking it back, for {_LONGEST_WAIT} s"
            )


def _give_up(place: _Place, taken: _Taken) -> None:
    with _lock:
        if _taken.get(place) is taken:
            del _taken[place]
    taken.done.set()


def _after_fork_in_child() -> None:
    # Threads that were entering or leaving are not in the child, and nobody would ever give their places up.
    global _lock
    _lock = threading.Lock()
    for place, taken in list(_taken.items()):
        if taken.thread != get_ident():
            del _taken[place]


os.register_at_fork(after_in_child=_after_fork_in_child)
