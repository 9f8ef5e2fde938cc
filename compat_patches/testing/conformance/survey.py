"""What can be seen of one patch in one fresh process: that it applies, once, and is undone exactly; its evidence; and
whether Dynamo can trace what it puts in place.
"""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import FunctionType
from typing import Any

from ... import manifest
from ...container_slots import ElementSlot
from ...copies import find_copies
from ...report import PatchStatus
from ...target import Slot
from ..slots import described
from . import evidence_check
from .forking import in_fork
from .photograph import Photograph
from .process import SuiteError
from .subject import Subject, subjects

CHECKS = ("applies", "is_idempotent", "undoes_exactly", "evidence", "is_traceable")
"""The checks, in the order in which they are reported."""

# Dynamo does not trace itself, nor the compiler behind it.
_NEVER_TRACED = ("torch._dynamo", "torch._inductor", "torch._functorch", "torch.fx")


@dataclass(slots=True)
class Findings:
    """What is wrong, by check; and why a check was not made."""

    problems: dict[str, list[str]] = field(default_factory=lambda: {name: [] for name in CHECKS})
    skipped: dict[str, str] = field(default_factory=dict)

    def skip(self, reason: str, *checks: str) -> None:
        self.skipped.update((check, reason) for check in checks)


def run(path: str) -> dict[str, Any]:
    """Make all checks of all patches of a manifest; called in a fresh process.

    Returns:
        By id of the patch: ``problems`` and ``skipped``, each by check.
    """
    ids = [patch.id for patch in manifest.load(path).patches]
    with subjects(path, ids) as found:
        # What several patches need is imported once. Each patch then has a process of its own.
        for subject in found:
            with contextlib.suppress(ImportError):
                subject.import_modules()
        return {subject.patch.id: _survey_apart(subject) for subject in found}


def _survey_apart(subject: Subject) -> dict[str, Any]:
    try:
        found: dict[str, Any] = in_fork(lambda: _findings(subject))
    except SuiteError as error:
        return {"problems": {check: [str(error)] for check in CHECKS}, "skipped": {}}
    return found


def _findings(subject: Subject) -> dict[str, Any]:
    findings = Findings()
    _survey(subject, findings)
    return {"problems": findings.problems, "skipped": findings.skipped}


def _survey(subject: Subject, findings: Findings) -> None:
    others = [check for check in CHECKS if check != "evidence"]
    try:
        subject.import_modules()
    except ImportError as error:
        reason = f"importing {' and '.join(subject.modules)} raised {type(error).__name__}: {error}"
        if subject.refusal is None:
            findings.problems["applies"].append(reason)
            findings.skip("see 'applies'", *(check for check in CHECKS if check != "applies"))
        else:
            findings.skip(f"{subject.refusal}; {reason}", *CHECKS)
        return
    needed = evidence_check.judge(subject, findings.problems["evidence"])
    if needed is None:
        findings.skip("the patch has no needed_if", "evidence")
    if subject.refusal is not None:
        findings.skip(subject.refusal, *others)
        return
    if needed is not None and not needed.ok:
        # Its evidence is reported as wrong; there is nothing to apply.
        findings.skip(f"not needed: {needed.reason}", *others)
        return
    slots = list(subject.slots.values())
    before = Photograph(slots)
    originals = {slot.title: slot.value() for slot in slots}
    raw = {slot.title: slot.raw() for slot in slots}
    status = subject.apply()
    findings.problems["applies"] += _application_problems(status, slots, raw)
    if findings.problems["applies"]:
        findings.skip("the patch was not applied, see 'applies'", *(check for check in others if check != "applies"))
        return
    findings.problems["is_traceable"] += _tracing_problems(subject, slots, originals)
    findings.problems["evidence"] += evidence_check.left(subject)
    findings.problems["is_idempotent"] += _idempotence_problems(subject, slots, originals, before)
    subject.revert()
    findings.problems["undoes_exactly"] += before.differences()
    subject.revert()
    findings.problems["undoes_exactly"] += [
        f"undone twice: {difference}"
        for difference in before.differences()
        if difference not in findings.problems["undoes_exactly"]
    ]


def _application_problems(status: PatchStatus, slots: list[Slot], raw: dict[str, Any]) -> Iterator[str]:
    if status.state != "applied":
        yield f"{status.state}: {status.reason}" + (f"\n{status.traceback}" if status.traceback else "")
        return
    for slot in slots:
        if slot.same(slot.raw(), raw[slot.title]):
            yield f"{slot.title} holds what it held before, {described(slot.raw())}, although the patch is applied"


def _idempotence_problems(
    subject: Subject, slots: list[Slot], originals: dict[str, Any], before: Photograph
) -> Iterator[str]:
    entries = {slot.title: slot.raw() for slot in slots}
    depths = {slot.title: _depth(slot.raw(), originals[slot.title]) for slot in slots}
    subject.apply()
    for slot in slots:
        if not slot.same(slot.raw(), entries[slot.title]):
            yield f"the second application has put another object into {slot.title}: {described(slot.raw())}"
    for _ in range(2):
        subject.revert()
        subject.apply()
    for slot in slots:
        depth = _depth(slot.raw(), originals[slot.title])
        if depth > depths[slot.title]:
            yield (
                f"applying again adds a layer: {slot.title} goes through {depth} functions after the third "
                f"application, {depths[slot.title]} after the first; the implementation keeps what it made before "
                "instead of wrapping what it is given"
            )


def _depth(entry: Any, original: Any) -> int:
    """How many functions are reached from an entry through wrappers and closures, the original left out."""
    stop = {id(original), id(_inner(original))}
    seen: dict[int, Any] = {}
    waiting = [_inner(entry)]
    while waiting:
        found = waiting.pop()
        if id(found) in seen or id(found) in stop or not callable(found) or isinstance(found, type):
            continue
        seen[id(found)] = found
        waiting.append(getattr(found, "__wrapped__", None))
        if type(found) is FunctionType:
            waiting += [cell.cell_contents for cell in found.__closure__ or () if _is_filled(cell)]
            waiting += found.__defaults__ or ()
    return len(seen)


def _is_filled(cell: Any) -> bool:
    try:
        return cell.cell_contents is not None
    except ValueError:
        return False


def _inner(entry: Any) -> Any:
    if isinstance(entry, staticmethod | classmethod):
        return entry.__func__
    return entry.fget if isinstance(entry, property) else entry


def _tracing_problems(subject: Subject, slots: list[Slot], originals: dict[str, Any]) -> Iterator[str]:
    implementations = {step.using.partition(".")[0].partition(":")[0] for step in subject.patch.steps if step.using}
    roots = {step.target.root for step in subject.patch.steps}
    bound: dict[str, int] = {
        str(target): number for number, step in enumerate(subject.patch.steps) for target in step.targets
    }
    entries: dict[int, Slot] = {}
    for slot in slots:
        module = slot.title.partition(":")[0]
        entry, original = _inner(slot.raw()), _inner(originals[slot.title])
        if isinstance(slot, ElementSlot) or not callable(entry):
            continue
        if isinstance(original, type) and not isinstance(entry, type):
            yield (
                f"{slot.title} was a class, now it is {_kind(entry)}: isinstance, subclassing and `X | None` raise a "
                "TypeError; put a class in its place, or patch its __new__ or __init__"
            )
            continue
        if isinstance(entry, type) or any(module == name or module.startswith(f"{name}.") for name in _NEVER_TRACED):
            continue
        # Not isinstance: a proxy says that it is a function.
        if type(entry) is not FunctionType and (isinstance(original, FunctionType) or _is_proxy(entry)):
            yield (
                f"{slot.title} is {_kind(entry)}, expected a plain Python function: torch.compile runs straight past a "
                "proxy, without a word, and so past the patch; return a function from the implementation"
            )
        twin = entries.setdefault(id(entry), slot)
        if twin is not slot and bound.get(twin.title) != bound.get(slot.title):
            yield _one_object(slot.title, twin.title)
        known = [other for other in slots if bound.get(other.title) == bound.get(slot.title)]
        # An implementation stands in its own module too, where Dynamo has no handler for it.
        for copy in find_copies([entry], known, implementations - roots):
            yield _one_object(slot.title, copy.title)


def _kind(entry: Any) -> str:
    kind = f"{type(entry).__module__}.{type(entry).__qualname__}"
    return "a function" if type(entry) is FunctionType else f"a {kind}"


def _is_proxy(entry: Any) -> bool:
    # Proxies lie about their __class__, but not to type().
    return type(entry) is not getattr(entry, "__class__", None) and not inspect.isbuiltin(entry)


def _one_object(title: str, other: str) -> str:
    return (
        f"{title} and {other} hold one and the same object: Dynamo knows functions by identity, and takes one for the "
        "other or stops with an assertion; use the action `alias`, or make a function for each"
    )
