"""Does the evidence of a patch agree with its window on the torch that is installed, and with what the patch does?"""

from __future__ import annotations

import builtins
import inspect
import pickle
import sys
from collections.abc import Iterator
from typing import Any

from ... import evidence, planning
from ...manifest import Patch
from ...target import MISSING, find
from ...verdict import Verdict
from .subject import Subject


def judge(subject: Subject, problems: list[str]) -> Verdict | None:
    """Ask the evidence before the patch is applied, and compare its answer with the window.

    Args:
        subject: the patch; its modules are imported.
        problems: what is wrong is added to it.

    Returns:
        What the evidence says; None where the patch has none.
    """
    patch = subject.patch
    if not patch.needed_if:
        return None
    problems += _misspelt(patch)
    try:
        found = evidence.decide(patch.needed_if, patch.target, evidence.LiveFacts())
    except Exception as error:
        found = Verdict(None, f"asking it raised {type(error).__name__}: {error}")
    if found.ok is None:
        problems.append(f"the evidence cannot be decided: {found.reason}")
    elif subject.admission is not None and not found.ok:
        window = subject.admission.verdict.reason
        problems.append(
            f"the window is too wide, or the evidence wrong: the window takes in this process ({window}), but the "
            f"defect is not there: {found.reason}"
        )
    elif subject.refusal is not None and found.ok and _is_past(subject) and not _others_in_charge(subject):
        problems.append(
            f"the window is too narrow: it has closed ({subject.refusal}), but the defect is still there: "
            f"{found.reason}"
        )
    return found


def left(subject: Subject) -> Iterator[str]:
    """What the evidence still claims once the patch is applied, where that can be told without upstream's source."""
    patch = subject.patch
    wanted = patch.needed_if.get("lacks_parameter")
    for name in _names(wanted):
        if not _takes(find(patch.target).value(), name):
            yield (
                f"the evidence is wrong: lacks_parameter = {name!r} holds as well with the patch applied, so it is not "
                f"what the patch provides; {patch.target} now takes {_signature(find(patch.target).value())}"
            )
    if "lacks_attribute" in patch.needed_if:
        found = evidence.decide(
            {"lacks_attribute": patch.needed_if["lacks_attribute"]}, patch.target, evidence.LiveFacts()
        )
        if found.ok:
            yield (
                f"the evidence is wrong: {found.reason}, with the patch applied as well, so it is not what the patch "
                "provides"
            )


def _misspelt(patch: Patch) -> Iterator[str]:
    """Exceptions that nobody has heard of: evidence of them would hold forever."""
    for name in _names(patch.needed_if.get("does_not_catch")):
        # The file of the target is where a class of upstream's own would be known by name.
        places = (builtins, pickle, sys.modules.get(patch.target.module))
        if not any(_is_exception(getattr(place, name, None)) for place in places):
            yield f"the evidence is wrong: there is no exception {name!r}, so nothing could ever catch it"


def _is_exception(value: Any) -> bool:
    return isinstance(value, type) and issubclass(value, BaseException)


def _names(wanted: Any) -> list[str]:
    if wanted is None:
        return []
    return list(wanted) if isinstance(wanted, list | tuple) else [wanted]


def _takes(value: Any, name: str) -> bool:
    inner = value.__func__ if isinstance(value, staticmethod | classmethod) else value
    for follow in (True, False):
        try:
            parameters = inspect.signature(inner, follow_wrapped=follow).parameters
        except (TypeError, ValueError):
            continue
        if name in parameters:
            return True
        # Without following, a wrapper that takes anything may well take this.
        if not follow and any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters.values()):
            return True
    return value is MISSING


def _signature(value: Any) -> str:
    inner = value.__func__ if isinstance(value, staticmethod | classmethod) else value
    try:
        # Its own: a stand-in shows the signature of what it wraps, where it has not got one set.
        return str(inspect.signature(inner, follow_wrapped=False))
    except (TypeError, ValueError):
        return "what cannot be read"


def _is_past(subject: Subject) -> bool:
    """Whether the installed version lies above the window, and nothing else is in the way.

    Below its window a patch may leave a defect alone: its author supports no older release.
    """
    from packaging.requirements import Requirement
    from packaging.version import InvalidVersion, Version

    patch = subject.patch
    for text in patch.requires:
        requirement = Requirement(text)
        found = subject.engine.circumstances.version(requirement.name)
        try:
            version = Version(Version(found or "").base_version)
        except InvalidVersion:
            return False
        for specifier in requirement.specifier:
            if not specifier.contains(version) and specifier.operator not in ("<", "<=", "=="):
                return False
            if specifier.operator == "==" and version < Version(specifier.version.removesuffix(".*")):
                return False
    return patch.marker is None and not patch.build


def _others_in_charge(subject: Subject) -> bool:
    """Whether another patch of the manifest takes over the same target here."""
    for other in subject.manifest.patches:
        if other.id == subject.patch.id or other.target != subject.patch.target:
            continue
        try:
            planning.admit(other, subject.engine.circumstances, force=False)
        except planning.Skip:
            continue
        return True
    return False
