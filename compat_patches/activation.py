"""Switching compat_patches on for an environment: ``compat-patches enable`` and ``disable``.

The startup files come with the installed package and do nothing by themselves. What switches them on is a marker, a
file that means something while the package is installed and nothing afterwards.
"""

from __future__ import annotations

import os
import site
import sys
from dataclasses import dataclass

import _compat_patches_startup as startup

from .errors import CompatPatchesError

MARKER_TEXT = """\
This file switches compat_patches on for every Python process of this environment.
It was written by `compat-patches enable`; `compat-patches disable` removes it.
"""


class ActivationError(CompatPatchesError):
    """An environment that cannot be switched on or off; the text says why and what to do."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a marker counts.

    Attributes:
        title: what it is, for people.
        marker: the path of the marker.
    """

    title: str
    marker: str

    @property
    def enabled(self) -> bool:
        return os.path.exists(self.marker)


def environment() -> Place:
    """The virtual environment (or conda's) that this Python belongs to.

    Raises:
        ActivationError: it belongs to none, so that the marker would be for every user of the machine.
    """
    if sys.prefix == sys.base_prefix and not os.path.isdir(os.path.join(sys.prefix, "conda-meta")):
        raise ActivationError(
            f"{sys.executable} belongs to no virtual environment; expected one, or say --user for your own user's site"
        )
    return Place(f"the environment {sys.prefix}", os.path.join(sys.prefix, startup.MARKER))


def user_site() -> Place:
    """The user's site of this Python.

    Raises:
        ActivationError: this Python does not read it.
    """
    if not site.ENABLE_USER_SITE:
        why = (
            "it was started with -s or -I, or PYTHONNOUSERSITE is set"
            if sys.flags.no_user_site
            else "its virtual environment leaves it out"
        )
        raise ActivationError(f"{sys.executable} does not read the user's site: {why}")
    return Place("your own user's site", os.path.join(site.getusersitepackages(), startup.MARKER))


def usual_place() -> Place:
    """The environment that this Python belongs to, or else the user's site."""
    try:
        return environment()
    except ActivationError:
        return user_site()


def places() -> list[Place]:
    """All places where a marker counts for this Python, those included that ``disable`` is not asked about."""
    titles = ["the environment " + sys.prefix, "your own user's site"]
    return [Place(title, marker) for title, marker in zip(titles, startup.markers(), strict=False)]


def enable(place: Place) -> bool:
    """Switch a place on.

    Returns:
        Whether anything was written; False where it was on already.

    Raises:
        ActivationError: no startup file would see it, or it cannot be written.
    """
    if not startup_files():
        raise ActivationError(
            f"no folder that {sys.executable} reads at its start has {_startup_file_names()[0]}: compat_patches was "
            "found by other means. Install it into this environment with pip, or put the folder that "
            "`compat-patches sitecustomize` prints on PYTHONPATH"
        )
    if place.enabled:
        return False
    folder = os.path.dirname(place.marker)
    unfinished = f"{place.marker}.{os.getpid()}"
    try:
        os.makedirs(folder, exist_ok=True)
        try:
            with open(unfinished, "x", encoding="utf-8") as file:
                file.write(MARKER_TEXT)
            os.replace(unfinished, place.marker)
        except BaseException:
            if os.path.lexists(unfinished):
                os.unlink(unfinished)
            raise
    except OSError as error:
        raise _refused("write", place, error) from None
    return True


def disable(place: Place) -> bool:
    """Switch a place off.

    Returns:
        Whether anything was removed; False where it was off already.

    Raises:
        ActivationError: the marker cannot be removed.
    """
    try:
        os.unlink(place.marker)
    except FileNotFoundError:
        return False
    except OSError as error:
        raise _refused("remove", place, error) from None
    return True


def startup_files() -> list[str]:
    """The startup files of compat_patches that this Python reads when it starts, in the order in which it does."""
    folders = list(dict.fromkeys(map(os.path.abspath, _site_folders())))
    paths = [os.path.join(folder, name) for folder in folders for name in _startup_file_names()]
    return list(filter(os.path.exists, paths))


def _startup_file_names() -> tuple[str, ...]:
    # From 3.15 on a .start file silences the import line of the .pth file of the same name (PEP 829).
    return ("compat_patches.start",) if sys.version_info >= (3, 15) else ("compat_patches.pth",)


def _site_folders() -> list[str]:
    return [*([site.getusersitepackages()] if site.ENABLE_USER_SITE else []), *site.getsitepackages()]


def _refused(verb: str, place: Place, error: OSError) -> ActivationError:
    return ActivationError(
        f"cannot {verb} {place.marker}: {error.strerror or error}. Ask whoever may write to "
        f"{os.path.dirname(place.marker)}, or set COMPAT_PATCHES in the environment instead"
    )
