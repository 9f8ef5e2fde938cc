"""Registrations: what a call puts into somebody's registry, and another call takes out again.

An operator of ``torch.library`` or a native library is in no slot that could be read and written. ``using`` returns a
context manager for it, which is entered when the patch is applied and left when it is undone. Both are foreign code, so
both are done without the engine's lock: entering is a part of planning, and leaving follows when the books are closed.
Meanwhile the place is taken, and another thread that wants it waits, so that nothing is registered twice.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from threading import get_ident
from typing import Any

from .errors import PatchError

_LONGEST_WAIT = 60
"""Seconds for which a thread waits while another enters or leaves. Registering takes milliseconds, loading a library
seconds; a thread that waits longer is most likely waited for."""

Place = tuple[str, str]
"""A target, and what registers something there."""
ENTERED: dict[Place, Registration] = {}
"""What is registered now. The engine writes it, under its lock."""
_taken: dict[Place, _Taken] = {}
# The garbage collector may end a context of ours, and so come here, in the middle of what is done here.
_lock = threading.RLock()


class _Taken:
    """A place where a thread is entering or leaving."""

    __slots__ = ("done", "thread")

    def __init__(self) -> None:
        # None: nobody has come to leave yet.
        self.thread: int | None = get_ident()
        self.done = threading.Event()


class Registration:
    """A context manager that was entered for a patch.

    Attributes:
        title: its target and what it was made by.
        kept: the plan that it was entered for was carried out. Written under the engine's lock.
    """

    __slots__ = ("_context", "_entering", "_leaving", "_place", "kept", "title")

    def __init__(self, place: Place, entering: _Taken, title: str, context: AbstractContextManager[Any]) -> None:
        self._place = place
        self._entering = entering
        self._leaving = entering
        self._context = context
        self.title = title
        self.kept = False

    def settle(self) -> None:
        """Say that the plan that this was entered for was carried out or given up; what was not kept is left."""
        try:
            if not self.kept:
                self._context.__exit__(None, None, None)
        finally:
            _give_up(self._place, self._entering)

    def prepare_to_leave(self) -> bool:
        """Take the place, until :meth:`leave`. Calls nobody and waits for nobody; under the engine's lock.

        Returns:
            False where that was done before.
        """
        if self._leaving is not self._entering:
            return False
        # Nobody else is entering, as the entry was there until now. Whoever entered may not have said yet that it was
        # kept: what waits for that is told then, and finds the place taken once more.
        taken = _Taken()
        taken.thread = None
        with _lock:
            self._leaving = _taken[self._place] = taken
        return True

    def wait(self) -> None:
        """Wait until another thread has left; at once where it is this thread that leaves."""
        if self._leaving.thread != get_ident():
            self._leaving.done.wait(_LONGEST_WAIT)

    def leave(self) -> None:
        """Take out what was registered. Raises whatever the context manager raises."""
        self._leaving.thread = get_ident()
        try:
            self._context.__exit__(None, None, None)
        finally:
            _give_up(self._place, self._leaving)


def enter(place: Place, title: str, make: Callable[[], Any]) -> Registration | None:
    """Enter the context manager that ``make`` returns. Whoever gets the registration has to settle it.

    Returns:
        None where that place is registered already.

    Raises:
        PatchError: ``make`` returns no context manager, or another thread is in there for too long.
    """
    taken = _take(place, title)
    registration = None
    try:
        if place not in ENTERED:
            context = make()
            if not (hasattr(type(context), "__enter__") and hasattr(type(context), "__exit__")):
                raise PatchError(
                    f"{title}: found {context!r}; expected a context manager, which registers when it is entered, and "
                    "takes that back when it is left"
                )
            context.__enter__()
            registration = Registration(place, taken, title, context)
    finally:
        if registration is None:
            _give_up(place, taken)
    return registration


def _take(place: Place, title: str) -> _Taken:
    mine = _Taken()
    while True:
        with _lock:
            other = _taken.setdefault(place, mine)
        if other is mine:
            return mine
        if other.thread == get_ident():
            raise PatchError(f"{title}: asked for while this very thread registers it, or takes it back")
        if not other.done.wait(_LONGEST_WAIT):
            raise PatchError(
                f"{title}: another thread has been registering it, or taking it back, for {_LONGEST_WAIT} s"
            )


def _give_up(place: Place, taken: _Taken) -> None:
    with _lock:
        if _taken.get(place) is taken:
            del _taken[place]
    taken.done.set()


def _after_fork_in_child() -> None:
    # Threads that were entering or leaving are not in the child, and nobody would ever give their places up.
    global _lock
    _lock = threading.RLock()
    for place, taken in list(_taken.items()):
        if taken.thread != get_ident():
            del _taken[place]


os.register_at_fork(after_in_child=_after_fork_in_child)
