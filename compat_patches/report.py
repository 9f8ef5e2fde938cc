"""What is reported of a patch, for people and for machines."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

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
