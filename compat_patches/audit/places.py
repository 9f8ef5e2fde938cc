"""Places: from what a user writes after ``--torch`` to a release whose files can be read.

An installed environment, its Python, a ``site-packages``, a wheel, or a version number, which pip fetches.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from packaging.version import InvalidVersion, Version

from .. import predicates
from . import cache, fetching
from .facts import StaticFacts
from .trees import Folder, PlaceError, Tree, UnreadableSource, Wheel

_SITE_PACKAGES = ("lib/python3*/site-packages", "lib64/python3*/site-packages", "Lib/site-packages")
_PYTHONS = ("bin/python", "bin/python3", "Scripts/python.exe")
_SDISTS = (".tar.gz", ".zip", ".tar.bz2", ".tgz")


@dataclass(slots=True)
class Release:
    """A release of torch.

    Attributes:
        where: what the user wrote.
        version: what ``torch/version.py`` says, with its local part.
        build: cpu, cuda, rocm or xpu, as that file says; None where it does not say.
        facts: answers about targets.
        python: the interpreter that can run it, None for a wheel.
    """

    where: str
    version: str
    build: str | None
    facts: StaticFacts
    python: str | None = None
    label: str = ""

    @property
    def tree(self) -> Tree:
        return self.facts.tree


@dataclass(slots=True)
class Unread:
    """A place that has no release to be read, and why."""

    where: str
    why: str
    label: str = field(default="")


def open_release(
    where: str,
    *,
    offline: bool = False,
    store: cache.Store | None = None,
    tell: Callable[[str], None] = lambda text: None,
) -> Release:
    """Open what a user names.

    Args:
        where: a path or a version number.
        offline: fetch nothing; a version number is then good only where its wheel has been fetched before.
        store: what was found out before.
        tell: is told what is being done.

    Raises:
        PlaceError: there is no release to be read.
    """
    tree, python = _tree_at(where, offline, tell)
    tell(f"reading {os.path.basename(where.rstrip('/')) or where}")
    known = store.load(tree) if store is not None else {}
    facts = StaticFacts(tree, known)
    version, build = _version_of(where, facts)
    return Release(where, version, build, facts, python)


def _tree_at(where: str, offline: bool, tell: Callable[[str], None]) -> tuple[Tree, str | None]:
    path = os.path.expanduser(where)
    if os.path.isdir(path):
        site_packages = _site_packages_in(path)
        return Folder(site_packages), _python_of(site_packages)
    if os.path.isfile(path):
        if path.endswith(".whl"):
            return Wheel(path), None
        if os.path.basename(path).startswith("python") and os.access(path, os.X_OK):
            return _tree_at(os.path.dirname(os.path.dirname(os.path.abspath(path))), offline, tell)
        if path.endswith(_SDISTS):
            raise PlaceError(f"{where} is a source distribution; expected a wheel (.whl) or an environment")
        raise PlaceError(f"{where} is not a wheel; expected a file that ends in .whl, an environment or a version")
    try:
        version = Version(where)
    except InvalidVersion:
        raise PlaceError(
            f"there is no {where}, and it is no version number; expected an environment, a site-packages, a wheel or "
            f"a version such as 2.10.0"
        ) from None
    return Wheel(fetching.wheel_of(str(version), offline=offline, tell=tell)), None


def _site_packages_in(path: str) -> str:
    if os.path.isfile(os.path.join(path, "torch", "__init__.py")):
        return path
    candidates = [found for pattern in _SITE_PACKAGES for found in sorted(glob.glob(os.path.join(path, pattern)))]
    for candidate in candidates:
        if os.path.isfile(os.path.join(candidate, "torch", "__init__.py")):
            return candidate
    for candidate in [path, *candidates]:
        editable = glob.glob(os.path.join(candidate, "__editable__*torch*")) + glob.glob(
            os.path.join(candidate, "torch.egg-link")
        )
        if editable:
            raise PlaceError(
                f"torch is installed in {candidate} as an editable checkout ({os.path.basename(editable[0])}); name "
                f"the folder that has its torch/ in it"
            )
    looked = ", ".join(candidates) or "no site-packages there"
    raise PlaceError(f"there is no torch in {path} (looked into {looked}); install torch there, or name a wheel")


def _python_of(site_packages: str) -> str | None:
    folder = os.path.abspath(site_packages)
    for _ in range(3):
        folder = os.path.dirname(folder)
        for name in _PYTHONS:
            if os.path.isfile(os.path.join(folder, name)) and any(map(os.path.exists, _signs(folder))):
                return os.path.join(folder, name)
    return None


def _signs(folder: str) -> tuple[str, str]:
    """What a virtual environment and a conda environment are known by."""
    return os.path.join(folder, "pyvenv.cfg"), os.path.join(folder, "conda-meta")


def _version_of(where: str, facts: StaticFacts) -> tuple[str, str | None]:
    try:
        found: dict[str, Any] | None = facts.version_file()
    except UnreadableSource as error:
        raise PlaceError(str(error)) from None
    if found is None:
        tree = facts.tree
        holds = f"; it holds {', '.join(tree.top_level()[:4]) or 'nothing'}" if isinstance(tree, Wheel) else ""
        raise PlaceError(f"{where} is not a release of torch: there is no torch/version.py in it{holds}")
    version = found.get("__version__")
    if not isinstance(version, str):
        raise PlaceError(f"torch/version.py in {facts.tree.place} says no __version__")
    return version, predicates.build_of(found)


def label(releases: list[Release | Unread]) -> None:
    """Give each release a short name: its version, and what tells it from another of the same version."""
    for release in releases:
        release.label = os.path.basename(release.where.rstrip("/")) or release.where
        if isinstance(release, Release):
            release.label = release.version.partition("+")[0]
    for attempt in (lambda r: r.version, lambda r: f"{r.version} in {r.where}"):
        labels = [release.label for release in releases]
        for release in releases:
            if labels.count(release.label) > 1 and isinstance(release, Release):
                release.label = attempt(release)


def by_version(releases: list[Release | Unread]) -> list[Release | Unread]:
    """Releases from the oldest to the newest; what could not be read comes last."""

    def key(release: Release | Unread) -> tuple[int, Version]:
        if isinstance(release, Unread):
            return 2, Version("0")
        try:
            return 0, Version(release.version)
        except InvalidVersion:
            return 1, Version("0")

    return sorted(releases, key=key)
