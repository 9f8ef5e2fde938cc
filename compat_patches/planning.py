"""Planning a patch: from its declaration and the circumstances to what shall be written, or to the reason why not.

Calls foreign code (implementations, their factories, probes) and owns no state: the engine calls it without a lock.
"""

from __future__ import annotations

import logging
from typing import Any

from . import actions, evidence, predicates
from .frozen import Frozen
from .manifest import Patch, Step, Target
from .plans import settle
from .predicates import Circumstances
from .target import MISSING, find
from .verdict import Verdict

log = logging.getLogger("compat_patches")


class Skip(Exception):
    """The patch is not to be applied here; the text says why."""


class Admission(Frozen):
    """A patch that is for these circumstances, with the steps that are, and why."""

    patch: Patch
    steps: tuple[Step, ...]
    verdict: Verdict
    forced: bool

    @property
    def modules(self) -> tuple[str, ...]:
        """The modules that have to be executed first."""
        return tuple(dict.fromkeys(name for step in self.steps for name in actions.modules_awaited(step)))


def admit(patch: Patch, circumstances: Circumstances, *, force: bool) -> Admission:
    """Ask the predicates.

    Args:
        force: pass over them. Of the steps, which may be one for each range of releases, those that are for this one
            are taken all the same, and all of them only where none is.

    Raises:
        Skip: the patch is not for these circumstances.
    """
    verdict = Verdict(True, "forced") if force else predicates.gate(patch, circumstances)
    if not verdict.ok:
        raise Skip(verdict.reason)
    steps = []
    refusals: list[str] = []
    for step in patch.steps:
        answers = [predicates.requirement_verdict(text, circumstances) for text in step.requires]
        needs_evidence = any(answer.needs_evidence for answer in answers)
        refused = [answer.reason for answer in answers if not answer.ok]
        if needs_evidence and not patch.needed_if and not force:
            refused.append("unproven on a pre-release: a step asks for its version, and the patch has no needed_if")
        refusals += refused
        if not refused:
            steps.append(step)
            verdict = verdict.replace(needs_evidence=verdict.needs_evidence or needs_evidence)
    if not steps and not force:
        raise Skip("; ".join(refusals))
    return Admission(patch, tuple(steps) or patch.steps, verdict, force)


def prepare(admission: Admission) -> tuple[list[actions.Plan], str]:
    """Ask the evidence, and plan all steps. All modules of the admission have been executed.

    Returns:
        What shall be written, and why.

    Raises:
        Skip: the defect is not there, or the code that the patch was written against is not.
        MissingTargetError: a part of a target is not there.
        Exception: whatever the implementation raises.
    """
    if not admission.forced:
        _look_for_marks(admission)
    verdict = admission.verdict if admission.forced else _weigh(admission)
    plans: list[actions.Plan] = []
    not_needed = []
    for step in admission.steps:
        try:
            plans += actions.plan(step)
        except actions.NotNeeded as reason:
            not_needed.append(str(reason))
        except BaseException:
            settle(plans)
            raise
    if not plans:
        raise Skip(f"not needed: {'; '.join(not_needed)}")
    cautions = dict.fromkeys(plan.caution for plan in plans if plan.caution)
    for caution in cautions:
        log.warning("%s: %s", admission.patch.qualified_id, caution)
    return plans, "; ".join((verdict.reason, *cautions))


def _look_for_marks(admission: Admission) -> None:
    """Leave alone what another tool says that it has patched already."""
    for mark in admission.patch.skip_if_marked:
        if ":" in mark:
            if _is_true(_value_of(Target.parse(mark))):
                raise Skip(f"marked: {mark} is there and true, so another tool has patched {admission.patch.target}")
            continue
        for step in admission.steps:
            for target in step.targets:
                marked = _value_of(target)
                for name in mark.split("."):
                    # Not getattr: what a proxy or a mock makes up is no mark.
                    marked = _attribute(marked, name)
                if _is_true(marked):
                    raise Skip(f"marked: {target} has a true {mark!r}, so another tool has patched it")


def _value_of(target: Target) -> Any:
    """What stands in a target, without its descriptor; :data:`~compat_patches.target.MISSING` where nothing does."""
    try:
        value = find(target).value()
    except LookupError:
        return MISSING
    kind = type(value)
    if issubclass(kind, staticmethod | classmethod):
        return value.__func__
    return value.fget if issubclass(kind, property) else value


def _attribute(value: Any, name: str) -> Any:
    try:
        return (
            object.__getattribute__(value, name) if not isinstance(value, type) else type.__getattribute__(value, name)
        )
    except Exception:
        return MISSING


def _is_true(value: Any) -> bool:
    try:
        return bool(value)
    except Exception:
        # It is there, and says neither yes nor no; as a tensor of several elements does.
        return True


def _weigh(admission: Admission) -> Verdict:
    patch, verdict = admission.patch, admission.verdict
    facts = evidence.LiveFacts()
    if patch.needed_if:
        found = evidence.decide(patch.needed_if, patch.target, facts)
        if found.ok is False:
            raise Skip(f"not needed: {found.reason}")
        if found.ok is None and verdict.needs_evidence:
            raise Skip(f"unproven on a pre-release: {verdict.reason}, and {found.reason}")
        verdict = verdict.replace(reason=f"{verdict.reason}; {found.reason}")
    for step in admission.steps:
        drifted = evidence.drift(step.target, step.pins, facts) if step.pins else None
        if drifted is not None:
            raise Skip(f"drifted: {drifted}")
    return verdict
