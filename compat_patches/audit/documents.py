"""The outcome as JSON and as Markdown."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from ..errors import CompatPatchesError
from .judging import counts, window_text
from .outcome import Outcome
from .symbols import LOOKS, cell

BEGIN = "<!-- compat-patches audit: begin -->"
END = "<!-- compat-patches audit: end -->"


def as_document(outcome: Outcome) -> dict[str, Any]:
    """The document that ``compat-patches audit --json`` prints."""
    return {
        "schema": 1,
        "ok": outcome.is_fine,
        "mismatches": len(outcome.mismatches),
        "counts": counts(outcome.judgements),
        "releases": [
            {"label": release.label, "where": release.where, "version": release.version, "build": release.build}
            for release in outcome.read
        ],
        "unread": [{"where": place.where, "reason": place.why} for place in outcome.unread],
        "patches": [
            {
                "id": outcome.name_of(patch),
                "manifest": patch.manifest,
                "target": str(patch.target),
                "requires": list(patch.requires),
                "releases": {
                    judgement.release.label: {
                        "verdict": judgement.verdict,
                        "reason": judgement.reason,
                        "inside": judgement.inside,
                        "evidence": judgement.evidence,
                    }
                    for judgement in outcome.row(patch)
                },
            }
            for patch in outcome.patches
        ],
    }


def as_markdown(outcome: Outcome) -> str:
    """A table of patches by releases, the mismatches in words, and a legend of the symbols that occur."""
    labels = [release.label for release in outcome.read]
    lines = [
        f"| patch | window | {' | '.join(map(_escaped, labels))} |",
        f"|---|---|{':-:|' * len(labels)}",
    ]
    for patch in outcome.patches:
        cells = []
        for judgement in outcome.row(patch):
            text = cell(judgement.verdict)
            cells.append(f"**{text}**" if judgement.is_mismatch else text)
        lines.append(f"| `{outcome.name_of(patch)}` | {_escaped(window_text(patch))} | {' | '.join(cells)} |")
    seen = [verdict for verdict in LOOKS if any(j.verdict == verdict for j in outcome.judgements)]
    lines += ["", "; ".join(f"{cell(verdict)} {LOOKS[verdict].meaning}" for verdict in seen) + "."]
    if outcome.mismatches or outcome.unread:
        lines.append("")
    for judgement in outcome.mismatches:
        name = outcome.name_of(judgement.patch)
        lines.append(f"- `{name}` on {judgement.release.label}: **{judgement.verdict}**: {_escaped(judgement.reason)}")
    lines += [f"- {_escaped(place.where)} could not be read: {_escaped(place.why)}" for place in outcome.unread]
    return "\n".join(lines) + "\n"


def _escaped(text: str) -> str:
    return re.sub(r"([|<*_])", r"\\\1", text)


def write_markdown(path: Path, text: str) -> None:
    """Write Markdown to a file; in one that is there already, only what stands between the two marks is replaced.

    Raises:
        CompatPatchesError: the file is there and has no marks.
        OSError: it cannot be written.
    """
    if not path.exists():
        path.write_text(f"{BEGIN}\n{text}{END}\n", encoding="utf-8")
        return
    there = path.read_text(encoding="utf-8")
    before, begin, rest = there.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise CompatPatchesError(
            f"{path} is there and has no place for the table; put two lines into it, {BEGIN} and {END}, "
            f"or name a new file"
        )
    path.write_text(f"{before}{BEGIN}\n{text}{END}{after}", encoding="utf-8")
