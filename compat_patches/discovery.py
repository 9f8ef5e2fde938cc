"""Which manifests there are for a process: the built-in one, installed projects', and those the environment names."""

from __future__ import annotations

import os
from collections.abc import Iterator

from . import manifest
from .errors import ManifestError
from .manifest import Manifest
from .settings import Settings

ENTRY_POINTS = "compat_patches.manifests"
"""The entry points by which a project names a manifest that it ships: ``package:path/inside/the/package.toml``."""


def builtin_manifest() -> str:
    """The path of the built-in manifest: in the package where it is installed, at the root of a checkout otherwise."""
    package = os.path.dirname(os.path.abspath(__file__))
    installed = os.path.join(package, "patches.toml")
    return installed if os.path.exists(installed) else os.path.join(os.path.dirname(package), "patches.toml")


def manifests(settings: Settings) -> Iterator[Manifest | ManifestError]:
    """Load all manifests that a process should have. One that is broken does not touch the others.

    Returns:
        A manifest, or what is wrong with it, for each.
    """
    yield _loaded(builtin_manifest())
    yield from _installed()
    for path in settings.manifests:
        yield _loaded(path)


def _loaded(path: str) -> Manifest | ManifestError:
    try:
        return manifest.load(path)
    except ManifestError as error:
        return error


def _installed() -> Iterator[Manifest | ManifestError]:
    from importlib.metadata import entry_points

    for entry_point in entry_points(group=ENTRY_POINTS):
        source = f"entry point {entry_point.name!r} of {ENTRY_POINTS} ({entry_point.value})"
        package, _, inside = entry_point.value.partition(":")
        folder = _folder_of(package.strip())
        if folder is None or not inside.strip():
            yield ManifestError(source, ["names no file; expected 'package:path/inside/the/package.toml'"])
        else:
            yield _loaded(os.path.join(folder, *inside.strip().split("/")))


def _folder_of(package: str) -> str | None:
    """Where an installed package lies. A package's parents would be imported to find it, so only their path is used."""
    from importlib.util import find_spec

    root, *path = package.split(".")
    try:
        spec = find_spec(root)
    except (ImportError, ValueError):
        return None
    if spec is None or not spec.submodule_search_locations:
        return None
    return os.path.join(spec.submodule_search_locations[0], *path)
