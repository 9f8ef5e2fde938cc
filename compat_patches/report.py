"""What is reported of a patch, for people and for machines."""

from __future__ import annotations

import os
import platform
import textwrap
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from .frozen import Frozen
from .manifest import Patch

STATES = ("pending", "applied", "skipped", "failed", "reverted", "overlaid", "lost")


@dataclass(frozen=True, slots=True)
class PatchStatus:
    """How one patch stands.

    Attributes:
        id: its id; qualified, ``manifest/id``, where two manifests use the same.
        manifest: the name of the manifest that declares it.
        state: one of :data:`STATES`.
        reason: why; empty only where there is nothing to add.
        target: the (first) target, ``package.module:Qualified.name``.
        summary: what the patch does.
        traceback: for ``failed``, where it went wrong.
    """

    id: str
    manifest: str
    state: str
    reason: str
    target: str
    summary: str
    traceback: str | None = None


def as_data(record: Any) -> Any:
    """A declaration as data that JSON can hold: records become dictionaries by field, all the way down."""
    if isinstance(record, Frozen):
        return as_data(record.as_dict())
    if isinstance(record, Mapping):
        return {key: as_data(value) for key, value in record.items()}
    return [as_data(value) for value in record] if isinstance(record, list | tuple) else record


def as_document(statuses: Iterable[PatchStatus], torch: str | None) -> dict[str, Any]:
    """The document that ``compat-patches status --json`` prints."""
    patches = []
    for status in statuses:
        record = asdict(status)
        if record["traceback"] is None:
            del record["traceback"]
        patches.append(record)
    return {
        "schema": 1,
        "pid": os.getpid(),
        "python": platform.python_version(),
        "torch": torch,
        "patches": patches,
    }


def explanation(patch: Patch, status: PatchStatus) -> str:
    """All that is known of a patch, as lines of plain text."""
    lines = [f"{status.id} ({patch.manifest}): {patch.summary}", "", *textwrap.wrap(patch.why, 88), ""]
    lines.append(f"state        {status.state}" + (f": {status.reason}" if status.reason else ""))
    for step in patch.steps:
        window = f" (where {', '.join(step.requires)})" if step.requires else ""
        lines.append(f"target       {step.target}: {step.action}{f' {step.using}' if step.using else ''}{window}")
        lines += [f"             {target}: the same" for target in step.also_bind]
    fields = {
        "requires": ", ".join(patch.requires),
        "marker": patch.marker,
        "build": ", ".join(patch.build),
        "needed if": ", ".join(f"{kind} = {wanted}" for kind, wanted in patch.needed_if.items()),
        "skipped if": f"marked by {' or '.join(patch.skip_if_marked)}" if patch.skip_if_marked else "",
        "after": ", ".join(patch.after),
        "before": ", ".join(patch.before),
        "conflicts": ", ".join(patch.conflicts),
        "scope": patch.scope + ("" if patch.enabled else ", only by name"),
        "groups": ", ".join(patch.groups),
        "upstream": "\n             ".join(patch.upstream),
        "remove when": patch.remove_when,
        "switch off": f"COMPAT_PATCHES_DISABLE={status.id}, or compat_patches.revert({status.id!r})",
    }
    lines += [f"{name:<12} {text}" for name, text in fields.items() if text]
    if status.traceback is not None:
        lines += ["", status.traceback.rstrip()]
    return "\n".join(lines)
