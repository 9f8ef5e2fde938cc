"""The outcome as a picture: the declared window as a bar, the evidence as marks on it, a mismatch as a red flag.

SVG without scripts or fonts of its own; it follows the reader's light or dark scheme.
"""

from __future__ import annotations

from html import escape

from . import judging
from .judging import Judgement, window_text
from .outcome import Outcome
from .symbols import LOOKS, cell

_ROW = 44
_COLUMN = 84
_LEFT = 300
_TOP = 58
_MARGIN = 20
_RADIUS = 7

# No CSS variables: converters to PNG and PDF do not know them.
_NAMES = ("paper", "ink", "faint", "line", "bar", "edge", "flag", "defect", "wrong", "unknown")
_LIGHT = "#ffffff #1f2328 #656d76 #d8dee4 #cfe3ff #5b9bf0 #ffdcd7 #1a7f37 #cf222e #9a6700"
_DARK = "#0d1117 #e6edf3 #8d96a0 #30363d #12345e #3b82d8 #4c1b1b #3fb950 #ff7b72 #d29922"
_FONTS = """
  text { font: 13px system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; }
  .small, .wrong { font-size: 11px; }
  .head { font-weight: 600; }
  .wrong, .query { font-weight: 700; }
  .query { font-size: 15px; }
"""


def _colours(palette: str) -> str:
    return """
  text {{ fill: {ink}; }}
  .small {{ fill: {faint}; }}
  .wrong {{ fill: {wrong}; }}
  .query {{ fill: {unknown}; }}
  .paper {{ fill: {paper}; }}
  .grid {{ stroke: {line}; }}
  .bar {{ fill: {bar}; stroke: {edge}; stroke-width: 1.5px; }}
  .flag {{ fill: {flag}; stroke: {wrong}; stroke-width: 1.5px; }}
  .defect {{ fill: {defect}; }}
  .absent {{ fill: {paper}; stroke: {faint}; stroke-width: 1.5px; }}
  .cross {{ stroke: {wrong}; stroke-width: 2.5px; }}""".format(**dict(zip(_NAMES, palette.split(), strict=True)))


_STYLE = f"{_FONTS}{_colours(_LIGHT)}\n  @media (prefers-color-scheme: dark) {{{_colours(_DARK)}\n  }}\n"


def as_svg(outcome: Outcome) -> str:
    """Draw the outcome.

    Returns:
        A whole SVG document.
    """
    releases = outcome.read
    width = _LEFT + _COLUMN * max(1, len(releases)) + 2 * _MARGIN
    legend, height = _legend(_TOP + _ROW * len(outcome.patches), width, outcome)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'role="img" aria-label="{escape(_described(outcome))}">',
        f"<style>{_STYLE}</style>",
        f'<rect class="paper" width="{width}" height="{height}" rx="8"/>',
        f'<text class="head" x="{_MARGIN}" y="34">patch</text>',
    ]
    for number, release in enumerate(releases):
        x = _center(number)
        parts.append(f'<text class="head" x="{x:g}" y="34" text-anchor="middle">{escape(release.label)}</text>')
    for number, patch in enumerate(outcome.patches):
        top = _TOP + number * _ROW
        parts += [
            f'<line class="grid" x1="{_MARGIN}" x2="{width - _MARGIN}" y1="{top}" y2="{top}"/>',
            f'<text x="{_MARGIN}" y="{top + 19}">{escape(outcome.name_of(patch))}</text>',
            f'<text class="small" x="{_MARGIN}" y="{top + 34}">torch {escape(window_text(patch))}</text>',
        ]
        parts += _row(outcome.row(patch), top)
    return "\n".join([*parts, *legend, "</svg>"]) + "\n"


def _center(number: int) -> float:
    return _LEFT + _MARGIN + _COLUMN * (number + 0.5)


def _row(row: list[Judgement], top: int) -> list[str]:
    parts = []
    for first, last in _runs([judgement.inside for judgement in row]):
        # A window that goes on beyond what is shown runs up to the edge of the column.
        left = _center(first) - (_COLUMN / 2 if first == 0 else _COLUMN / 2 - 8)
        right = _center(last) + (_COLUMN / 2 if last == len(row) - 1 else _COLUMN / 2 - 8)
        parts.append(
            f'<rect class="bar" x="{left:g}" y="{top + 10}" width="{right - left:g}" height="{_ROW - 20}" rx="6"/>'
        )
    for number, judgement in enumerate(row):
        parts += _mark(judgement, _center(number), top)
    return parts


def _runs(flags: list[bool]) -> list[tuple[int, int]]:
    runs: list[tuple[int, int]] = []
    for number, flag in enumerate(flags):
        if flag and runs and runs[-1][1] == number - 1:
            runs[-1] = runs[-1][0], number
        elif flag:
            runs.append((number, number))
    return runs


def _mark(judgement: Judgement, x: float, top: int) -> list[str]:
    y = top + _ROW / 2
    title = f"torch {judgement.release.version}: {judgement.verdict}: {judgement.reason}"
    parts = [f"<g><title>{escape(title)}</title>"]
    if judgement.is_mismatch:
        half = _COLUMN / 2 - 6
        parts.append(
            f'<rect class="flag" x="{x - half:g}" y="{top + 4}" width="{2 * half:g}" height="{_ROW - 8}" rx="6"/>'
        )
        word = LOOKS[judgement.verdict].word
        parts.append(f'<text class="wrong" x="{x:g}" y="{top + _ROW - 9}" text-anchor="middle">{escape(word)}</text>')
        y = top + 16
    if judgement.verdict in (judging.TARGET_MISSING, judging.DRIFTED):
        parts += [
            f'<line class="cross" x1="{x - 6:g}" y1="{y - 6:g}" x2="{x + 6:g}" y2="{y + 6:g}"/>',
            f'<line class="cross" x1="{x - 6:g}" y1="{y + 6:g}" x2="{x + 6:g}" y2="{y - 6:g}"/>',
        ]
    elif judgement.verdict == judging.UNKNOWN:
        parts.append(f'<text class="query" x="{x:g}" y="{y + 5:g}" text-anchor="middle">?</text>')
    elif judgement.evidence:
        covered = judgement.verdict == judging.NOT_NEEDED
        parts.append(f'<circle class="{"absent" if covered else "defect"}" cx="{x:g}" cy="{y:g}" r="{_RADIUS}"/>')
        if covered:
            parts.append(f'<circle class="defect" cx="{x:g}" cy="{y:g}" r="3"/>')
    else:
        parts.append(f'<circle class="absent" cx="{x:g}" cy="{y:g}" r="4"/>')
    return [*parts, "</g>"]


# Drawing, room for it, text. Drawings stand on the line of the text.
_LEGEND = (
    ('<rect class="bar" y="-11" width="26" height="14" rx="4"/>', 34, "declared window"),
    (f'<circle class="defect" cx="8" cy="-5" r="{_RADIUS}"/>', 22, "the defect is there"),
    ('<circle class="absent" cx="8" cy="-5" r="4"/>', 22, "no defect"),
    (
        f'<circle class="absent" cx="8" cy="-5" r="{_RADIUS}"/><circle class="defect" cx="8" cy="-5" r="3"/>',
        22,
        "another patch's",
    ),
    ('<rect class="flag" y="-11" width="26" height="14" rx="4"/>', 34, "mismatch"),
    ('<text class="query" x="4">?</text>', 22, "cannot be told"),
)


def _legend(top: int, width: int, outcome: Outcome) -> tuple[list[str], int]:
    """Returns the legend, and the height at which the picture ends."""
    parts = [f'<line class="grid" x1="{_MARGIN}" x2="{width - _MARGIN}" y1="{top}" y2="{top}"/>']
    x, y = _MARGIN, top + 26
    for drawing, indent, text in _LEGEND:
        needed = indent + 7 * len(text) + 16
        if x > _MARGIN and x + needed > width:
            x, y = _MARGIN, y + 24
        parts.append(f'<g transform="translate({x} {y})">{drawing}<text x="{indent}">{text}</text></g>')
        x += needed
    number = len(outcome.mismatches)
    said = f"{number} mismatch{'' if number == 1 else 'es'}" if number else "no mismatch"
    parts.append(f'<text class="{"wrong" if number else "small"}" x="{_MARGIN}" y="{y + 26}">{said}</text>')
    return parts, y + 44


def _described(outcome: Outcome) -> str:
    number = len(outcome.mismatches)
    return (
        f"{len(outcome.patches)} patches over torch {', '.join(release.label for release in outcome.read)}: "
        f"{number or 'no'} mismatch{'' if number in (0, 1) else 'es'}"
    )


# --- the page ------------------------------------------------------------------------------------------------------

_PAGE_STYLE = """
  :root { color-scheme: light dark; }
  body { font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; margin: 2rem auto;
         max-width: 76rem; padding: 0 1rem; }
  figure { margin: 0; overflow-x: auto; }
  table { border-collapse: collapse; width: 100%; font-size: 14px; }
  th, td { text-align: left; vertical-align: top; padding: .35rem .6rem; border-top: 1px solid #8884; }
  td:nth-child(-n+3) { white-space: nowrap; }
  td:last-child { overflow-wrap: anywhere; }
  tr.mismatch td { color: #cf222e; font-weight: 600; }
  @media (prefers-color-scheme: dark) { tr.mismatch td { color: #ff7b72; } }
"""


def as_html(outcome: Outcome) -> str:
    """The picture and the reasons on a page that needs nothing else.

    Returns:
        A whole HTML document.
    """
    rows = []
    for judgement in sorted(outcome.judgements, key=lambda judgement: not judgement.is_mismatch):
        mark = ' class="mismatch"' if judgement.is_mismatch else ""
        rows.append(
            f"<tr{mark}><td><code>{escape(outcome.name_of(judgement.patch))}</code></td>"
            f"<td>{escape(judgement.release.label)}</td>"
            f"<td>{escape(cell(judgement.verdict).split()[0])} {escape(judgement.verdict)}</td>"
            f"<td>{escape(judgement.reason)}</td></tr>"
        )
    unread = "".join(
        f'<tr class="mismatch"><td></td><td>{escape(place.where)}</td><td>not read</td>'
        f"<td>{escape(place.why)}</td></tr>"
        for place in outcome.unread
    )
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>compat-patches audit</title>
<style>{_PAGE_STYLE}</style>
</head>
<body>
<h1>compat-patches audit</h1>
<p>{escape(_described(outcome))}.</p>
<figure>
{as_svg(outcome)}</figure>
<table>
<thead><tr><th>patch</th><th>torch</th><th>verdict</th><th>why</th></tr></thead>
<tbody>
{unread}{chr(10).join(rows)}
</tbody>
</table>
</body>
</html>
"""
