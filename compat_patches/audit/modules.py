"""Modules of a tree: from a dotted name to a parsed file. Few parsed files are kept, so that memory stays bounded."""

from __future__ import annotations

import ast
import importlib.util
import platform
import sys
import warnings
from collections import OrderedDict
from dataclasses import dataclass

from .scopes import Scope, scope_of_module
from .trees import Tree, UnreadableSource, digest_of

_KEPT = 512 * 1024
"""Bytes of source whose syntax trees are kept; as much as the largest file of torch has."""

_NATIVE = (".so", ".pyd", ".dylib")


@dataclass(frozen=True, slots=True)
class Module:
    """A parsed source file."""

    name: str
    path: str
    is_package: bool
    text: str
    scope: Scope

    def lines(self, first: int, last: int) -> str:
        """The text of these lines, counted from 1, both included."""
        return "\n".join(self.text.split("\n")[first - 1 : last]) + "\n"


class Modules:
    """The modules of a tree.

    Attributes:
        visited: the digest of each file that was looked for since the last ``clear()``, None where there is none.
    """

    def __init__(self, tree: Tree) -> None:
        self.tree = tree
        self.visited: dict[str, str | None] = {}
        self._kept: OrderedDict[str, Module] = OrderedDict()
        self._sought: dict[str, dict[str, str | None]] = {}

    def has(self, name: str) -> bool:
        """Whether there is such a module, whatever it is made of."""
        return self._source_path(name) is not None or self.is_native(name) or self.tree.has_folder(_folder(name))

    def is_native(self, name: str) -> bool:
        """Whether a module is a compiled extension."""
        parent, _, last = name.rpartition(".")
        return any(
            file.startswith(last + ".") and file.endswith(_NATIVE) for file in self.tree.names_in(_folder(parent))
        )

    def why_not_read(self, name: str) -> str:
        """Why a module has no source to look into."""
        root = name.partition(".")[0]
        if self.has(root):
            return f"{name} is compiled" if self.is_native(name) else f"there is no module {name}"
        return f"{root} is of the standard library" if root in sys.stdlib_module_names else f"{root} is not in it"

    def load(self, name: str) -> Module | None:
        """Read and parse a module; None where it has no source file.

        Raises:
            UnreadableSource: the file is damaged, or this Python cannot parse it.
        """
        path = self._source_path(name)
        if name in self._kept:
            self._kept.move_to_end(name)
            return self._kept[name]
        content = None if path is None else self.tree.read(path)
        if path is None or content is None:
            return None
        module = _parse(name, path, content, self.tree.place)
        self._kept[name] = module
        while len(self._kept) > 1 and sum(len(kept.text) for kept in self._kept.values()) > _KEPT:
            self._kept.popitem(last=False)
        return module

    def _source_path(self, name: str) -> str | None:
        if name not in self._sought:
            folder = _folder(name)
            digests: dict[str, str | None] = {}
            for path in (f"{folder}/__init__.py", f"{folder}.py"):
                digests[path] = digest_of(self.tree.read(path))
                if digests[path] is not None:
                    break
            self._sought[name] = digests
        digests = self._sought[name]
        self.visited.update(digests)
        return next((path for path, digest in digests.items() if digest is not None), None)


def _folder(name: str) -> str:
    return name.replace(".", "/")


def _parse(name: str, path: str, content: bytes, place: str) -> Module:
    try:
        text = importlib.util.decode_source(content)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # What upstream's strings look like is not our user's business.
            tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        line = f" line {error.lineno}" if isinstance(error, SyntaxError) and error.lineno else ""
        reason = error.msg if isinstance(error, SyntaxError) else str(error)
        raise UnreadableSource(
            f"{path}{line} in {place} cannot be parsed by Python {platform.python_version()}: {reason}. Run the audit "
            f"with the Python that this release is for"
        ) from None
    is_package = path.endswith("/__init__.py")
    return Module(name, path, is_package, text, scope_of_module(tree, text, name, is_package))
