"""Fetching a release by its version number: pip downloads a wheel, once."""

from __future__ import annotations

import glob
import os
import subprocess
import sys
import tempfile

from . import cache
from .trees import PlaceError

_TAGS = (
    # The Python files of torch are the same on every platform. From the smallest wheel to the largest: about 80 to
    # 140 MB without CUDA for the first two, up to 1 GB for the last.
    *("--platform", "macosx_14_0_arm64", "--platform", "manylinux_2_28_aarch64"),
    *("--platform", "manylinux_2_28_x86_64", "--platform", "manylinux1_x86_64"),
    # torch 2.0 to 2.15 have wheels of one of these Pythons at least.
    *("--implementation", "cp", "--abi", "none"),
)
_PYTHONS = ("3.12", "3.10")


def folder() -> str:
    """Where wheels are kept."""
    return os.path.join(cache.folder(), "wheels")


def wheel_of(version: str, *, offline: bool = False) -> str:
    """The path of a wheel of this version of torch; it is fetched where that has not been done yet.

    Raises:
        PlaceError: pip cannot fetch it, with what pip says; or ``offline`` forbids to try.
    """
    found = sorted(glob.glob(os.path.join(folder(), f"torch-{glob.escape(version)}-*.whl")), key=os.path.getsize)
    if found:
        return found[0]
    if offline:
        raise PlaceError(f"torch {version} has not been fetched before, and --offline forbids to do it now")
    os.makedirs(folder(), exist_ok=True)
    complaint = ""
    for python in _PYTHONS:
        with tempfile.TemporaryDirectory(dir=folder(), prefix="fetching-") as scratch:
            complaint = _download(version, python, scratch)
            wheels = glob.glob(os.path.join(scratch, "torch-*.whl"))
            if wheels:
                kept = os.path.join(folder(), os.path.basename(wheels[0]))
                os.replace(wheels[0], kept)
                return kept
    raise PlaceError(f"torch {version} cannot be fetched: {complaint}")


def _download(version: str, python: str, into: str) -> str:
    """Returns what pip complains about."""
    abi = f"cp{python.replace('.', '')}"
    command = [sys.executable, "-m", "pip", "download", "--disable-pip-version-check", "--no-input", "--quiet"]
    command += ["--no-deps", "--only-binary=:all:", "--python-version", python, *_TAGS, "--abi", abi]
    command += ["--dest", into, f"torch=={version}"]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace")
    if done.returncode == 0:
        return "pip has put no wheel where it should"
    if "No module named pip" in done.stderr:
        return f"{sys.executable} has no pip; install it, or download the wheel and name its path"
    # The first two lines of errors say what is wrong; pip's advice on how to file bugs comes after.
    lines = [line.removeprefix("ERROR: ").strip() for line in done.stderr.splitlines() if line.startswith("ERROR: ")]
    said = [line if len(line) <= 300 else f"{line[:140]} … {line[-140:]}" for line in lines[:2]]
    return f"pip says: {'; '.join(said) or done.stderr.strip()[-300:] or f'exit status {done.returncode}'}"
