"""Stand-in packages and an engine of its own, for the tests of the applying half.

A test writes modules into a folder, imports them for real, and declares patches of them as a manifest would. When the
test is over, everything must be as it was before: the import system, and what the finder waits for.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import json
import os
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from compat_patches import importing, manifest
from compat_patches.engine import Engine
from compat_patches.report import PatchStatus
from compat_patches.settings import Settings

ROOT = Path(__file__).resolve().parent.parent
HANGS_AFTER = 60
"""Seconds. A thread that takes longer is stuck; nothing here takes one."""


def toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{json.dumps(key)} = {toml(item)}" for key, item in value.items()) + " }"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(toml, value)) + "]"
    return json.dumps(value)


def declaration(name: str, patches: list[dict[str, Any]]) -> str:
    """A manifest as a TOML text. What every patch has to say, and no test is about, is filled in."""
    lines = ["[manifest]", f"name = {toml(name)}", "schema = 1"]
    for patch in patches:
        told = {"summary": "A test", "why": "A test", "upstream": ["a link"], "remove_when": "never", **patch}
        steps = told.pop("step", [])
        lines += ["", "[[patch]]", *(f"{key} = {toml(value)}" for key, value in told.items())]
        for step in steps:
            lines += ["[[patch.step]]", *(f"{key} = {toml(value)}" for key, value in step.items())]
    return "\n".join(lines)


class World:
    """A folder of modules on ``sys.path`` and an engine that nobody else uses."""

    def __init__(self, folder: Path, settings: Settings | None = None) -> None:
        self.folder = folder
        self.engine = Engine(settings)
        self.engine.open()
        self._manifests = 0
        self.written: set[str] = set()

    def write(self, name: str, text: str = "") -> None:
        """Write a module; the packages above it are made where they are not there yet."""
        self.written.add(name)
        *packages, module = name.split(".")
        folder = self.folder
        for package in packages:
            folder = folder / package
            folder.mkdir(exist_ok=True)
            (folder / "__init__.py").touch()
        path = folder / module / "__init__.py" if (folder / module).is_dir() else folder / f"{module}.py"
        path.write_text(textwrap.dedent(text), encoding="utf-8")
        importlib.invalidate_caches()

    def load(self, name: str, text: str | None = None) -> Any:
        """Import a module, after writing it where there is a text for it."""
        if text is not None:
            self.write(name, text)
        return importlib.import_module(name)

    def declare(self, *patches: dict[str, Any], start: bool = True) -> list[PatchStatus]:
        """Declare patches, and apply what is for every process."""
        self._manifests += 1
        text = declaration(f"test-{self._manifests}", list(patches))
        declared = self.engine.add(manifest.parse(text.encode(), "a test"))
        names = [patch.qualified_id for patch in declared]
        if start:
            self.engine.start(*names)
        return self.engine.status(*names)

    def wrap(self, target: str, using: str = "impl:add_one", **fields: Any) -> PatchStatus:
        """Declare one patch ``p`` that wraps, and apply it."""
        return self.declare({"id": "p", "target": target, "action": "wrap", "using": using, **fields})[0]

    def state(self, name: str = "p") -> str:
        return self.engine.status(name)[0].state

    def reason(self, name: str = "p") -> str:
        return self.engine.status(name)[0].reason

    @property
    def layers(self) -> int:
        return len(self.engine._settler.layers)


IMPLEMENTATION = """
    def add_one(original):
        def stand_in(*args, **kwargs):
            return original(*args, **kwargs) + 1
        return stand_in

    def add_ten(original):
        def stand_in(*args, **kwargs):
            return original(*args, **kwargs) + 10
        return stand_in

    def add_hundred(original):
        def stand_in(*args, **kwargs):
            return original(*args, **kwargs) + 100
        return stand_in

    def fails(original):
        raise RuntimeError("the patch is broken")

    def seven(*args, **kwargs):
        return 7
"""


def waited_for() -> tuple[Any, ...]:
    """All that the finder keeps; the same before a test and after it."""
    return (
        list(sys.meta_path),
        dict(importing._watched),
        dict(importing._roots),
        set(importing._executing),
        set(importing._executed),
        set(importing._searching),
        list(importing._listeners),
    )


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    with _world(tmp_path, monkeypatch, Settings()) as made:
        yield made


@pytest.fixture
def strict_world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    """With ``COMPAT_PATCHES_STRICT=1``."""
    with _world(tmp_path, monkeypatch, Settings(strict=True)) as made:
        yield made


@contextlib.contextmanager
def _world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: Settings) -> Iterator[World]:
    # A module that is written twice in one second would be taken from its bytecode.
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.syspath_prepend(str(tmp_path))
    # Whoever looks for torch, as an engine does, wakes the engine of this process; it is to be awake before.
    importlib.util.find_spec("torch")
    before, modules = waited_for(), set(sys.modules)
    made = World(tmp_path, settings)
    made.write("impl", IMPLEMENTATION)
    try:
        yield made
    finally:
        made.engine.close()
        for name in set(sys.modules) - modules:
            if name in made.written or is_below(sys.modules[name], tmp_path):
                del sys.modules[name]
    assert waited_for() == before


def is_below(module: Any, folder: Path) -> bool:
    if not issubclass(type(module), ModuleType):
        return False
    spec = getattr(module, "__spec__", None)
    places = [getattr(spec, "origin", None) or "", *(getattr(spec, "submodule_search_locations", None) or [])]
    return any(place.startswith(str(folder)) for place in places)


def run_all(*bodies: Callable[[], Any]) -> list[Any]:
    """Run each in a thread of its own, all at once. One that raises fails the test, one that hangs too."""
    results: list[Any] = [None] * len(bodies)
    failures: list[BaseException] = []
    barrier = threading.Barrier(len(bodies))

    def run(number: int, body: Callable[[], Any]) -> None:
        try:
            barrier.wait(HANGS_AFTER)
            results[number] = body()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=run, args=pair, daemon=True) for pair in enumerate(bodies)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(HANGS_AFTER)
    stuck = [thread for thread in threads if thread.is_alive()]
    assert not stuck, f"{len(stuck)} of {len(threads)} threads hang"
    if failures:
        raise failures[0]
    return results


def run_python(code: str, *options: str, folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run code in a fresh process that finds the package, this module and the modules of ``folder``."""
    inherited = {key: value for key, value in os.environ.items() if not key.startswith("COMPAT_PATCHES")}
    path = os.pathsep.join([str(folder), str(ROOT), str(ROOT / "tests"), *sys.path])
    return subprocess.run(
        [sys.executable, *options, "-c", textwrap.dedent(code)],
        env={**inherited, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1", "COMPAT_PATCHES": "off", **environment},
        capture_output=True,
        text=True,
        timeout=HANGS_AFTER,
        check=False,
    )
