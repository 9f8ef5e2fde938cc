"""What was found out about a tree before, so that a second audit need not parse anything.

One JSON file for each tree, named by its content (a wheel) or its path (a folder; there the digests of the files
that an answer rests on are compared). It is only ever a shortcut: a file that is damaged or cannot be written is
passed over.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import sys
import tempfile
from typing import Any

from .trees import Tree

_DECIDED_BY = ("scopes.py", "modules.py", "objects.py", "signatures.py", "facts.py", "../source.py")
"""The code that answers. Another version of it may answer differently about the same files."""


def folder() -> str:
    """The folder of all that the audit keeps: ``$XDG_CACHE_HOME/compat-patches``, else in the user's ``.cache``."""
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(base, "compat-patches", "audit")


class Store:
    """The answers that are kept on disk."""

    def __init__(self) -> None:
        digest = hashlib.sha256()
        for name in _DECIDED_BY:
            with open(os.path.join(os.path.dirname(__file__), name), "rb") as file:
                digest.update(file.read())
        # What one Python cannot parse, another can.
        self._head = [digest.hexdigest(), list(sys.version_info[:2])]

    def load(self, tree: Tree) -> dict[str, Any]:
        """The answers about a tree; empty where there are none that can be used."""
        try:
            with open(self._path(tree), encoding="utf-8") as file:
                document = json.load(file)
            if document["head"] == self._head:
                answers: dict[str, Any] = document["answers"]
                return answers
        except (OSError, ValueError, KeyError, TypeError):
            pass
        return {}

    def save(self, tree: Tree, answers: dict[str, Any]) -> None:
        """Keep answers, those that another process has kept meanwhile included."""
        document = {"head": self._head, "answers": {**self.load(tree), **answers}}
        path = self._path(tree)
        with contextlib.suppress(OSError):
            os.makedirs(os.path.dirname(path), exist_ok=True)
            # Written aside and moved, so that nobody ever reads a half.
            with tempfile.NamedTemporaryFile(
                "w", encoding="utf-8", dir=os.path.dirname(path), prefix="writing-", delete=False
            ) as file:
                json.dump(document, file)
            os.replace(file.name, path)

    @staticmethod
    def _path(tree: Tree) -> str:
        return os.path.join(folder(), "answers", f"{tree.identity}.json")
