"""The environment for a child process in which compat_patches is to be active."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping


def sitecustomize_folder() -> str:
    """The folder for ``PYTHONPATH`` whose sitecustomize activates compat_patches; may lie inside a zip file."""
    return os.path.join(os.path.dirname(os.path.abspath(__file__)), "_sitecustomize")


def this_python() -> str:
    """Tells the Python of this process from that of another environment: its version and prefix."""
    return "{}.{}:{}".format(*sys.version_info[:2], sys.prefix)


def child_environment(
    base: Mapping[str, str],
    *,
    only: Iterable[str] = (),
    disable: Iterable[str] = (),
    strict: bool | None = None,
) -> dict[str, str]:
    """Make the environment of a child process, and of all of its children, in which compat_patches is active.

    A startup file of an installed package activates it by ``COMPAT_PATCHES=on`` alone. Where none is read (a zip file,
    a folder that is on the path by hand), the sitecustomize on ``PYTHONPATH`` does.

    Args:
        base: the environment to start from. Where it says ``COMPAT_PATCHES=off``, the child gets that.
        only: ids and groups; where given, they take the place of those in ``base``.
        disable: ids and groups, added to those in ``base``.
        strict: whether a failure raises; as in ``base`` with None.

    Returns:
        A new environment.
    """
    environment = dict(base)
    if environment.get("COMPAT_PATCHES", "").strip().lower() not in ("off", "0", "false", "no"):
        environment["COMPAT_PATCHES"] = "on"
    folder = sitecustomize_folder()
    paths = [path for path in environment.get("PYTHONPATH", "").split(os.pathsep) if path and path != folder]
    environment["PYTHONPATH"] = os.pathsep.join([folder, *paths])
    environment["COMPAT_PATCHES_PYTHON"] = this_python()
    if only := list(only):
        environment["COMPAT_PATCHES_ONLY"] = ",".join(only)
    if disable := list(disable):
        known = environment.get("COMPAT_PATCHES_DISABLE", "").replace(",", " ").split()
        environment["COMPAT_PATCHES_DISABLE"] = ",".join(dict.fromkeys([*known, *disable]))
    if strict is not None:
        environment["COMPAT_PATCHES_STRICT"] = "1" if strict else "0"
    return environment
