"""How verdicts look: a symbol, a word and a colour each, so that none of the three is needed to tell them apart."""

from __future__ import annotations

from dataclasses import dataclass

from . import judging


@dataclass(frozen=True, slots=True)
class Look:
    """A verdict's symbol, its form in plain ASCII, a short word for a cell, and a colour by its name in rich."""

    symbol: str
    ascii: str
    word: str
    colour: str
    meaning: str


LOOKS = {
    judging.NEEDED: Look("●", "*", "", "green", "needed: inside of the window, and the defect is there"),
    judging.NOT_NEEDED: Look("·", ".", "", "dim", "not needed: outside of the window, no defect, or another patch's"),
    judging.TOO_NARROW: Look("✗", "X", "narrow", "bold red", "window too narrow: outside of it, the defect is there"),
    judging.TOO_WIDE: Look("✗", "X", "wide", "bold red", "window too wide: inside of it, the defect is not there"),
    judging.TARGET_MISSING: Look("✗", "X", "missing", "bold red", "target missing: inside of it, nothing to patch"),
    judging.DRIFTED: Look("✗", "X", "drifted", "bold red", "drifted: another source than the pinned one"),
    judging.UNKNOWN: Look("?", "?", "", "yellow", "unknown: the sources cannot tell"),
}


def cell(verdict: str, *, ascii_only: bool = False) -> str:
    """What stands in a table's cell."""
    look = LOOKS[verdict]
    return f"{look.ascii if ascii_only else look.symbol} {look.word}".strip()
