"""Running a part of the suite in a fresh interpreter, where nothing is imported and nothing is patched.

What foreign code prints goes to the test's own output; the answer comes back through a file.
"""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
import tempfile
from typing import Any

TIMEOUT = 900
"""Seconds. All orders of two patches of inductor take about 60; whatever takes this long hangs."""

_START = "import json, sys; job = json.load(sys.stdin); sys.path[:] = job['path']; from {0} import main; main(job)"


class SuiteError(Exception):
    """A part of the suite could not be run to its end; the text has its output."""


def run(module: str, **arguments: Any) -> Any:
    """Call ``run(**arguments)`` of a module of this package in a fresh interpreter.

    Args:
        module: the module's name within this package.
        arguments: passed on, as JSON.

    Returns:
        What the function returned, through JSON.

    Raises:
        SuiteError: it raised, ended the interpreter or took too long.
    """
    environment = {name: value for name, value in os.environ.items() if not name.startswith("COMPAT_PATCHES")}
    # The part makes an engine of its own, with nothing in it but the manifest that is tested.
    environment["COMPAT_PATCHES"] = "off"
    with tempfile.TemporaryDirectory(prefix="compat-patches-") as folder:
        answer = os.path.join(folder, "answer.json")
        job = {"path": sys.path, "module": module, "arguments": arguments, "answer": answer}
        try:
            ended = subprocess.run(
                [sys.executable, "-c", _START.format(__name__)],
                input=json.dumps(job),
                env=environment,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                timeout=TIMEOUT,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise SuiteError(f"did not end within {TIMEOUT} s; its output:\n{error.output or ''}") from None
        print(ended.stdout, end="")
        try:
            with open(answer, encoding="utf-8") as file:
                return json.load(file)
        except (OSError, ValueError):
            raise SuiteError(f"ended with {ended.returncode} and no answer; its output:\n{ended.stdout}") from None


def main(job: dict[str, Any]) -> None:
    """What the fresh interpreter does."""
    part = importlib.import_module(f"{__package__}.{job['module']}")
    answer = part.run(**job["arguments"])
    with open(job["answer"], "w", encoding="utf-8") as file:
        json.dump(answer, file)
