"""Records: what is wanted of each patch and how it stands. The engine alone changes them, under its lock.

Plain classes, as each of them takes a fifth of what making a dataclass takes, in every process that imports torch.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections import deque
from collections.abc import Callable

from .errors import PatchError
from .layers import Layer
from .manifest import Patch
from .target import Slot

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .registrations import Registration

lock = threading.RLock()
"""Held for bookkeeping and for writing slots only, never while foreign code is called."""
# Taken before a fork, so that a child finds it free and the state whole.
os.register_at_fork(before=lock.acquire, after_in_parent=lock.release, after_in_child=lock.release)

_postponed: deque[Callable[[], None]] = deque()


def when_free(action: Callable[[], None]) -> None:
    """Do something now or, where this thread holds the lock, have it done by :func:`do_postponed`.

    The garbage collector ends a generator that nobody will resume, and the contexts in it, on the spot, in whatever
    thread has woken it up. That one may be in the middle of a change, and take the lock as often as it likes.
    """
    if lock._is_owned():  # type: ignore[attr-defined]  # as threading.Condition asks it
        _postponed.append(action)
    else:
        action()


def do_postponed() -> None:
    """Do what came in the middle of a change. Without the lock."""
    while _postponed:
        try:
            action = _postponed.popleft()
        except IndexError:
            return  # Another thread was faster.
        # Where the settings are strict; it is noted, and is no failure of what is being done.
        with contextlib.suppress(PatchError):
            action()


class Claim:
    """A ``with applied(…)`` or ``with reverted(…)`` whose body is being executed."""

    __slots__ = ("force", "left", "wants")

    def __init__(self, wants: bool, force: bool) -> None:
        self.wants = wants
        self.force = force
        self.left = False


class Record:
    """The state of one patch.

    Attributes:
        wanted: whether it is to be applied where no claim says otherwise.
        force: whether it is to be applied whatever the predicates say, where no claim says otherwise.
        claims: the contexts that are open, the one entered last at the end.
        layers: what it has in slots, the lingering included.
        leaving: what it has registered and is being taken back.
        watching: the modules of which it is told that they have been executed.
        modules: what it has been planned from: a reload of these applies it again.
        copies: where copies by value were found, and how many modules were loaded, and which last, at that time.
    """

    __slots__ = (
        "claims",
        "copies",
        "force",
        "layers",
        "leaving",
        "modules",
        "patch",
        "reason",
        "state",
        "traceback",
        "wanted",
        "watching",
    )

    def __init__(self, patch: Patch) -> None:
        self.patch = patch
        self.state = "pending"
        self.reason = "not looked at yet"
        self.traceback: str | None = None
        self.wanted = False
        self.force = False
        self.claims: list[Claim] = []
        self.layers: list[Layer] = []
        self.leaving: list[Registration] = []
        self.watching: tuple[str, ...] = ()
        self.modules: tuple[str, ...] = ()
        self.copies: tuple[tuple[int, str], list[Slot]] = ((0, ""), [])

    @property
    def wants(self) -> bool:
        """Whether it is to be applied now."""
        return self.claims[-1].wants if self.claims else self.wanted

    @property
    def forced(self) -> bool:
        """Whether it is to be applied whatever the predicates say."""
        return self.claims[-1].force if self.claims else self.force

    @property
    def acting(self) -> list[Layer]:
        """What of its layers was not undone."""
        return [layer for layer in self.layers if not layer.lingering]

    def note(self, state: str, reason: str = "", trace: str | None = None) -> None:
        """Write down how it stands."""
        self.state, self.reason, self.traceback = state, reason, trace


class Wish:
    """What was wanted of one patch at some time, and how it stood; see :meth:`Engine.wishes`."""

    __slots__ = ("claims", "force", "note", "wanted")

    def __init__(self, record: Record) -> None:
        self.wanted = record.wanted
        self.force = record.force
        self.claims = tuple(record.claims)
        self.note = (record.state, record.reason, record.traceback)

    @property
    def wants(self) -> bool:
        """Whether the patch was to be applied."""
        return self.claims[-1].wants if self.claims else self.wanted


class Watches:
    """Which patches are told when a module has been executed."""

    def __init__(self) -> None:
        self._records: dict[str, dict[Record, None]] = {}

    def __len__(self) -> int:
        return len(self._records)

    def of(self, module: str) -> list[Record]:
        """Who waits for a module."""
        return list(self._records.get(module, ()))

    def add(self, module: str, record: Record) -> None:
        """Have a patch wait for a module. Doing it twice is doing it once."""
        self._records.setdefault(module, {})[record] = None

    def remove(self, module: str, record: Record) -> None:
        """Take an :meth:`add` back, where there is one."""
        waiting = self._records.get(module, {})
        waiting.pop(record, None)
        if not waiting:
            self._records.pop(module, None)
