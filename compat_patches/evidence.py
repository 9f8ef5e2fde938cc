"""Evidence: is the defect really in the code that is installed?

Each kind of evidence is decided in one place, here, from :class:`Facts` about the target. The running engine
gathers the facts from the loaded objects (:class:`LiveFacts`); the audit gathers the same facts from source files.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import sys
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from . import source
from .manifest import Target
from .target import MISSING, find
from .verdict import Verdict


class Facts(Protocol):
    """What can be known of a target. Every method answers None where it cannot tell."""

    def parameters(self, target: Target) -> tuple[str, ...] | None:
        """The parameter names; ``*args`` and ``**kwargs`` keep their stars."""

    def exists(self, target: Target) -> bool | None:
        """Whether the target is there."""

    def definition(self, target: Target) -> ast.AST | None:
        """The syntax tree of the target's definition."""

    def probe(self, reference: Target) -> Verdict | None:
        """What a probe, a function of the patch's author, answers.

        It takes nothing and returns whether the defect is there (None: it cannot tell), alone or with the reason: a
        :class:`~compat_patches.verdict.Verdict` or a pair.
        """


def decide(needed_if: Mapping[str, Any], target: Target, facts: Facts) -> Verdict:
    """Decide all evidence of a patch; all of it has to hold.

    Args:
        needed_if: the table of the manifest.
        target: the target that the evidence is about.
        facts: what is known of it.

    Returns:
        ``ok`` True: the defect is there. False: it is not. None: it cannot be told, and why.
    """
    reasons: list[str] = []
    untold: list[str] = []
    # In the order of the kinds, so that a probe, which is foreign code, is asked last.
    for kind, decide_kind in _KINDS.items():
        if kind not in needed_if:
            continue
        verdict = decide_kind(needed_if[kind], target, facts)
        if verdict.ok is False:
            return verdict
        (reasons if verdict.ok else untold).append(verdict.reason)
    if untold:
        return Verdict(None, "; ".join(untold))
    return Verdict(True, "; ".join(reasons))


def drift(target: Target, pins: Mapping[str, tuple[str, ...]], facts: Facts) -> str | None:
    """Whether upstream's source is another one than those that a patch was written against.

    Args:
        target: what the pins are about.
        pins: hashes by release.
        facts: what is known of the target.

    Returns:
        The reason, None where the source is one of the pinned.
    """
    node = facts.definition(target)
    found = None if node is None else source.tree_hash(node)
    known = {text: release for release, hashes in pins.items() for text in hashes}
    if found is not None and any(found.startswith(text) for text in known):
        return None
    pinned = ", ".join(f"{text} ({release})" for text, release in known.items())
    return f"the source of {target} is {found or 'unreadable'}, and the patch was written against {pinned}"


def _lacks_parameter(wanted: Any, target: Target, facts: Facts) -> Verdict:
    found = facts.parameters(target)
    if found is None:
        return Verdict(None, f"cannot read the parameters of {target}")
    lacking = [name for name in _names(wanted) if name not in found]
    shown = ", ".join(found)
    if lacking:
        return Verdict(True, f"{target} takes ({shown}), not {' nor '.join(lacking)}")
    return Verdict(False, f"{target} takes ({shown}), {' and '.join(_names(wanted))} included")


def _has_parameter(wanted: Any, target: Target, facts: Facts) -> Verdict:
    verdict = _lacks_parameter(wanted, target, facts)
    return verdict if verdict.ok is None else verdict.replace(ok=not verdict.ok)


def _lacks_attribute(wanted: Any, target: Target, facts: Facts) -> Verdict:
    for name in _names(wanted):
        sought = _relative(name, target)
        there = facts.exists(sought)
        if there is None:
            return Verdict(None, f"cannot tell whether {sought} is there")
        if not there:
            return Verdict(True, f"there is no {sought}")
    return Verdict(False, f"{' and '.join(str(_relative(n, target)) for n in _names(wanted))} is there")


def _of_source(decide: Callable[[Any, Target, ast.AST], Verdict]) -> Callable[[Any, Target, Facts], Verdict]:
    """A kind that is decided by the source of the target, where that can be read."""

    def decide_kind(wanted: Any, target: Target, facts: Facts) -> Verdict:
        node = facts.definition(target)
        return Verdict(None, f"cannot read the source of {target}") if node is None else decide(wanted, target, node)

    return decide_kind


@_of_source
def _lacks_constant(wanted: Any, target: Target, node: ast.AST) -> Verdict:
    found = source.constants(node)
    lacking = [name for name in _names(wanted) if name not in found]
    if lacking:
        return Verdict(True, f"{target} does not mention {' nor '.join(map(repr, lacking))}")
    return Verdict(False, f"{target} mentions {' and '.join(map(repr, _names(wanted)))}")


@_of_source
def _does_not_catch(wanted: Any, target: Target, node: ast.AST) -> Verdict:
    found = source.caught(node)
    escaping = [name for name in _names(wanted) if not source.catches(found, name)]
    shown = ", ".join(found) or "nothing"
    if escaping:
        return Verdict(True, f"{target} catches {shown}, not {' nor '.join(escaping)}")
    return Verdict(False, f"{target} catches {shown}, and so {' and '.join(_names(wanted))}")


@_of_source
def _source_hash(wanted: Any, target: Target, node: ast.AST) -> Verdict:
    found = source.tree_hash(node)
    for known in _names(wanted):
        if found.startswith(known):
            return Verdict(True, f"the source of {target} is the one with the defect ({found})")
    return Verdict(False, f"the source of {target} is {found}, the defect is in {', '.join(_names(wanted))}")


def _probe(wanted: Any, target: Target, facts: Facts) -> Verdict:
    verdict = facts.probe(Target.parse(wanted))
    if verdict is None:
        return Verdict(None, f"the probe {wanted} cannot tell")
    return verdict


_KINDS: dict[str, Callable[[Any, Target, Facts], Verdict]] = {
    "lacks_parameter": _lacks_parameter,
    "has_parameter": _has_parameter,
    "lacks_attribute": _lacks_attribute,
    "lacks_constant": _lacks_constant,
    "does_not_catch": _does_not_catch,
    "source_hash": _source_hash,
    "probe": _probe,
}


def _names(wanted: Any) -> list[str]:
    return list(wanted) if isinstance(wanted, list | tuple) else [wanted]


def _relative(name: str, target: Target) -> Target:
    """A name without a colon is sought where the target stands."""
    if ":" in name:
        return Target.parse(name)
    owner = target.qualname.rpartition(".")[0]
    return Target(target.module, f"{owner}.{name}" if owner else name)


class LiveFacts:
    """Facts about objects that are loaded in this process. Nothing is imported, but for a probe."""

    def parameters(self, target: Target) -> tuple[str, ...] | None:
        value = self._value(target)
        if value is MISSING:
            return None
        if isinstance(value, staticmethod | classmethod):
            value = value.__func__
        try:
            signature = _signature(value)
        except (TypeError, ValueError):
            return None
        stars: dict[Any, str] = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
        return tuple(stars.get(p.kind, "") + p.name for p in signature.parameters.values())

    def exists(self, target: Target) -> bool | None:
        if target.module not in sys.modules:
            return None
        return self._value(target) is not MISSING

    def definition(self, target: Target) -> ast.AST | None:
        value = self._value(target)
        return None if value is MISSING else source.definition_of(value)

    def probe(self, reference: Target) -> Verdict | None:
        function: Any = importlib.import_module(reference.module)
        for name in reference.qualname.split("."):
            function = getattr(function, name)
        answer = function()
        if answer is None:
            return None
        if hasattr(answer, "ok") and hasattr(answer, "reason"):
            # A verdict, by what it has: it may be of another copy of us.
            return Verdict(answer.ok, str(answer.reason))
        if isinstance(answer, tuple):
            return Verdict(bool(answer[0]), str(answer[1]))
        return Verdict(bool(answer), f"the probe {reference} says {bool(answer)}")

    @staticmethod
    def _value(target: Target) -> Any:
        try:
            slot = find(target)
        except LookupError:
            return MISSING
        return slot.value()


def _signature(value: Any) -> inspect.Signature:
    if sys.version_info >= (3, 14):
        # Annotations are computed when they are asked for, and may name what only a type checker imports.
        import annotationlib

        return inspect.signature(value, annotation_format=annotationlib.Format.FORWARDREF)
    return inspect.signature(value)
