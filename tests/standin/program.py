"""Programs in a process of their own, whose torch has the stand-in XPU from the first import on."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Mapping
from pathlib import Path


def run_program(
    program: str | Path,
    *,
    device_count: int = 2,
    as_accelerator: bool = False,
    environment: Mapping[str, str] | None = None,
    timeout_seconds: float = 300,
) -> str:
    """Run a program, a text or the path of a file, with this interpreter, and return what it wrote to stdout.

    The name ``standin_xpu`` is there for it. ``environment`` is added to this process's own. A program that
    does not end with 0 is an AssertionError with all that it wrote.
    """
    with tempfile.TemporaryDirectory() as folder:
        if isinstance(program, Path):
            path = program
        else:
            path = Path(folder) / "program.py"
            path.write_text(textwrap.dedent(program), encoding="utf-8")
        command = [sys.executable, "-m", __package__, "--device-count", str(device_count)]
        command += ["--as-accelerator"] if as_accelerator else []
        package_root = Path(__file__).resolve().parents[__package__.count(".") + 1]
        search_path = [str(package_root), os.environ.get("PYTHONPATH", "")]
        done = subprocess.run(
            [*command, str(path)],
            env={
                **os.environ,
                **(environment or {}),
                "PYTHONPATH": os.pathsep.join(filter(None, search_path)),
            },
            capture_output=True,
            text=True,
            timeout=timeout_seconds,
        )
    if done.returncode != 0:
        raise AssertionError(
            f"the program ended with {done.returncode}\n--- stdout\n{done.stdout}\n--- stderr\n{done.stderr}"
        )
    return done.stdout
