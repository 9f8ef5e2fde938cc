"""Judging: what a manifest declares, held against what the sources of a release say."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from packaging.requirements import Requirement

from .. import evidence, predicates
from ..manifest import Patch, Step, Target
from ..predicates import Circumstances
from ..verdict import Verdict
from .places import Release
from .trees import UnreadableSource

NEEDED = "needed"
NOT_NEEDED = "not needed"
TOO_NARROW = "window too narrow"
TOO_WIDE = "window too wide"
TARGET_MISSING = "target missing"
DRIFTED = "drifted"
UNKNOWN = "unknown"
VERDICTS = (NEEDED, NOT_NEEDED, TOO_NARROW, TOO_WIDE, TARGET_MISSING, DRIFTED, UNKNOWN)
MISMATCHES = frozenset({TOO_NARROW, TOO_WIDE, TARGET_MISSING, DRIFTED})

_ALWAYS_THERE = ("env",)
Runner = Callable[[Patch, Release], Verdict]


@dataclass(frozen=True, slots=True)
class Judgement:
    """What is to be said of one patch and one release.

    Attributes:
        verdict: one of :data:`VERDICTS`.
        reason: why.
        inside: whether the declared window has this release in it.
        evidence: whether the defect is there; None where that cannot be told.
    """

    patch: Patch
    release: Release
    verdict: str
    reason: str
    inside: bool
    evidence: bool | None

    @property
    def is_mismatch(self) -> bool:
        return self.verdict in MISMATCHES


def judge(patches: Sequence[Patch], release: Release, run: Runner | None = None) -> Iterator[Judgement]:
    """Judge patches against one release.

    Args:
        patches: all patches of the audit; one may look after a defect where another one's window ends.
        release: the release.
        run: asks running code, for what the sources cannot tell; None to leave that open.
    """
    weighed = {patch.qualified_id: _Weighed(patch, release, run) for patch in patches}
    for patch in patches:
        yield _judgement(weighed[patch.qualified_id], weighed.values())


class _Weighed:
    """One patch on one release: the window, the targets, the evidence."""

    def __init__(self, patch: Patch, release: Release, run: Runner | None) -> None:
        self.patch = patch
        self.release = release
        self.window = window_of(patch, release.version)
        self.steps = self.window.steps
        self.inside = bool(self.steps)
        self.trouble = ""
        self.missing = ""
        self.drift = ""
        self.found = Verdict(None, "")
        try:
            self.missing, unclear = self._look_for_targets()
            if not self.missing:
                self.found = self._weigh(run, unclear)
                self.drift = self._look_for_drift()
        except UnreadableSource as error:
            self.trouble = str(error)

    def _look_for_targets(self) -> tuple[str, str]:
        """What is missing, and what cannot be told of; each "" where all is well."""
        unclear = ""
        # Outside of the window only what the evidence is about has to be there.
        steps = self.steps or self.patch.steps[:1]
        for step in steps:
            for target, may_be_new in _targets_of(step):
                there, why = _is_there(target, self.release, may_be_new)
                if there is False:
                    return why, ""
                if there is None:
                    unclear = unclear or why
            if not self.inside:
                break
        return "", unclear

    def _weigh(self, run: Runner | None, unclear: str) -> Verdict:
        if not self.patch.needed_if:
            there = unclear or ("its targets are there" if self.inside else self.window.reason)
            return Verdict(None, f"the patch has no needed_if; {there}")
        found = evidence.decide(self.patch.needed_if, self.patch.target, self.release.facts)
        if found.ok is None and run is not None:
            return run(self.patch, self.release)
        if found.ok is None:
            why = self.release.facts.look(self.patch.target).why
            return Verdict(None, f"{found.reason}{f': {why}' if why else ''}")
        return found

    def _look_for_drift(self) -> str:
        drifts = (evidence.drift(step.target, step.pins, self.release.facts) for step in self.steps if step.pins)
        return next(filter(None, drifts), "")

    def defects(self) -> frozenset[tuple[str, str]]:
        """The defects that are there, each as a kind of evidence and one name; asked one by one.

        Empty where only running code knows of them.
        """
        found = set()
        for kind, name in _items(self.patch):
            if evidence.decide({kind: name}, self.patch.target, self.release.facts).ok:
                found.add((kind, name))
        return frozenset(found)

    def looks_after(self, defects: frozenset[tuple[str, str]], target: Target) -> bool:
        """Whether this patch, applied on this release, is declared to be against these defects."""
        if not self.inside or self.patch.target != target or not self.found.ok or self.missing or self.drift:
            return False
        return bool(defects) and defects <= set(_items(self.patch))


def _items(patch: Patch) -> Iterator[tuple[str, str]]:
    """What a patch's evidence says is wrong, item by item; what has to be there is no defect."""
    for kind, wanted in patch.needed_if.items():
        if kind != "has_parameter":
            for name in wanted if isinstance(wanted, list | tuple) else [wanted]:
                yield kind, str(name)


def _judgement(weighed: _Weighed, others: Iterable[_Weighed]) -> Judgement:
    verdict, reason = _verdict(weighed, others)
    return Judgement(weighed.patch, weighed.release, verdict, reason, weighed.inside, weighed.found.ok)


def _verdict(weighed: _Weighed, others: Iterable[_Weighed]) -> tuple[str, str]:
    found, window = weighed.found, weighed.window.reason
    if weighed.trouble:
        return UNKNOWN, weighed.trouble
    if weighed.missing:
        return (TARGET_MISSING if weighed.inside else NOT_NEEDED), f"{weighed.missing}; {window}"
    if weighed.inside:
        if found.ok is False and weighed.window.is_provisional:
            return NOT_NEEDED, f"{window}; {found.reason}"
        if found.ok is False:
            return TOO_WIDE, f"{window}, but the defect is not there: {found.reason}"
        if weighed.drift:
            return DRIFTED, weighed.drift
        if found.ok is None:
            return UNKNOWN, found.reason
        return NEEDED, f"{window}; {found.reason}"
    if found.ok is None:
        return UNKNOWN, found.reason
    if found.ok is False:
        return NOT_NEEDED, f"{window}; {found.reason}"
    defects = weighed.defects()
    for other in others:
        counts_here = other is not weighed and (other.patch.enabled or not weighed.patch.enabled)
        if counts_here and other.looks_after(defects, weighed.patch.target):
            return NOT_NEEDED, f"{window}; {other.patch.id} looks after it there: {found.reason}"
    return TOO_NARROW, f"{window}, but the defect is there: {found.reason}"


# --- the window ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Window:
    """How a declared window and a version of torch go together.

    Attributes:
        steps: the steps of the patch that are for the version; none where it is outside of the window.
        reason: for a person to read.
        is_provisional: the version is a pre-release, and only the evidence can tell on which side of the window it is.
    """

    steps: tuple[Step, ...]
    reason: str
    is_provisional: bool = False


def window_of(patch: Patch, version: str) -> Window:
    """Whether a version of torch is inside of a patch's window.

    Only what is required of torch counts: a build or a platform is a matter of the machine, not of the release.
    """
    circumstances = Circumstances(version, None)
    verdicts = [predicates.requirement_verdict(text, circumstances) for text in torch_requirements(patch.requires)]
    failed = [verdict.reason for verdict in verdicts if not verdict.ok]
    if failed:
        return Window((), failed[0])
    steps = tuple(
        step
        for step in patch.steps
        if all(predicates.requirement_verdict(text, circumstances).ok for text in torch_requirements(step.requires))
    )
    if not steps:
        return Window((), f"no step is for torch {version}")
    reason = "; ".join(verdict.reason for verdict in verdicts) or f"torch is {version}, every version wanted"
    return Window(steps, reason, any(verdict.needs_evidence for verdict in verdicts))


def torch_requirements(texts: Iterable[str]) -> list[str]:
    """What is required of torch's version, markers left off."""
    found = []
    for text in texts:
        requirement = Requirement(text)
        if re.sub(r"[-_.]+", "-", requirement.name).lower() == "torch":
            # As it was written: a specifier set would put the upper bound first.
            found.append(text.partition(";")[0].strip().replace(requirement.name, "torch", 1))
    return found


def window_text(patch: Patch) -> str:
    """The window as it is declared, for people."""
    return ", ".join(text.removeprefix("torch") for text in torch_requirements(patch.requires)) or "every torch"


# --- the targets ---------------------------------------------------------------------------------------------------


def _targets_of(step: Step) -> Iterator[tuple[Target, bool]]:
    """The targets that a step needs, and whether the last part of the name may be missing."""
    if step.action in _ALWAYS_THERE:
        return
    for target in step.targets:
        yield target, step.action == "inject"
    if step.action == "alias" and step.using is not None:
        yield Target.parse(step.using), False


def _is_there(target: Target, release: Release, may_be_new: bool) -> tuple[bool | None, str]:
    look = release.facts.look(target)
    where = f"in torch {release.version}"
    if look.there is True or (may_be_new and look.missing == target.name and look.missing != target.module):
        return True, ""
    if look.there is None:
        return None, f"whether {target} is there cannot be told: {look.why}"
    if look.missing == target.module:
        return False, f"there is no module {target.module} {where}"
    before = target.qualname.split(".")[: target.qualname.split(".").index(look.missing)]
    holder = f"{target.module}:{'.'.join(before)}" if before else target.module
    return False, f"{holder} has no {look.missing!r} {where} (wanted {target})"


def counts(judgements: Iterable[Judgement]) -> dict[str, Any]:
    """How often each verdict was given."""
    found = dict.fromkeys(VERDICTS, 0)
    for judgement in judgements:
        found[judgement.verdict] += 1
    return found
