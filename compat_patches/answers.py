"""What predicates answered in earlier processes, so that this one need not import packaging to ask them again."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from typing import Any

from . import store
from .verdict import Verdict


class Answers:
    """The answers about this interpreter and one torch.

    An answer about a requirement follows from the version that is found. Which project's version that is, only
    packaging can tell, so that is kept too.

    Args:
        name: the name in the store.
        kept: what the store has under that name.

    Raises:
        TypeError, KeyError, ValueError: that is not what :meth:`as_document` makes.
    """

    def __init__(self, name: str, kept: Any = None) -> None:
        self.name = name
        self.grown = False
        kept = {"projects": {}, "requirements": [], "markers": []} if kept is None else kept
        self._projects: dict[str, str] = dict(kept["projects"])
        self._requirements = {(text, found): _verdict(*answer) for text, found, answer in kept["requirements"]}
        self._markers = {text: _verdict(*answer) for text, answer in kept["markers"]}

    def about_requirement(
        self,
        text: str,
        version: Callable[[str], str | None],
        project: Callable[[str], str],
        decide: Callable[[], Verdict],
    ) -> Verdict:
        """The answer about a requirement.

        Args:
            text: the requirement.
            version: tells the version that is found of a project.
            project: tells which project a requirement is about.
            decide: finds the answer.
        """
        if text not in self._projects:
            self._projects[text] = project(text)
        place = (text, version(self._projects[text]))
        if place not in self._requirements:
            self._requirements[place] = decide()
            self.grown = True
        return self._requirements[place]

    def about_marker(self, text: str, decide: Callable[[], Verdict]) -> Verdict:
        """The answer about a marker; ``decide`` finds it."""
        if text not in self._markers:
            self._markers[text] = decide()
            self.grown = True
        return self._markers[text]

    def as_document(self) -> dict[str, Any]:
        """All answers, as JSON can hold them."""
        return {
            "projects": dict(self._projects),
            "requirements": [[*place, _as_list(verdict)] for place, verdict in list(self._requirements.items())],
            "markers": [[text, _as_list(verdict)] for text, verdict in list(self._markers.items())],
        }


_known: Answers | None = None


def about(torch: str | None, markers: Mapping[str, str]) -> Answers | None:
    """What is known about this interpreter; None for a simulation of another, about which nothing is kept.

    Args:
        torch: the version of torch that most answers will be about.
        markers: values that are simulated.
    """
    global _known
    if markers:
        return None
    if _known is None:
        name = store.key("answers", torch, _interpreter())
        try:
            _known = Answers(name, store.read(name))
        except (TypeError, KeyError, ValueError):  # Not what was written.
            _known = Answers(name)
    return _known


def remember() -> None:
    """Keep the answers of this process for later ones."""
    known = _known
    if known is not None and known.grown:
        known.grown = False
        store.write(known.name, known.as_document())


def _verdict(ok: Any, reason: Any, needs_evidence: Any) -> Verdict:
    if not (isinstance(ok, bool) and isinstance(reason, str) and isinstance(needs_evidence, bool)):
        raise TypeError
    return Verdict(ok, reason, needs_evidence)


def _as_list(verdict: Verdict) -> list[Any]:
    return [verdict.ok, verdict.reason, verdict.needs_evidence]


def _interpreter() -> list[Any]:
    """What markers can ask about (the store adds Python's version), and whose answers they are: packaging's."""
    uname: Any = getattr(os, "uname", lambda: ())
    return [sys.platform, os.name, sys.implementation.name, *map(str, uname()), *_packaging()]


def _packaging() -> list[Any]:
    from importlib.machinery import PathFinder

    spec = PathFinder.find_spec("packaging")
    if spec is None or spec.origin is None:
        return []
    try:
        # The file bears the version.
        status = os.stat(spec.origin)
    except OSError:
        return [spec.origin]
    return [spec.origin, status.st_size, status.st_mtime_ns]
