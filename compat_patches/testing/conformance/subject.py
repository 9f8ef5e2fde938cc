"""The patch that a part of the suite is about, in an engine of its own."""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Iterator
from dataclasses import dataclass

from ... import manifest, planning
from ...engine import Engine
from ...manifest import Manifest, Patch
from ...report import PatchStatus
from ...target import Slot
from ..slots import named_slots


@dataclass(frozen=True, slots=True)
class Subject:
    """A patch of a manifest, with an engine in which nothing else is loaded.

    Attributes:
        refusal: why the patch is not for this torch, build, platform and Python, evidence apart; None where it is.
    """

    manifest: Manifest
    patch: Patch
    engine: Engine
    admission: planning.Admission | None
    refusal: str | None

    @property
    def modules(self) -> tuple[str, ...]:
        """The modules that have to be imported before the patch can be applied."""
        if self.admission is not None:
            return self.admission.modules
        return (self.patch.target.module,)

    def import_modules(self) -> None:
        """Import them."""
        for name in self.modules:
            importlib.import_module(name)

    def apply(self) -> PatchStatus:
        [status] = self.engine.apply(self.patch.qualified_id)
        return status

    def revert(self) -> PatchStatus:
        [status] = self.engine.revert(self.patch.qualified_id)
        return status

    @property
    def slots(self) -> dict[str, Slot]:
        """The slots that the patch names and that can be found now, by title."""
        steps = self.admission.steps if self.admission is not None else self.patch.steps
        return {slot.title: slot for step in steps for slot in named_slots(step)}


@contextlib.contextmanager
def subjects(path: str, ids: list[str]) -> Iterator[list[Subject]]:
    """Load patches of a manifest into an engine of their own; nothing is applied yet."""
    declared = manifest.load(path)
    engine = Engine()
    engine.add(declared)
    engine.open()
    try:
        yield [_subject(declared, patch, engine) for patch in declared.patches if patch.id in ids]
    finally:
        engine.close()


def _subject(declared: Manifest, patch: Patch, engine: Engine) -> Subject:
    try:
        return Subject(declared, patch, engine, planning.admit(patch, engine.circumstances, force=False), None)
    except planning.Skip as skip:
        return Subject(declared, patch, engine, None, str(skip))
