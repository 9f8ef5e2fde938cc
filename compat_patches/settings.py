"""What the user says through the environment, read once when the engine starts."""

from __future__ import annotations

import os
from collections.abc import Mapping

from .frozen import Frozen

_ON = frozenset({"1", "true", "yes", "on"})
_OFF = frozenset({"0", "false", "no", "off"})
_LEVELS = ("debug", "info", "warning", "error")


class Settings(Frozen):
    """The environment variables of compat_patches.

    Attributes:
        off: ``COMPAT_PATCHES=off``: nothing is applied but what code asks for.
        only: ``COMPAT_PATCHES_ONLY``: these ids and groups and no others; empty for all.
        disable: ``COMPAT_PATCHES_DISABLE``: not these.
        manifests: ``COMPAT_PATCHES_MANIFEST``: further manifest files.
        strict: ``COMPAT_PATCHES_STRICT``: a failure raises.
        log: ``COMPAT_PATCHES_LOG``: a level of logging, written to standard error.
        complaints: what could not be understood.
    """

    off: bool = False
    only: tuple[str, ...] = ()
    disable: tuple[str, ...] = ()
    manifests: tuple[str, ...] = ()
    strict: bool = False
    log: str | None = None
    complaints: tuple[str, ...] = ()

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> Settings:
        complaints: list[str] = []
        log = environment.get("COMPAT_PATCHES_LOG", "").strip().lower() or None
        if log is not None and log not in _LEVELS:
            complaints.append(f"COMPAT_PATCHES_LOG is {log!r}; expected one of {', '.join(_LEVELS)}")
            log = None
        return cls(
            off=not _flag(environment, "COMPAT_PATCHES", True, complaints),
            only=_names(environment, "COMPAT_PATCHES_ONLY"),
            disable=_names(environment, "COMPAT_PATCHES_DISABLE"),
            manifests=tuple(path for path in environment.get("COMPAT_PATCHES_MANIFEST", "").split(os.pathsep) if path),
            strict=_flag(environment, "COMPAT_PATCHES_STRICT", False, complaints),
            log=log,
            complaints=tuple(complaints),
        )


def _names(environment: Mapping[str, str], variable: str) -> tuple[str, ...]:
    return tuple(environment.get(variable, "").replace(",", " ").split())


def _flag(environment: Mapping[str, str], variable: str, default: bool, complaints: list[str]) -> bool:
    word = environment.get(variable, "").strip().lower()
    if word in _ON:
        return True
    if word in _OFF:
        return False
    if word:
        complaints.append(f"{variable} is {environment[variable]!r}; expected on or off")
    return default
