"""Which copy of compat_patches in this process has applied a patch.

There can be several: a vendored one under another name, or one that was imported anew after somebody had cleared
``sys.modules``. Each has a state of its own, and would put its layer on top of the other's. What they share is one
dictionary, kept on ``sys``, which lives as long as the process does and is imported by nobody.
"""

from __future__ import annotations

import os
import sys

_ATTRIBUTE = "_compat_patches_claims"
# By qualified id: who has it, and what that copy says of itself. Copies of other versions read and write this too.
_claims: dict[str, tuple[object, str]] = sys.__dict__.setdefault(_ATTRIBUTE, {})
_ME = object()
_DESCRIPTION = os.path.dirname(os.path.abspath(__file__))


def holder(qualified_id: str) -> str | None:
    """Where the other copy lies that has applied a patch; None where no other has."""
    who, description = _claims.get(qualified_id, (_ME, ""))
    return None if who is _ME else description


def claim(qualified_id: str) -> str | None:
    """Say that this copy applies a patch.

    Returns:
        As :func:`holder`, where another copy was first; then nothing is claimed.
    """
    _claims.setdefault(qualified_id, (_ME, _DESCRIPTION))
    return holder(qualified_id)


def release(qualified_id: str) -> None:
    """Take a :func:`claim` back, where there is one."""
    if holder(qualified_id) is None:
        _claims.pop(qualified_id, None)
