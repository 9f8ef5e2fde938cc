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

    Yields:
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

    try:
        named = list(entry_points(group=ENTRY_POINTS))
    except Exception as error:
        # The entry points of all distributions are read at once, and one that is broken raises as it likes.
        yield ManifestError(f"entry points {ENTRY_POINTS}", [f"cannot be read: {type(error).__name__}: {error}"])
        return
    for entry_point in named:
        try:
            path = _path_of(entry_point.value)
        except LookupError as error:
            source = f"entry point {entry_point.name!r} of {ENTRY_POINTS} ({entry_point.value})"
            yield ManifestError(source, [str(error)])
        else:
            yield _loaded(path)


def _path_of(value: str) -> str:
    """The file that ``package:path/inside/the/package.toml`` names.

    Raises:
        LookupError: with the reason why there is none.
    """
    package, _, inside = (part.strip() for part in value.partition(":"))
    if not package or not inside:
        raise LookupError("names no file; expected 'package:path/inside/the/package.toml'")
    candidates = [os.path.join(folder, *inside.split("/")) for folder in _folders_of(package)]
    if not candidates:
        raise LookupError(f"there is no package {package!r}; expected one that is installed")
    # A namespace package lies in several folders.
    return next(filter(os.path.exists, candidates), candidates[0])


def _folders_of(package: str) -> list[str]:
    """Where a package lies. Its parents would be imported to find it, so only their places are used."""
    from importlib.util import find_spec

    root, *path = package.split(".")
    try:
        spec = find_spec(root)
    except Exception:
        # Finders are anybody's; whatever they raise, the package cannot be found.
        return []
    locations = spec.submodule_search_locations if spec is not None else None
    return [os.path.join(location, *path) for location in locations or ()]
