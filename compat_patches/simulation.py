"""Simulated circumstances: patches are judged as if another torch, build or Python were there."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Mapping

from .engine import Engine
from .fields import BUILDS
from .report import PatchStatus

_PYTHON = re.compile(r"(\d+\.\d+)(\.\d+\w*)?$")


def simulating(
    engine: Engine,
    *,
    torch: str | None,
    build: str | None,
    python: str | None,
    accelerator: str | None,
    versions: Mapping[str, str],
    markers: Mapping[str, str],
) -> contextlib.AbstractContextManager[list[PatchStatus]]:
    """Judge the patches of an engine by other circumstances; see :func:`compat_patches.simulate`."""
    if build is not None and build not in BUILDS:
        raise ValueError(f"found the build {build!r}, expected one of {', '.join(BUILDS)}")
    from packaging.utils import canonicalize_name

    markers = {**_python_markers(python), **markers}
    versions = {canonicalize_name(name): version for name, version in versions.items()}

    @contextlib.contextmanager
    def simulation() -> Iterator[list[PatchStatus]]:
        known = engine.circumstances
        before = engine.simulate(
            known.replace(
                torch=known.torch if torch is None else torch,
                build=known.build if build is None else build,
                versions={**known.versions, **versions},
                markers={**known.markers, **markers},
                accelerator=known.accelerator if accelerator is None else accelerator,
            )
        )
        try:
            engine.judge_again()
            yield engine.status()
        finally:
            engine.simulate(before)
            engine.judge_again()

    return simulation()


def _python_markers(python: str | None) -> dict[str, str]:
    if python is None:
        return {}
    found = _PYTHON.match(python)
    if found is None:
        raise ValueError(f"found the version of Python {python!r}, expected one such as '3.14' or '3.14.1'")
    full = python if found[2] else f"{python}.0"
    return {"python_version": found[1], "python_full_version": full, "implementation_version": full}
