"""Comparing upstream's source of a target in two releases, also where it has moved or has got another name."""

from __future__ import annotations

import ast
import difflib
import re
from collections.abc import Iterator
from dataclasses import dataclass

from .. import source
from ..manifest import Target
from .facts import Look
from .places import Release
from .trees import UnreadableSource

_ALIKE = 0.6
"""The least likeness (of :class:`difflib.SequenceMatcher`, by lines) of what is taken for the same code elsewhere."""


@dataclass(frozen=True, slots=True)
class Found:
    """A target's definition in one release.

    Attributes:
        release: the release.
        look: what is known of the target there, or of the definition that it was found as.
        note: where it is, where that is not where the target says; or why there is none.
        text: its source, "" where there is none.
        is_in_place: whether the target leads to it; a re-export does, too.
    """

    release: Release
    look: Look
    note: str
    text: str
    is_in_place: bool

    @property
    def place(self) -> str:
        """File and line, for the head of a diff."""
        if self.look.path is None:
            return f"torch {self.release.version} (not there)"
        return f"torch {self.release.version} {self.look.path}:{self.look.line}"


def find(target: Target, release: Release) -> Found:
    """Find the definition of a target where the target says."""
    look = release.facts.look(target)
    note = ""
    if look.there is False:
        note = f"{target} is not there: no {look.missing!r}"
    elif look.text is None:
        note = f"the source of {target} cannot be told: {look.why}"
    elif look.name != str(target):
        note = f"{target} is defined as {look.name}"
    return Found(release, look, note, look.text or "", look.there is not False)


def find_moved(target: Target, known: Found, release: Release) -> Found | None:
    """Look all files of a release through for the definition that another release has.

    A definition of the same name counts where it is like the known one, one of another name where it is its body.
    """
    node = source.parse_definition(known.text)
    if node is None:
        return None
    body = _body(node)
    best: tuple[float, Look] | None = None
    for path in release.tree.sources(target.root):
        for candidate, look in _candidates(path, node, release, path == known.look.path):
            likeness = difflib.SequenceMatcher(None, body, _body(candidate), autojunk=False).ratio()
            likeness += 0.1 if candidate.name == node.name else 0.0
            if likeness >= _ALIKE + 0.1 and (best is None or likeness > best[0]):
                best = likeness, look
    if best is None:
        return None
    look = best[1]
    return Found(release, look, f"{target} is not there; what is most like it is {look.name}", look.text or "", False)


def _candidates(
    path: str, node: source.Definition, release: Release, certainly: bool
) -> Iterator[tuple[source.Definition, Look]]:
    """The definitions in a file that may be the sought one."""
    try:
        content = release.tree.read(path)
    except UnreadableSource:
        return
    if content is None:
        return
    # Most files are passed over without parsing: they have neither the name nor one of the longest lines.
    marks = sorted((line.strip() for line in _body(node)), key=len)[-5:]
    text = content.decode("utf-8", "replace")
    named = re.search(rf"\b(?:def|class)\s+{re.escape(node.name)}\b", text)
    if not certainly and not named and not any(len(mark) > 15 and mark in text for mark in marks):
        return
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    module = re.sub(r"(/__init__)?\.py$", "", path).replace("/", ".")
    lines = text.split("\n")
    for qualname, found in _definitions(tree, ""):
        if isinstance(found, ast.ClassDef) == isinstance(node, ast.ClassDef):
            first = min([found.lineno, *(decorator.lineno for decorator in found.decorator_list)])
            cut = "\n".join(lines[first - 1 : found.end_lineno]) + "\n"
            yield found, Look(True, text=cut, path=path, line=first, name=f"{module}:{qualname}")


def _definitions(scope: ast.AST, prefix: str) -> Iterator[tuple[str, source.Definition]]:
    for child in ast.iter_child_nodes(scope):
        if isinstance(child, source.Definition):
            yield f"{prefix}{child.name}", child
            if isinstance(child, ast.ClassDef):
                yield from _definitions(child, f"{prefix}{child.name}.")
        elif isinstance(child, ast.stmt | ast.excepthandler):
            yield from _definitions(child, prefix)


def _body(node: source.Definition) -> list[str]:
    """The lines of a definition without its name, its documentation and its formatting."""
    lines = [line for statement in node.body for line in ast.unparse(statement).splitlines()]
    documented = ast.get_docstring(node, clean=False) is not None
    if documented:
        lines = [line for statement in node.body[1:] for line in ast.unparse(statement).splitlines()]
    if not isinstance(node, ast.ClassDef):
        lines.insert(0, ast.unparse(node.args))
    return lines


def difference(old: Found, new: Found) -> list[str]:
    """A unified diff of the two sources; empty where they are equal to the letter."""
    return list(
        difflib.unified_diff(
            old.text.splitlines(), new.text.splitlines(), fromfile=old.place, tofile=new.place, lineterm=""
        )
    )


def means_the_same(old: Found, new: Found) -> bool:
    """Whether two sources differ in comments and formatting alone."""
    nodes = source.parse_definition(old.text), source.parse_definition(new.text)
    return None not in nodes and source.tree_hash(nodes[0]) == source.tree_hash(nodes[1])  # type: ignore[arg-type]
