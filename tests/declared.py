"""Manifests for tests: a correct patch, to be changed in one place."""

from __future__ import annotations

import datetime
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from compat_patches import manifest
from compat_patches.fields import problems_of
from compat_patches.manifest import Patch

ROOT = Path(__file__).resolve().parent.parent

CORRECT: dict[str, Any] = {
    "id": "a-patch",
    "summary": "Does something",
    "why": "Something goes wrong",
    "upstream": ["https://github.com/pytorch/pytorch/pull/1"],
    "remove_when": "torch 2.11 is the oldest supported release",
    "target": "torch._inductor.codecache:FxGraphCachePickler.dumps",
    "action": "wrap",
    "using": "some.implementation:wrap",
}


def table(**changes: Any) -> dict[str, Any]:
    """The correct patch with other fields; one that is None is left out."""
    return {key: value for key, value in {**CORRECT, **changes}.items() if value is not None}


def document(*patches: dict[str, Any], name: str = "some-manifest") -> dict[str, Any]:
    return {"manifest": {"name": name, "schema": 1}, "patch": list(patches)}


def problems(**changes: Any) -> list[str]:
    """What is wrong with the correct patch after it was changed."""
    return problems_of(document(table(**changes)))


def patch(**changes: Any) -> Patch:
    """The record of the correct patch after it was changed."""
    return manifest.parse(toml(document(table(**changes))), "test").patches[0]


def toml(values: dict[str, Any]) -> bytes:
    """A document as TOML, in the plainest way: inline tables only."""
    return "".join(f"{_key(key)} = {_toml(value)}\n" for key, value in values.items()).encode()


def _key(key: str) -> str:
    return _toml(str(key))


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_key(key)} = {_toml(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    return repr(value)


def run_python(code: str, *path: Path, options: tuple[str, ...] = (), **environment: str) -> str:
    """What a fresh Python prints that has compat_patches and these folders on its path."""
    search = os.pathsep.join(map(str, (*path, ROOT)))
    inherited = {key: value for key, value in os.environ.items() if not key.startswith("COMPAT_PATCHES")}
    result = subprocess.run(
        [sys.executable, *options, "-c", code],
        env={**inherited, "PYTHONPATH": search, **environment},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert result.returncode == 0, result.stderr
    return result.stdout.strip()
