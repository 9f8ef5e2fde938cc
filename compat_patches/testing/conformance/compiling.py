"""Does a patch survive torch.compile? Asked of patches that say so, by ``affects_compile``.

The samples of the patch are compiled, as by :func:`compat_patches.selftest`. How the target of a patch without any is
called, nobody but its author knows. Its implementation is then applied, by the same action, to a function that adds one
to a tensor and stands where the target stands: in a module, or in a class as a method of the same kind. What a compiled
call of it returns must be what a plain call returns, with no graph break.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

from ...engine import Engine
from ...manifest import Manifest, Patch, Step, Target
from ...self_test import selftest
from ...target import ClassSlot, find
from .subject import Subject, subjects

_ACTIONS = ("wrap", "replace", "noop", "alias")
_MODULE = "compat_patches_conformance_probe"


def run(path: str, patch_id: str) -> dict[str, Any]:
    """Compile calls of what the patch puts in place; called in a fresh process.

    Returns:
        ``problems``, and ``skipped`` with the reason where the implementation cannot be called with a tensor.
    """
    with subjects(path, [patch_id]) as [subject]:
        subject.import_modules()
        steps = subject.admission.steps if subject.admission is not None else subject.patch.steps
        if any(step.sample is not None for step in steps):
            [status] = selftest(subject.engine, subject.patch.qualified_id)
            return {"problems": [] if status.state == "applied" else [status.reason], "skipped": None}
        answers = [_compiled(subject, step) for step in steps if step.action in _ACTIONS and _is_function(step)]
    problems = [problem for problem, _ in answers if problem]
    skipped = [reason for _, reason in answers if reason]
    if not answers:
        skipped = ["none of its actions puts a function in place of one, and it gives no sample"]
    return {"problems": problems, "skipped": "; ".join(skipped) if len(skipped) >= len(answers) else None}


def _is_function(step: Step) -> bool:
    value = find(step.target).value()
    return callable(value) and not isinstance(value, type)


def _compiled(subject: Subject, step: Step) -> tuple[str | None, str | None]:
    import torch

    call, target = _probe(step)
    patch = subject.patch.replace(
        requires=(),
        marker=None,
        build=(),
        needed_if={},
        irreversible=False,
        steps=(step.replace(target=target, also_bind=(), requires=(), pins={}),),
    )
    engine = Engine()
    engine.add(Manifest("compat-patches-conformance-probe", subject.manifest.source, "", (_named(patch),)))
    [status] = engine.apply(patch.id)
    if status.state != "applied":
        return f"{step.target}: {status.state}: {status.reason}", None
    tensor = torch.zeros(2)
    try:
        expected = call(tensor)
    except Exception as error:
        return None, f"what {step.using} makes cannot be called with a tensor: {type(error).__name__}: {error}"
    try:
        found = torch.compile(call, backend="eager", fullgraph=True)(tensor)
    except Exception as error:
        lines = str(error).strip().splitlines() or [""]
        return f"torch.compile(fullgraph=True) of a call fails: {type(error).__name__}: {lines[0]}", None
    if not _equal(expected, found):
        return (
            f"torch.compile runs past the patch of {step.target}: a plain call returns {expected!r}, a compiled one "
            f"{found!r}"
        ), None
    return None, None


def _named(patch: Patch) -> Patch:
    return patch.replace(manifest="compat-patches-conformance-probe")


def _probe(step: Step) -> tuple[Callable[[Any], Any], Target]:
    """Put a function where the target stands, in a scratch module."""
    module = ModuleType(_MODULE)
    sys.modules[_MODULE] = module

    def probe(*args: Any, **kwargs: Any) -> Any:
        return args[-1] + 1

    slot = find(step.target)
    if not isinstance(slot, ClassSlot):
        module.probe = probe  # type: ignore[attr-defined]  # a module made here
        return lambda tensor: module.probe(tensor), Target(_MODULE, "probe")
    raw = slot.value()
    held = type(raw)(probe) if isinstance(raw, staticmethod | classmethod) else probe
    holder = type("Holder", (), {"probe": held, "__module__": _MODULE})
    module.Holder = holder  # type: ignore[attr-defined]  # a module made here
    instance = holder()
    return lambda tensor: instance.probe(tensor), Target(_MODULE, "Holder.probe")


def _equal(one: Any, other: Any) -> bool:
    import torch

    if isinstance(one, torch.Tensor) and isinstance(other, torch.Tensor):
        return bool(torch.equal(one, other))
    return bool(one == other)
