"""Expiry: which patches are dead once old releases are given up, and which lines go with them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.version import InvalidVersion, Version

from .. import source
from ..manifest import Patch, Target
from . import judging
from .judging import Judgement, torch_requirements


@dataclass(frozen=True, slots=True)
class Lines:
    """Lines that can be deleted: a file, the first and the last line, and what they are."""

    path: str
    first: int
    last: int
    what: str

    @property
    def number(self) -> int:
        return self.last - self.first + 1

    def __str__(self) -> str:
        return f"{self.path}:{self.first}-{self.last}  {self.what}"


@dataclass(frozen=True, slots=True)
class Expired:
    """A patch, or steps of it, that no release from the floor on needs."""

    patch: Patch
    why: str
    steps: tuple[int, ...] = ()


def is_dead(requirements: Iterable[str], floor: Version) -> bool:
    """Whether no version of torch from ``floor`` on satisfies all of these requirements."""
    specifiers = SpecifierSet()
    for text in torch_requirements(requirements):
        specifiers &= Requirement(text).specifier
    # What a specifier contains changes only at the versions that it names, so these and their neighbours tell all.
    candidates = {floor, Version("99999")}
    for specifier in specifiers:
        named = Version(specifier.version.removesuffix(".*"))
        release = named.release
        candidates |= {named, Version(f"{named.base_version}.post1")}
        candidates.add(Version(".".join(map(str, (*release[:-1], release[-1] + 1)))))
        candidates.add(Version(".".join(map(str, (*release, 1)))))
    return not any(specifiers.contains(v, prereleases=True) for v in candidates if v >= floor)


def expired(patches: Sequence[Patch], floor: Version, judgements: Sequence[Judgement] = ()) -> list[Expired]:
    """The patches, and the steps of patches, that can go.

    Args:
        patches: the declared patches.
        floor: the oldest torch that is still supported.
        judgements: what the sources of releases from the floor on say, if anybody has asked them.
    """
    found = []
    for patch in patches:
        if is_dead(patch.requires, floor):
            found.append(Expired(patch, f"its window ({judging.window_text(patch)}) ends before torch {floor}"))
            continue
        said = [j for j in judgements if j.patch is patch and _is_from(j, floor)]
        if said and all(judgement.evidence is False for judgement in said):
            releases = ", ".join(judgement.release.label for judgement in said)
            found.append(Expired(patch, f"the defect is not there in {releases}: {said[0].reason}"))
            continue
        dead = tuple(
            number
            for number, step in enumerate(patch.steps)
            if step.requires and is_dead([*patch.requires, *step.requires], floor)
        )
        if dead:
            found.append(Expired(patch, f"some of its steps are for torch before {floor} alone", dead))
    return found


def _is_from(judgement: Judgement, version: Version) -> bool:
    """Whether a release is this version or a later one; one whose version nobody can read is neither."""
    try:
        return Version(judgement.release.version) >= version
    except InvalidVersion:
        return False


# --- remove_when ---------------------------------------------------------------------------------------------------

_STATED = re.compile(r"\btorch\s+(?:>=\s*)?(\d+(?:\.\d+)+)\s+is\s+the\s+oldest\b", re.IGNORECASE)


def stated_version(patch: Patch) -> Version | None:
    """The version in "torch 2.11 is the oldest supported release", None where ``remove_when`` says something else."""
    match = _STATED.search(patch.remove_when)
    return Version(match.group(1)) if match else None


def contradictions(patch: Patch, judgements: Sequence[Judgement] = ()) -> list[str]:
    """Where ``remove_when`` does not agree with the window, or with what the sources say."""
    stated = stated_version(patch)
    if stated is None:
        return []
    found = []
    if not is_dead(patch.requires, stated):
        found.append(f"remove_when says torch {stated}, but the window ({judging.window_text(patch)}) goes on after it")
    for judgement in judgements:
        if judgement.patch is not patch:
            continue
        if _is_from(judgement, stated) and judgement.verdict in (judging.NEEDED, judging.TOO_NARROW):
            found.append(f"remove_when says torch {stated}, but {judgement.release.label} needs it: {judgement.reason}")
    before = [j for j in judgements if j.patch is patch and j.inside and not _is_from(j, stated)]
    if before and before[-1].evidence is False:
        label = before[-1].release.label
        found.append(f"remove_when says torch {stated}, but {label} already does without: {before[-1].reason}")
    return found


# --- the lines -----------------------------------------------------------------------------------------------------


def manifest_lines(path: Path, patches: Sequence[Patch], gone: Expired) -> list[Lines]:
    """The lines of a manifest that declare a patch, or those of its steps that are dead.

    Returns:
        Empty where the tables are not written as ``[[patch]]``.
    """
    spans = _table_spans(path.read_text(encoding="utf-8"))
    heads = [span for span in spans if span[0] == "patch"]
    names = [patch.qualified_id for patch in patches]
    if len(heads) != len(patches):
        return []
    _, first, last = heads[names.index(gone.patch.qualified_id)]
    if not gone.steps:
        return [Lines(str(path), first, last, f"the declaration of {gone.patch.id}")]
    steps = [span for span in spans if span[0] == "patch.step" and first <= span[1] <= last]
    if len(steps) != len(gone.patch.steps):
        return []
    return [
        Lines(str(path), steps[number][1], steps[number][2], f"step {number + 1} of {gone.patch.id}")
        for number in gone.steps
    ]


def _table_spans(text: str) -> list[tuple[str, int, int]]:
    """Name, first and last line of each array table; the comment above it is its own, blank lines after it are not."""
    lines = text.split("\n")
    heads = []
    quote = ""
    for number, line in enumerate(lines, 1):
        match = re.match(r"\s*\[\[\s*([\w.]+)\s*\]\]", line) if not quote else None
        if match:
            heads.append((match.group(1), number))
        for found in re.findall(r'"""|\'\'\'', line):
            quote = "" if quote == found else quote or found
    spans = []
    for index, (name, at) in enumerate(heads):
        end = len(lines)
        for other, start in heads[index + 1 :]:
            if other.count(".") <= name.count("."):
                end = _with_comment(lines, start) - 1
                break
        while end > at and not lines[end - 1].strip():
            end -= 1
        spans.append((name, _with_comment(lines, at), end))
    return spans


def _with_comment(lines: Sequence[str], at: int) -> int:
    while at > 1 and lines[at - 2].lstrip().startswith("#"):
        at -= 1
    return at


def implementation_lines(gone: Sequence[Expired], patches: Sequence[Patch], roots: Sequence[Path]) -> list[Lines]:
    """The functions that nothing but dead patches uses.

    Args:
        gone: what can go.
        patches: all patches.
        roots: folders in which the packages of implementations lie.
    """
    dead = {(e.patch.qualified_id, n) for e in gone for n in (e.steps or range(len(e.patch.steps)))}
    used: dict[str, bool] = {}
    for patch in patches:
        for number, step in enumerate(patch.steps):
            if step.using is not None and step.action != "alias":
                alive = (patch.qualified_id, number) not in dead
                used[step.using] = used.get(step.using, False) or alive
    living = {Target.parse(reference).module for reference, alive in used.items() if alive}
    found: dict[Lines, None] = {}
    for reference in (reference for reference, alive in used.items() if not alive):
        target = Target.parse(reference)
        path = next(filter(None, (_file_of(target.module, root) for root in roots)), None)
        if path is None:
            continue
        if target.module not in living and not _is_imported_beside(path):
            lines: Lines | None = Lines(str(path), 1, len(path.read_bytes().splitlines()), "the whole file")
        else:
            lines = _definition_lines(target, path)
        if lines is not None:
            found[lines] = None
    return list(found)


def _file_of(module: str, root: Path) -> Path | None:
    base = root.joinpath(*module.split("."))
    return next((path for path in (base.with_suffix(".py"), base / "__init__.py") if path.is_file()), None)


def _is_imported_beside(path: Path) -> bool:
    """Whether another file of the folder mentions this one; then it may be in use for something else."""
    word = re.compile(rf"\b{re.escape(path.stem)}\b")
    return any(
        word.search(other.read_text(encoding="utf-8", errors="replace"))
        for other in path.parent.glob("*.py")
        if other != path
    )


def _definition_lines(reference: Target, path: Path) -> Lines | None:
    try:
        node = source.find_definition(ast.parse(path.read_bytes()), reference.qualname)
    except (SyntaxError, ValueError):
        return None
    if node is None:
        return None
    first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
    return Lines(str(path), first, node.end_lineno or first, f"{reference.qualname}, which nothing else uses")
