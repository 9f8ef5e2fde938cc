"""Plans: what an action is going to write into a slot."""

from __future__ import annotations

import contextlib
import copy
import importlib
from collections.abc import Iterable
from typing import Any

from .errors import PatchError
from .frozen import Frozen
from .functions import Quieting
from .manifest import Step, Target
from .target import Slot

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .registrations import Registration


class NotNeeded(Exception):
    """There is nothing to do; the text says why."""


class Plan(Frozen):
    """What will be written into a slot.

    Attributes:
        slot: where.
        below: the raw entry that was there when the plan was made.
        entry: what is to stand there.
        quietings: makes the entry hand its calls through, for each plain function in it.
        calls_below: the entry uses what stood there, so that it cannot outlive it.
        caution: what the user has to know although it is applied.
        registration: what has been registered already, and is taken back where the plan is not carried out.
    """

    slot: Slot
    below: Any
    entry: Any
    quietings: tuple[Quieting, ...] = ()
    calls_below: bool = False
    caution: str = ""
    registration: Registration | None = None


def settle(plans: Iterable[Plan]) -> None:
    """Say that plans were carried out or given up. Whoever has asked for plans has to, outside of the engine's lock.

    Raises:
        Exception: whatever the patch's own code raises that takes back what was registered.
    """
    with contextlib.ExitStack() as stack:
        for plan in plans:
            if plan.registration is not None:
                stack.callback(plan.registration.settle)


def load(reference: str) -> Any:
    """Import the object that ``module:Qualified.name`` names.

    Raises:
        PatchError: the module has no such name. What the import raises goes through.
    """
    target = Target.parse(reference)
    found: Any = importlib.import_module(target.module)
    for part in target.qualname.split("."):
        try:
            found = getattr(found, part)
        except AttributeError:
            raise PatchError(f"implementation missing: {target.module} has no {part!r} (wanted {reference})") from None
    return found


def value_of(step: Step) -> Any:
    """The object that a step puts somewhere; a value of the manifest is copied, and belongs to nobody else."""
    return load(step.using) if step.using is not None else copy.deepcopy(step.value)
