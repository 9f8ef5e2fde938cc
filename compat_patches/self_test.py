"""The self-test: does code that uses what a patch changed still go through ``torch.compile``?

Dynamo knows many functions of torch by identity. A stand-in that it does not expect can make it assert, break the
graph, or run past the stand-in. This is asked by tests and by ``doctor``, never at activation: it costs seconds.
"""

from __future__ import annotations

from dataclasses import replace

from .engine import Engine
from .manifest import Patch
from .report import PatchStatus


def selftest(engine: Engine, *names: str) -> list[PatchStatus]:
    """Compile each patch's samples with ``torch.compile(fullgraph=True)``, with the patch applied.

    Only Dynamo is asked (``backend="eager"``), as no C++ compiler is needed for that.

    Args:
        engine: whose patches.
        names: ids or groups; all patches without any.

    Returns:
        How each patch stands with the patch applied; ``failed``, with the error of Dynamo as the reason, where a sample
        can be called and cannot be compiled.

    Raises:
        UnknownPatchError: nothing has that name.
    """
    # Before any patch is on: Dynamo notes torch's classes for good when it first meets one, and would note ours.
    _fault_of_compiling("torch.Event()")
    results = []
    for patch in engine.patches(*names):
        with engine.holding(patch.qualified_id, wants=True) as (status,):
            results.append(_compiled(patch, status) if status.state in ("applied", "overlaid") else status)
    return results


def _compiled(patch: Patch, status: PatchStatus) -> PatchStatus:
    samples = [step.sample for step in patch.steps if step.sample is not None]
    compiled, uncallable, failures = [], [], []
    for sample in samples:
        fault = _fault_of_calling(sample)
        if fault is not None:
            uncallable.append(f"{sample} cannot be called here ({fault})")
            continue
        fault = _fault_of_compiling(sample)
        if fault is None:
            compiled.append(sample)
        else:
            failures.append(f"torch.compile fails on {sample}: {fault}")
    if failures:
        return replace(status, state="failed", reason="; ".join(failures))
    parts = [f"torch.compile takes {len(compiled)} of {len(samples)} samples", *uncallable]
    return replace(status, reason="; ".join([*filter(None, [status.reason]), *parts])) if samples else status


def _fault_of_calling(sample: str) -> str | None:
    try:
        eval(sample, _names())
    except Exception as error:
        return _first_line(error)
    return None


def _fault_of_compiling(sample: str) -> str | None:
    import torch

    names = _names()
    exec(f"def sample(x):\n    {sample}\n    return x + 1\n", names)
    torch._dynamo.reset()
    try:
        compiled = torch.compile(names["sample"], backend="eager", fullgraph=True)
        if compiled(torch.ones(1)).item() != 2:
            return "it computes something else"
    except Exception as error:
        return _first_line(error)
    finally:
        torch._dynamo.reset()
    return None


def _names() -> dict[str, object]:
    import torch

    return {"torch": torch}


def _first_line(error: Exception) -> str:
    return f"{type(error).__name__}: {next(iter(str(error).splitlines()), '')}"
