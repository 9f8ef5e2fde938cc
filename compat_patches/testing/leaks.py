"""Leak detection: does a test leave the slots that manifests name as it found them?

A slot is looked at beneath what the engine itself has put there, so that a patch that comes into effect because a test
imports its target is no leak, while whatever else stands in the slot after the test and did not before is one, however
it came there. Of each patch it is also compared whether it is wanted.

What fixtures of wider scopes than a function change while they are set up is theirs, until they are torn down.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from .. import env_override, importing
from ..target import Slot
from .scope import held_by_scopes
from .slots import described, named_slots


@dataclass(frozen=True, slots=True)
class Leak:
    """Something that a test has left behind.

    Attributes:
        slot: the title of the slot, or ``patch`` and an id.
        reason: what was there before the test, and what is there after it.
    """

    slot: str
    reason: str

    def __str__(self) -> str:
        return f"{self.slot}: {self.reason}"


@dataclass(slots=True)
class _Sight:
    """What a slot held beneath our own layers. The slot is kept, as its key is good only while it lives."""

    slot: Slot
    held: Any
    lost: tuple[str, ...]


@dataclass(slots=True)
class Picture:
    """What all slots that manifests name hold, and what is wanted of all patches, at one time."""

    slots: dict[str, _Sight]
    wants: dict[str, bool]


class LeakWatch:
    """Compares the slots before and after each test."""

    def __init__(self) -> None:
        self._engine = env_override.engine()
        self._before: Picture | None = None
        self._held: set[str] = set()
        self._owed: dict[object, tuple[Picture, Picture]] = {}
        self._setting_up: list[Picture] = []
        self._watched: set[str] = set()
        importing.subscribe(self._executed)

    def close(self) -> None:
        """Stop listening to the import system."""
        importing.unsubscribe(self._executed)
        for module in self._watched:
            importing.unwatch(module, self)
        self._watched = set()

    def start(self) -> None:
        """A test begins."""
        self._before = self._take()
        self._held = held_by_scopes()

    def finish(self) -> list[Leak]:
        """A test is over, its fixtures torn down.

        Returns:
            What it has left behind.
        """
        before, self._before = self._before, None
        if before is None:
            return []
        exempt = self._held | held_by_scopes()
        return [*self._slot_leaks(before), *self._wish_leaks(before, exempt)]

    def fixture_begins(self) -> Picture:
        """A fixture of a wider scope than a function is about to be set up."""
        before = self._take()
        self._setting_up.append(before)
        return before

    def fixture_ready(self, fixture: object, before: Picture) -> None:
        """It has been set up; what it changed is its own affair until it is torn down."""
        self._setting_up = [picture for picture in self._setting_up if picture is not before]
        after = self._take()
        self._owed[fixture] = (before, after)
        if self._before is not None:
            self._settle_up(before, after)

    def fixture_done(self, fixture: object) -> None:
        """It has been torn down; what it changed should be as it was before it."""
        before, after = self._owed.pop(fixture, (None, None))
        if self._before is not None and before is not None and after is not None:
            self._settle_up(after, before)

    def _settle_up(self, one: Picture, other: Picture) -> None:
        """Expect at the end of the test what the second picture shows, wherever the two differ."""
        expected = self._before
        assert expected is not None
        for title, sight in other.slots.items():
            earlier = one.slots.get(title)
            if earlier is None or not sight.slot.same(earlier.held, sight.held):
                expected.slots[title] = sight
        for patch, wants in other.wants.items():
            if one.wants.get(patch) != wants:
                expected.wants[patch] = wants

    def _take(self) -> Picture:
        slots = {}
        for slot in self._slots():
            slots[slot.title] = self._look(slot)
        return Picture(slots, {patch: wish.wants for patch, wish in self._engine.wishes().items()})

    def _slots(self) -> Iterator[Slot]:
        for patch in self._engine.patches():
            for step in patch.steps:
                for target in step.targets:
                    if target.module not in self._watched:
                        # To learn what it holds when it has been executed, in case a test is the first to import it.
                        self._watched.add(target.module)
                        importing.watch(target.module, self)
                yield from named_slots(step)

    def _executed(self, module: str) -> None:
        """A module that holds targets has been executed, for the first time or again."""
        if self._before is None:
            return
        for slot in self._slots():
            if slot.title.partition(":")[0] == module:
                for picture in (self._before, *self._setting_up):
                    picture.slots[slot.title] = self._look(slot)

    def _slot_leaks(self, before: Picture) -> Iterator[Leak]:
        now = self._take().slots
        for title, earlier in before.slots.items():
            # It is not among the slots of now where the manifest that names it is not loaded any more.
            sight = now.get(title) or self._again(earlier)
            if sight is None:
                yield Leak(title, f"held {described(earlier.held)}, now there is no such place")
                continue
            if not sight.slot.same(earlier.held, sight.held):
                yield Leak(title, f"held {described(earlier.held)}, now {described(sight.held)}")
            for patch in sight.lost:
                if patch not in earlier.lost:
                    yield Leak(title, f"the patch {patch} was applied; now {described(sight.slot.raw())} is there")

    def _again(self, earlier: _Sight) -> _Sight | None:
        return self._look(earlier.slot) if earlier.slot.is_current() else None

    def _look(self, slot: Slot) -> _Sight:
        held, lost = self._engine.beneath(slot)
        return _Sight(slot, held, tuple(lost))

    def _wish_leaks(self, before: Picture, exempt: set[str]) -> Iterator[Leak]:
        for patch, wish in self._engine.wishes().items():
            wanted = before.wants.get(patch)
            if wanted is None or wanted == wish.wants or patch in exempt:
                continue
            yield Leak(
                f"patch {patch}",
                "was not wanted before the test, and is left applied"
                if wish.wants
                else "was wanted before the test, and is left undone",
            )
