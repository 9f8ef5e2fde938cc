"""A verdict: an answer that always carries its reason."""

from __future__ import annotations

from .frozen import Frozen


class Verdict(Frozen):
    """The answer of a predicate or of evidence.

    Attributes:
        ok: True, False, or None where it cannot be told.
        reason: for a person to read, with the found and the wanted value.
        needs_evidence: the answer is only good together with evidence (a pre-release of torch).
    """

    ok: bool | None
    reason: str
    needs_evidence: bool = False
