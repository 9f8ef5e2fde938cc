"""Pinning: writing into a manifest the hashes of the upstream sources that its patches are written against."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .. import manifest, source
from ..errors import CompatPatchesError
from ..manifest import Patch, Target
from .judging import window_of
from .places import Release
from .trees import UnreadableSource


@dataclass(frozen=True, slots=True)
class Pin:
    """The hash of one step's target on one release; ``hash`` is None, with the reason, where there is none."""

    patch: Patch
    step: int
    target: Target
    release: str
    hash: str | None
    why: str


def pins_of(patch: Patch, releases: Sequence[Release]) -> list[Pin]:
    """The pins of a patch on these releases; a step gets none on a release that it is not for."""
    pins = []
    for release in releases:
        window = window_of(patch, release.version)
        key = release.version.partition("+")[0]
        for number, step in enumerate(patch.steps):
            if step not in window.steps:
                pins.append(Pin(patch, number, step.target, key, None, f"outside of the window: {window.reason}"))
                continue
            try:
                node = release.facts.definition(step.target)
            except UnreadableSource as error:
                pins.append(Pin(patch, number, step.target, key, None, str(error)))
                continue
            if node is None:
                look = release.facts.look(step.target)
                why = look.why or (f"there is no {look.missing!r}" if look.there is False else "it has no source")
                pins.append(Pin(patch, number, step.target, key, None, f"{step.target} has no hash: {why}"))
            else:
                pins.append(Pin(patch, number, step.target, key, source.tree_hash(node), ""))
    return pins


def write(path: Path, pins: Sequence[Pin]) -> bool:
    """Write pins into a manifest file. Everything else in it stays as it is, comments included.

    Returns:
        Whether the file was changed.

    Raises:
        CompatPatchesError: tomlkit, which keeps the layout, is not installed; or the file is not that of the pins.
        OSError: the file cannot be written.
    """
    try:
        import tomlkit
    except ModuleNotFoundError:
        raise CompatPatchesError(
            "writing pins into a manifest needs tomlkit; run `pip install 'compat-patches[audit]'`, or copy the lines "
            "that --dry-run prints"
        ) from None
    before = path.read_text(encoding="utf-8")
    document = tomlkit.parse(before)
    tables = {str(table["id"]): table for table in document.get("patch", [])}
    for pin in pins:
        if pin.hash is None:
            continue
        table: Any = tables[pin.patch.id]
        if "step" in table:
            table = table["step"][pin.step]
        if "pins" not in table:
            table["pins"] = tomlkit.inline_table()
        table["pins"][pin.release] = pin.hash
    after = tomlkit.dumps(document)
    manifest.parse(after.encode(), str(path))
    if after != before:
        path.write_text(after, encoding="utf-8")
    return after != before
