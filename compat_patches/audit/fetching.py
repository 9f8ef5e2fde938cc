"""Fetching a release by its version number: pip downloads a wheel, once."""

from __future__ import annotations

import glob
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable

from . import cache
from .trees import PlaceError

_MACOS = ("--platform", "macosx_14_0_arm64")
_LINUX = (
    "--platform",
    "manylinux_2_28_aarch64",
    "--platform",
    "manylinux_2_28_x86_64",
    "--platform",
    "manylinux1_x86_64",
)
_TRIES = (
    # The Python files of torch are the same on every platform, so the smallest wheel will do: about 60 to 140 MB for
    # macOS and for Linux on ARM, up to 1 GB for Linux on x86-64. pip prefers a tag to another by the ABI first, so that
    # one call with all platforms would not take the smallest.
    ("3.12", _MACOS),
    ("3.12", _LINUX),
    # Releases before 2.2 have no wheel for Python 3.12.
    ("3.10", (*_MACOS, *_LINUX)),
)


def folder() -> str:
    """Where wheels are kept."""
    return os.path.join(cache.folder(), "wheels")


def wheel_of(version: str, *, offline: bool = False, tell: Callable[[str], None] = lambda text: None) -> str:
    """The path of a wheel of this version of torch; it is fetched where that has not been done yet.

    Raises:
        PlaceError: pip cannot fetch it, with what pip says; or ``offline`` forbids to try.
    """
    found = sorted(glob.glob(os.path.join(folder(), f"torch-{glob.escape(version)}-*.whl")), key=os.path.getsize)
    if found:
        return found[0]
    if offline:
        raise PlaceError(f"torch {version} has not been fetched before, and --offline forbids to do it now")
    tell(f"fetching torch {version} with pip")
    os.makedirs(folder(), exist_ok=True)
    complaint = ""
    for python, platforms in _TRIES:
        with tempfile.TemporaryDirectory(dir=folder(), prefix="fetching-") as scratch:
            complaint = _download(version, python, platforms, scratch)
            wheels = glob.glob(os.path.join(scratch, "torch-*.whl"))
            if wheels:
                kept = os.path.join(folder(), os.path.basename(wheels[0]))
                os.replace(wheels[0], kept)
                return kept
    raise PlaceError(f"torch {version} cannot be fetched: {complaint}")


def _download(version: str, python: str, platforms: tuple[str, ...], into: str) -> str:
    """Let pip download a wheel.

    Returns:
        What pip complains about, where there is none.

    Raises:
        PlaceError: another try cannot succeed either.
    """
    command = [sys.executable, "-m", "pip", "download", "--disable-pip-version-check", "--no-input", "--no-deps"]
    command += ["--only-binary=:all:", "--python-version", python, *platforms, "--implementation", "cp"]
    command += ["--abi", f"cp{python.replace('.', '')}", "--abi", "none", "--dest", into, f"torch=={version}"]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace")
    if done.returncode == 0:
        return "pip has put no wheel where it should"
    if "No module named pip" in done.stderr:
        raise PlaceError(
            f"torch {version} cannot be fetched: {sys.executable} has no pip; install it, or download the wheel and "
            f"name its path"
        )
    cap = re.search(r"The user requested \(constraint\) (\S+)", done.stdout)
    if cap:
        raise PlaceError(
            f"torch {version} cannot be fetched: pip is configured with the constraint {cap.group(1)}; lift it, or "
            f"download the wheel and name its path"
        )
    # The last of the errors says what is wrong; before it, pip lists every version that there is.
    errors = [line.removeprefix("ERROR: ").strip() for line in done.stderr.splitlines() if line.startswith("ERROR: ")]
    said = errors[-1] if errors else done.stderr.strip()[-300:] or f"exit status {done.returncode}"
    return f"pip says: {said if len(said) <= 300 else said[:300] + ' …'}"
