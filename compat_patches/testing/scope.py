"""A stretch of a test run within which patches are applied and reverted, and after which all is as before.

Scopes may overlap and end in any order, as fixtures of a module and of a function do: each keeps its own wishes, of
those that are open the latest decides, and a scope that ends takes back its own alone.
"""

from __future__ import annotations

import contextlib
import importlib
import os
from collections.abc import Iterator, Sequence
from typing import Any

from .. import env_override
from .. import manifest as manifests
from ..errors import CompatPatchesError, PatchError
from ..manifest import Patch
from ..planning import Skip, admit
from ..report import PatchStatus

_open: list[PatchScope] = []


class DoesNotApply(Exception):
    """A patch that a test asks for is not for this torch, build, platform or Python; the text says why."""


class PatchScope:
    """Applies and reverts patches until it is closed. Also a context manager.

    What a test does through ``compat_patches.apply``, ``revert`` and ``load_manifest`` while the scope is open is taken
    back with it.
    """

    def __init__(self) -> None:
        self._engine = env_override.engine()
        self._wishes = self._engine.wishes()
        self._manifests = {known.name for known in self._engine.manifests}
        self._loaded: set[str] = set()
        self._held: dict[str, contextlib.AbstractContextManager[Any]] = {}
        self._closed = False
        _open.append(self)

    @property
    def held(self) -> set[str]:
        """The qualified ids of the patches that this scope wants applied or undone."""
        return set(self._held)

    def apply(self, *ids: str, force: bool = False) -> list[PatchStatus]:
        """Apply patches until the scope ends; see :func:`compat_patches.apply`."""
        return self._hold(ids, wants=True, force=force)

    def revert(self, *ids: str) -> list[PatchStatus]:
        """Undo patches until the scope ends; see :func:`compat_patches.revert`."""
        return self._hold(ids, wants=False, force=False)

    def status(self, *ids: str) -> list[PatchStatus]:
        """How patches stand; see :func:`compat_patches.status`."""
        return self._engine.status(*ids)

    def load(self, path_or_text: str | os.PathLike[str]) -> list[PatchStatus]:
        """Load a manifest until the scope ends, and apply what it declares for every process.

        Args:
            path_or_text: a TOML file, or the text of one (what has more than one line is text).

        Returns:
            How its patches stand now.

        Raises:
            ManifestError: the manifest has faults; nothing of it is loaded.
        """
        self._check_open()
        if isinstance(path_or_text, str) and "\n" in path_or_text:
            declared = manifests.parse(path_or_text.encode("utf-8"), "the text of a test's manifest")
        else:
            declared = manifests.load(path_or_text)
        new = self._engine.add(declared)
        if new:
            self._loaded.add(declared.name)
            self._engine.start(*(patch.qualified_id for patch in new))
        return self._engine.status(*(patch.qualified_id for patch in declared.patches))

    def close(self) -> None:
        """Take back all that was done in this scope. Closing it again does nothing."""
        if self._closed:
            return
        self._closed = True
        _open.remove(self)
        with contextlib.ExitStack() as stack:
            stack.callback(self._engine.restore, self._wishes)
            stack.callback(self._forget_manifests)
            for context in self._held.values():
                stack.push(context)
            self._held = {}

    def __enter__(self) -> PatchScope:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _hold(self, ids: Sequence[str], *, wants: bool, force: bool) -> list[PatchStatus]:
        self._check_open()
        if not ids:
            return []
        selected = self._engine.patches(*ids)
        for patch in selected if wants else selected[::-1]:
            context = self._engine.holding(patch.qualified_id, wants=wants, force=force)
            context.__enter__()
            earlier = self._held.pop(patch.qualified_id, None)
            self._held[patch.qualified_id] = context
            if earlier is not None:
                # Only now, so that the patch does not flicker.
                earlier.__exit__(None, None, None)
        return self._engine.status(*(patch.qualified_id for patch in selected))

    def _check_open(self) -> None:
        if self._closed:
            raise CompatPatchesError("this fixture's test is over; expected a call before its teardown")

    def _forget_manifests(self) -> None:
        others = {name for scope in _open for name in scope._loaded}
        for known in self._engine.manifests:
            if known.name not in self._manifests and known.name not in others:
                self._engine.remove(known.name)


def held_by_scopes() -> set[str]:
    """The qualified ids of the patches that open scopes want applied or undone."""
    return {qualified_id for scope in _open for qualified_id in scope.held}


@contextlib.contextmanager
def patches(
    *,
    apply: Sequence[str] = (),
    revert: Sequence[str] = (),
    only: Sequence[str] | None = None,
) -> Iterator[PatchScope]:
    """Open a scope in which a test finds just the patches that it asks for.

    The modules of the targets of ``apply`` and ``only`` are imported, as it can only be told then whether the patches
    are for the code that is installed.

    Args:
        apply: ids or groups to be applied.
        revert: ids or groups to be undone.
        only: ids or groups to be applied, while all others are undone.

    Returns:
        A context manager that gives the scope.

    Raises:
        DoesNotApply: a patch that is to be applied is not for what is installed.
        PatchError: it is, but failed.
        UnknownPatchError: nothing has that name.
    """
    with PatchScope() as scope:
        enter(scope, apply=apply, revert=revert, only=only)
        yield scope


def enter(
    scope: PatchScope, *, apply: Sequence[str] = (), revert: Sequence[str] = (), only: Sequence[str] | None = None
) -> None:
    """Apply and revert within a scope, as :func:`patches` does."""
    engine = scope._engine
    if only is not None:
        wanted = {patch.qualified_id for patch in (engine.patches(*only) if only else [])}
        others = [patch.qualified_id for patch in engine.patches() if patch.qualified_id not in wanted]
        scope.revert(*others)
        require(scope, *only)
    scope.revert(*revert)
    require(scope, *apply)


def require(scope: PatchScope, *ids: str) -> None:
    """Apply patches within a scope, or say why they cannot be.

    Raises:
        DoesNotApply: one is not for what is installed.
        PatchError: one failed.
    """
    if not ids:
        return
    # Not through a selection of each id: a group is asked for as a whole, and applies where one of its patches does.
    for name in ids:
        statuses = [_settled(scope, patch) for patch in scope._engine.patches(name)]
        failed = [status for status in statuses if status.state in ("failed", "lost")]
        if failed:
            raise PatchError(
                "\n".join(
                    f"{status.id} {status.state}: {status.reason}\n{status.traceback or ''}".rstrip()
                    for status in failed
                )
            )
        if not any(status.state in ("applied", "overlaid") for status in statuses):
            raise DoesNotApply("; ".join(f"{status.id} does not apply here: {status.reason}" for status in statuses))


def _settled(scope: PatchScope, patch: Patch) -> PatchStatus:
    """Apply a patch, and import the modules of its targets."""
    engine = scope._engine
    missing = []
    # Not of a patch that is out of its window: its target may be slow to import, or not be there at all.
    with contextlib.suppress(Skip):
        for module in admit(patch, engine.circumstances, force=False).modules:
            try:
                importlib.import_module(module)
            except ImportError as error:
                missing.append(f"importing {module} raised {type(error).__name__}: {error}")
    [status] = scope.apply(patch.qualified_id)
    if status.state == "pending" and missing:
        raise DoesNotApply(f"{status.id} does not apply here: {'; '.join(missing)}")
    return status
