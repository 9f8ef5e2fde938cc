"""Which manifests there are for a process: the built-in one, installed projects', and those the environment names.

None is ever taken from the working directory. One that the environment names has to be where nobody else may write.
"""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Iterator
from importlib.machinery import PathFinder

from . import manifest, store
from .errors import ManifestError
from .importing import FINDER
from .manifest import Manifest
from .settings import Settings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

_MANY_PROJECTS = 50
"""From here on it is cheaper to remember that none of a folder's projects names a manifest than to look again."""

_TICK = 2_000_000_000
"""Nanoseconds. No clock of a file system goes in longer steps; FAT's does in these."""

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
    yield _builtin()
    yield from _installed()
    # Under -I and -E Python does not listen to its environment either.
    for path in () if sys.flags.ignore_environment else settings.manifests:
        yield _named_by_the_environment(path)


def _builtin() -> Manifest | ManifestError:
    path = builtin_manifest()
    if os.path.exists(path):
        return _loaded(path)
    # Not in the file system: the package is in a zip file, whose loader reads what lies beside this module.
    inside = os.path.join(os.path.dirname(os.path.abspath(__file__)), "patches.toml")
    try:
        return _remembered(__loader__.get_data(inside), inside)  # type: ignore[name-defined]  # of every module
    except (AttributeError, OSError) as error:
        return ManifestError(inside, [f"cannot be read: {error}"])


def _named_by_the_environment(path: str) -> Manifest | ManifestError:
    from . import trust

    if not os.path.isabs(path):
        problem = "COMPAT_PATCHES_MANIFEST: is relative to whatever the working directory is; expected an absolute path"
    elif (reason := trust.why_not(path)) is not None:
        problem = f"COMPAT_PATCHES_MANIFEST: refused, as others could have written it: {reason}"
    else:
        return _loaded(path)
    return ManifestError(path, [problem])


def _loaded(path: str) -> Manifest | ManifestError:
    try:
        return _remembered(manifest.read(path), path)
    except ManifestError as error:
        return error


def _remembered(data: bytes, source: str) -> Manifest:
    """Make records of a manifest; its text is parsed and checked only where that has not been done before."""
    digest = manifest.digest_of(data)
    name = store.key("manifest", digest)
    document = store.read(name)
    if document is not None:
        try:
            return manifest.build(document, source, digest)
        except (AttributeError, KeyError, TypeError):  # Not what was written.
            pass
    document = manifest.check(data, source)
    store.write(name, document)
    return manifest.build(document, source, digest)


def _installed() -> Iterator[Manifest | ManifestError]:
    folders = _search_path()
    if not _somebody_names_a_manifest(folders):
        return
    try:
        named = list(_entry_points(folders))
    except Exception as error:
        # The entry points of all distributions are read at once, and one that is broken raises as it likes.
        yield ManifestError(f"entry points {ENTRY_POINTS}", [f"cannot be read: {type(error).__name__}: {error}"])
        return
    for entry_point in named:
        try:
            path = _path_of(entry_point.value, folders)
        except LookupError as error:
            source = f"entry point {entry_point.name!r} of {ENTRY_POINTS} ({entry_point.value})"
            yield ManifestError(source, [str(error)])
        else:
            yield _loaded(path)


def _search_path() -> list[str]:
    """``sys.path`` without the working directory, which is on it for ``python -c``, ``-m`` and scripts that lie there.

    The folders of installed projects stay, wherever somebody works.
    """
    site = sys.modules.get("site")
    installed = [*site.getsitepackages(), site.getusersitepackages()] if site is not None else []
    try:
        here = os.getcwd()
    except OSError:  # It has been removed.
        here = ""
    return [folder for folder in sys.path if folder and (folder in installed or os.path.abspath(folder) != here)]


def _entry_points(folders: list[str]) -> Iterator[EntryPoint]:
    from importlib.metadata import distributions

    seen = set()
    for distribution in distributions(path=folders):
        # As the import system does, the first of a name hides the later ones.
        name = re.sub(r"[-_.]+", "-", distribution.metadata["Name"] or "").lower()
        if name not in seen:
            seen.add(name)
            yield from distribution.entry_points.select(group=ENTRY_POINTS)


def _somebody_names_a_manifest(folders: list[str]) -> bool:
    """Whether an installed project may have such an entry point: a quick look, as reading all of them takes long.

    Returns:
        False only where every installed project has been looked at.
    """
    if any(hasattr(finder, "find_distributions") and finder is not PathFinder for finder in sys.meta_path):
        return True
    return any(map(_names_a_manifest, folders))


def _names_a_manifest(folder: str) -> bool:
    try:
        changed = os.stat(folder).st_mtime_ns
        projects = [name for name in os.listdir(folder) if name.endswith((".dist-info", ".egg-info"))]
    except NotADirectoryError:  # A zip file, or an egg.
        return True
    except OSError:
        return False
    # Who installs something makes a new folder for it, which changes the time of this one, and the import system trusts
    # that time as well. A checkout's .egg-info is written anew in its place; and what was changed just now may be once
    # more before the clock goes on.
    lasting = len(projects) >= _MANY_PROJECTS and time.time_ns() - changed > _TICK
    if not lasting or any(name.endswith(".egg-info") for name in projects):
        return _one_names_a_manifest(folder, projects)
    name = store.key("entry-points", folder, changed, sorted(projects))
    known = store.read(name)
    if not isinstance(known, bool):
        known = _one_names_a_manifest(folder, projects)
        # An installer writes RECORD last; of a project without one more may come.
        if all(os.path.exists(os.path.join(folder, project, "RECORD")) for project in projects):
            store.write(name, known)
    return known


def _one_names_a_manifest(folder: str, projects: list[str]) -> bool:
    wanted = ENTRY_POINTS.encode()
    return any(wanted in _read(f"{folder}/{project}/entry_points.txt") for project in projects)


_READ = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)


def _read(path: str) -> bytes:
    """The bytes of a file, none where it cannot be read. One of hundreds: `open` takes three times as long."""
    parts = []
    try:
        descriptor = os.open(path, _READ)
    except OSError:
        return b""
    try:
        while part := os.read(descriptor, 1 << 20):
            parts.append(part)
    except OSError:
        return b""
    finally:
        os.close(descriptor)
    return b"".join(parts)


def _path_of(value: str, folders: list[str]) -> str:
    """The file that ``package:path/inside/the/package.toml`` names.

    Raises:
        LookupError: with the reason why there is none.
    """
    package, _, inside = (part.strip() for part in value.partition(":"))
    if not package or not inside:
        raise LookupError("names no file; expected 'package:path/inside/the/package.toml'")
    candidates = [os.path.join(folder, *inside.split("/")) for folder in _folders_of(package, folders)]
    if not candidates:
        raise LookupError(f"there is no package {package!r}; expected one that is installed")
    # A namespace package lies in several folders.
    return next(filter(os.path.exists, candidates), candidates[0])


def _folders_of(package: str, folders: list[str]) -> list[str]:
    """Where a package lies. Its parents would be imported to find it, so only their places are used."""
    root, *path = package.split(".")
    for finder in list(sys.meta_path):
        if finder is FINDER:  # Ours takes it for the start of an import.
            continue
        try:
            # PathFinder would look into the working directory by itself.
            spec = finder.find_spec(root, folders if finder is PathFinder else None, None)
        except Exception:
            # Finders are anybody's; whatever they raise, the package cannot be found.
            return []
        if spec is not None:
            return [os.path.join(location, *path) for location in spec.submodule_search_locations or ()]
    return []
