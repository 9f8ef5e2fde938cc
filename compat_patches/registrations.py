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

    __slots__ = ("_context", "_entering", "_leaving", "_place", "title")

    def __init__(self, place: Place, entering: _Taken, title: str, context: AbstractContextManager[Any]) -> None:
        self._place = place
        self._entering = entering
        self._leaving = entering
        self._context = context
        self.title = title

    def settle(self, kept: bool) -> None:
        """Say whether the plan that this was entered for was carried out; where not, it is left."""
        try:
            if not kept:
                self._context.__exit__(None, None, None)
        finally:
            _give_up(self._place, self._entering)

    def prepare_to_leave(self) -> None:
        """Take the place, until :meth:`leave`. Calls nobody and waits for nobody; under the engine's lock."""
        # Nobody else is entering, as the entry was there until now. Whoever entered may not have said yet that it was
        # kept: what waits for that is told then, and finds the place taken once more.
        with _lock:
            self._leaving = _taken[self._place] = _Taken()

    def leave(self) -> None:
        """Take out what was registered. Raises whatever the context manager raises."""
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


def _give_up(place: Place, taken: _Taken) -> None:
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
