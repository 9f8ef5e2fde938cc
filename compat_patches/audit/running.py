"""Asking running code: the evidence of a patch, in a process of its own, by the interpreter of an environment.

For what the sources cannot tell, a probe above all. The environment needs nothing of ours installed.
"""

from __future__ import annotations

import json
import os
import subprocess
from typing import Any

from ..manifest import Patch
from ..verdict import Verdict
from .places import Release

_SECONDS = 300.0

# The folder that this package lies in may be a site-packages with another torch, so it does not go on the path: the
# package is loaded from its place, and modules of its own are found through it.
_PROGRAM = """
import importlib, importlib.util, json, os, sys
given = json.loads(sys.stdin.read())
stdout = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)
spec = importlib.util.spec_from_file_location("compat_patches", os.path.join(given["package"], "__init__.py"),
                                              submodule_search_locations=[given["package"]])
sys.modules["compat_patches"] = package = importlib.util.module_from_spec(spec)
spec.loader.exec_module(package)
from compat_patches.evidence import LiveFacts, decide
from compat_patches.manifest import Target
sys.path += given["path"]
answers = []
for question in given["questions"]:
    target = Target.parse(question["target"])
    try:
        importlib.import_module(target.module)
        verdict = decide(question["needed_if"], target, LiveFacts())
        answers.append([verdict.ok, verdict.reason])
    except Exception as error:
        answers.append([None, f"{type(error).__name__}: {error}"])
json.dump(answers, stdout)
stdout.close()
"""


def run_evidence(patch: Patch, release: Release) -> Verdict:
    """What the running torch of an environment says about a patch's evidence."""
    return run_all([patch], release)[0]


def run_all(patches: list[Patch], release: Release) -> list[Verdict]:
    """What the running torch of an environment says about the evidence of patches, in one process.

    Returns:
        A verdict for each; ``ok`` is None, with the reason, where it could not be asked.
    """
    if release.python is None:
        why = f"{release.where} cannot be run; name an environment that has torch {release.version}"
        return [Verdict(None, f"only running code can tell, and {why}")] * len(patches)
    questions = [{"target": str(patch.target), "needed_if": dict(patch.needed_if)} for patch in patches]
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    given: dict[str, Any] = {"package": package, "questions": questions, "path": [os.getcwd()]}
    try:
        done = subprocess.run(
            [release.python, "-c", _PROGRAM],
            input=json.dumps(given),
            capture_output=True,
            text=True,
            errors="replace",
            env={**os.environ, "COMPAT_PATCHES": "off"},
            timeout=_SECONDS,
        )
        answers = json.loads(done.stdout)
        return [Verdict(ok, str(reason)) for ok, reason in answers]
    except subprocess.TimeoutExpired:
        why = f"{release.python} gave no answer within {_SECONDS:g} seconds"
    except OSError as error:
        why = f"{release.python} cannot be started: {error.strerror or error}"
    except ValueError:
        last = (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1]
        why = f"{release.python} failed: {last}"
    return [Verdict(None, why)] * len(patches)
