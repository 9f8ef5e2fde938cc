"""The outcome as a table for a terminal, and as plain text for a pipe."""

from __future__ import annotations

from collections.abc import Iterator

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from .judging import UNKNOWN, Judgement, window_text
from .outcome import Outcome
from .places import Release
from .symbols import LOOKS, cell


def show(outcome: Outcome, console: Console, *, verbose: bool = False) -> None:
    """Print the table, what does not match, and what could not be read.

    Args:
        outcome: what was found.
        console: where to.
        verbose: the reason of each verdict as well.
    """
    ascii_only = not (console.encoding or "").lower().startswith("utf")
    if outcome.read:
        for table in _tables(outcome, ascii_only, not console.is_terminal, console.width):
            console.print(table)
        for verdict, look in LOOKS.items():
            if any(judgement.verdict == verdict for judgement in outcome.judgements):
                _print(console, Text(f"  {cell(verdict, ascii_only=ascii_only):<11}", look.colour), look.meaning)
    shown = outcome.judgements if verbose else [j for j in outcome.judgements if j.is_mismatch or j.verdict == UNKNOWN]
    for together in _grouped(shown):
        first = together[0]
        labels = ", ".join(judgement.release.label for judgement in together)
        heading = f"\n{outcome.name_of(first.patch)} on {labels}: {first.verdict}"
        _print(console, Text(heading, LOOKS[first.verdict].colour))
        _print(console, f"  {first.reason}")
    for place in outcome.unread:
        _print(console, Text(f"\n{place.where}: not read", "bold red"))
        _print(console, f"  {place.why}")
    console.print()
    _print(console, Text(summary(outcome), "green" if outcome.is_fine else "bold red"))


def _grouped(judgements: list[Judgement]) -> list[list[Judgement]]:
    """Judgements of one patch that say the same of several releases, together."""
    groups: dict[tuple[str, str, str], list[Judgement]] = {}
    for judgement in judgements:
        key = judgement.patch.qualified_id, judgement.verdict, judgement.reason
        groups.setdefault(key, []).append(judgement)
    return list(groups.values())


def summary(outcome: Outcome) -> str:
    """One line: what was looked at, and what came out."""
    releases, patches = len(outcome.read), len(outcome.patches)
    found = len(outcome.mismatches)
    text = f"{_many(patches, 'patch', 'patches')}, {_many(releases, 'release')}: "
    text += f"{_many(found, 'mismatch', 'mismatches')}" if found else "no mismatch"
    return f"{text}; {_many(len(outcome.unread), 'place')} could not be read" if outcome.unread else text


def _many(number: int, one: str, many: str | None = None) -> str:
    return f"{number} {one if number == 1 else many or one + 's'}"


def _tables(outcome: Outcome, ascii_only: bool, plain: bool, width: int) -> Iterator[Table]:
    """The table, cut between releases into as many as the width asks for."""
    around = 3  # A column's padding and the gap to the next one.
    head = max(len(outcome.name_of(patch)) for patch in outcome.patches) if outcome.patches else 5
    head += max((len(window_text(patch)) for patch in outcome.patches), default=6) + 2 * around
    part: list[Release] = []
    used = head
    for release in outcome.read:
        cells = [cell(outcome.of(patch, release).verdict, ascii_only=ascii_only) for patch in outcome.patches]
        needed = max(map(len, [release.label, *cells])) + around
        if part and used + needed > width:
            yield _table(outcome, part, ascii_only, plain)
            part, used = [], head
        part.append(release)
        used += needed
    yield _table(outcome, part, ascii_only, plain)


def _table(outcome: Outcome, releases: list[Release], ascii_only: bool, plain: bool) -> Table:
    table = Table(box=None if plain else box.SIMPLE_HEAD, pad_edge=False, padding=(0, 2 if plain else 1))
    table.add_column("patch", overflow="fold")
    table.add_column("window", overflow="fold", style="dim")
    for release in releases:
        table.add_column(Text(release.label), justify="center", overflow="fold", no_wrap=True)
    for patch in outcome.patches:
        verdicts = [outcome.of(patch, release).verdict for release in releases]
        cells = [Text(cell(verdict, ascii_only=ascii_only), LOOKS[verdict].colour) for verdict in verdicts]
        table.add_row(Text(outcome.name_of(patch)), Text(window_text(patch)), *cells)
    return table


def _print(console: Console, *parts: str | Text) -> None:
    line = Text()
    for part in parts:
        line.append_text(part if isinstance(part, Text) else Text(part))
    console.print(line, soft_wrap=True)
