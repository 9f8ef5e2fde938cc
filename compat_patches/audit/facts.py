"""Static facts: what is known of a target from source files alone.

The same questions that :class:`compat_patches.evidence.LiveFacts` answers from loaded objects, so that one definition
of evidence decides both. Names are followed through imports, re-exports, aliases and base classes. Where the files do
not say (a base class in C, a decorator that may do anything), the answer is None, and why.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from .. import predicates, source
from ..manifest import Target
from ..verdict import Verdict
from .modules import Modules
from .objects import Code, Looker, ModuleObject, Other, Result
from .signatures import parameters_of, what_hides
from .trees import Tree, UnreadableSource, digest_of

_VERSION_FILE = "torch/version.py"


@dataclass(frozen=True, slots=True)
class Look:
    """What the files say about one target.

    Attributes:
        there: whether it is there; None where that cannot be told.
        missing: the first part of the name that is not there (or may not be), empty where all is.
        parameters: as in :class:`compat_patches.evidence.Facts`.
        text: the source of its definition, as it stands in the file.
        path: the file of the definition.
        line: the definition's first line, from 1.
        name: ``module:Qualified.name`` of the definition; another one than the target's where that is re-exported.
        why: the reason for what is None.
    """

    there: bool | None
    missing: str = ""
    parameters: tuple[str, ...] | None = None
    text: str | None = None
    path: str | None = None
    line: int | None = None
    name: str | None = None
    why: str = ""

    def as_record(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Look:
        found = record["parameters"]
        return cls(**{**record, "parameters": None if found is None else tuple(found)})


class StaticFacts:
    """Facts (:class:`compat_patches.evidence.Facts`) about the targets in one tree.

    Args:
        tree: the files.
        known: answers from before, and what files they rest on; new ones are added.
    """

    def __init__(self, tree: Tree, known: dict[str, Any] | None = None) -> None:
        self.tree = tree
        self.known = {} if known is None else known
        self.changed = False
        self._modules = Modules(tree)
        self._looks: dict[str, Look] = {}

    def look(self, target: Target) -> Look:
        """All that is known of a target.

        Raises:
            UnreadableSource: a file that had to be read is damaged, or this Python cannot parse it.
        """
        key = str(target)
        if key not in self._looks:
            self._looks[key] = self._remembered(key) or self._fresh(key, target)
        return self._looks[key]

    def _remembered(self, key: str) -> Look | None:
        record = self.known.get(key)
        if record is None or not self.tree.still_has(record["rests_on"]):
            return None
        try:
            return Look.from_record(record["look"])
        except (KeyError, TypeError):  # Somebody has been at the file.
            return None

    def _fresh(self, key: str, target: Target) -> Look:
        self._modules.visited.clear()
        look = look_at(target, self._modules)
        rests_on = dict(sorted(self._modules.visited.items()))
        self.known[key] = {"look": look.as_record(), "rests_on": rests_on}
        self.changed = True
        return look

    def version_file(self) -> dict[str, Any] | None:
        """What ``torch/version.py`` says, None where there is none.

        Raises:
            UnreadableSource: it is damaged.
        """
        record = self.known.get(_VERSION_FILE)
        if record is None or not self.tree.still_has(record["rests_on"]):
            content = self.tree.read(_VERSION_FILE)
            if content is None:
                return None
            try:
                says = predicates.read_version_file(content)
            except (SyntaxError, ValueError, RecursionError) as error:
                raise UnreadableSource(f"{_VERSION_FILE} in {self.tree.place} cannot be parsed: {error}") from None
            # Only what JSON can keep; the rest of that file says nothing about the release.
            says = {name: value for name, value in says.items() if value is None or isinstance(value, str | bool)}
            record = {"says": says, "rests_on": {_VERSION_FILE: digest_of(content)}}
            self.known[_VERSION_FILE] = record
            self.changed = True
        found: dict[str, Any] = record["says"]
        return found

    def close(self) -> None:
        """Let go of the files; answers that are known stay, and other questions open them again."""
        self._modules = Modules(self.tree)
        self.tree.close()

    # --- the protocol ---

    def parameters(self, target: Target) -> tuple[str, ...] | None:
        return self.look(target).parameters

    def exists(self, target: Target) -> bool | None:
        return self.look(target).there

    def definition(self, target: Target) -> ast.AST | None:
        text = self.look(target).text
        return None if text is None else source.parse_definition(text)

    def probe(self, reference: Target) -> Verdict | None:
        return Verdict(None, f"only running code can answer the probe {reference}")


def look_at(target: Target, modules: Modules) -> Look:
    """Find a target in the modules of a tree.

    Raises:
        UnreadableSource: a file that had to be read is damaged, or this Python cannot parse it.
    """
    if not modules.has(target.module):
        root_is_there = modules.has(target.root)
        return Look(False if root_is_there else None, target.module, why=modules.why_not_read(target.module))
    looker = Looker(modules)
    found = Result(True, (ModuleObject(target.module),))
    for part in target.qualname.split("."):
        found = looker.attribute(found, part)
        if not found.objects:
            return Look(found.there, part, why=found.why)
    look = Look(found.there, "" if found.there else target.name, why=found.why)
    return replace(look, **_described(found, looker))


def _described(found: Result, looker: Looker) -> dict[str, Any]:
    """What is known of the object itself, where all that it may be agrees."""
    codes = [each for each in found.objects if isinstance(each, Code)]
    others = [each.why for each in found.objects if isinstance(each, Other)]
    if not codes or len(codes) < len(found.objects):
        return {"why": found.why or next(iter(others), "it is a module")}
    answers = [parameters_of(code, looker) for code in codes]
    agreed = {parameters for parameters, _ in answers}
    hidden = next(filter(None, (what_hides(code, looker) for code in codes)), "")
    described: dict[str, Any] = {
        "parameters": agreed.pop() if len(agreed) == 1 else None,
        "why": found.why or hidden or next((why for _, why in answers if why), ""),
    }
    code = codes[-1]
    first = min([code.node.lineno, *(decorator.lineno for decorator in code.node.decorator_list)])
    module = looker.modules.load(code.module)
    assert module is not None
    described.update(path=module.path, line=first, name=f"{code.module}:{code.qualname}")
    if len({source.tree_hash(each.node) for each in codes}) > 1:
        described["why"] = f"a condition decides which of {len(codes)} definitions it is"
    elif not hidden:
        described["text"] = module.lines(first, int(code.node.end_lineno or first))
    return described
