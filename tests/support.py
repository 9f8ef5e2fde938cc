"""What tests of several files need: fresh processes, and snapshots of what patches may change."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

ROOT = Path(__file__).resolve().parent.parent


def clean_environment(**variables: str) -> dict[str, str]:
    """This process's environment without any setting of ours, and with ``variables``.

    The checkout is put in front of ``PYTHONPATH``, so that tests need no installation.
    """
    environment = {name: value for name, value in os.environ.items() if not name.startswith("COMPAT_PATCHES")}
    paths = [str(ROOT), environment.get("PYTHONPATH", "")]
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
    return {**environment, **variables}


def python(
    *arguments: str | Path, cwd: str | Path | None = None, timeout: float = 240, **variables: str
) -> subprocess.CompletedProcess[str]:
    """Run this Python in a fresh process and return what it printed, whatever its exit status."""
    return subprocess.run(
        [sys.executable, *map(str, arguments)],
        env=clean_environment(**variables),
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )


def printed(*arguments: str | Path, **options: Any) -> str:
    """Run this Python in a fresh process that must succeed, and return its standard output."""
    done = python(*arguments, **options)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def entries(owner: type | ModuleType) -> dict[str, int]:
    """The owner's own names, each with the identity of what it holds."""
    return {name: id(value) for name, value in vars(owner).items()}


@contextlib.contextmanager
def put_back(*owners: Any) -> Iterator[None]:
    """What is applied and undone in the body has to leave the raw entries of these owners as they were."""
    before = [_snapshot(owner) for owner in owners]
    yield
    assert [_snapshot(owner) for owner in owners] == before


def _snapshot(owner: Any) -> Any:
    if isinstance(owner, list | tuple):
        return [id(element) for element in owner]
    if isinstance(owner, set | frozenset):
        return {id(element) for element in owner}
    if isinstance(owner, os._Environ):
        return dict(owner)  # It makes a new string of every look-up.
    return {key: id(value) for key, value in (owner if isinstance(owner, Mapping) else vars(owner)).items()}
