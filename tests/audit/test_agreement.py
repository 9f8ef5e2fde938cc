"""The static and the running answer are one: held against each other on the torch that the tests run with.

The running answers come from a process of their own in which no patch is applied.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from compat_patches import evidence, manifest, source
from compat_patches.audit import places, running
from compat_patches.audit.facts import StaticFacts
from compat_patches.audit.trees import UnreadableSource
from compat_patches.discovery import builtin_manifest
from compat_patches.manifest import Target

torch_spec = pytest.importorskip("importlib.util").find_spec("torch")
pytestmark = pytest.mark.skipif(torch_spec is None, reason="needs an installed torch")

PATCHES = manifest.load(builtin_manifest()).patches


@pytest.fixture(scope="module")
def release() -> places.Release:
    assert torch_spec is not None and torch_spec.origin is not None
    found = places.open_release(str(Path(torch_spec.origin).parents[1]))
    found.python = sys.executable
    return found


@pytest.fixture(scope="module")
def running_answers(release: places.Release) -> dict[str, Any]:
    return {patch.id: answer for patch, answer in zip(PATCHES, running.run_all(list(PATCHES), release), strict=True)}


@pytest.mark.parametrize("patch", PATCHES, ids=lambda patch: patch.id)
def test_static_and_running_evidence_agree(
    patch: manifest.Patch, release: places.Release, running_answers: dict[str, Any]
) -> None:
    assert patch.needed_if, "a built-in patch says when it is needed"
    static = evidence.decide(patch.needed_if, patch.target, release.facts)
    # The reasons have the found parameters, exceptions and hashes in them; so much agrees, too.
    assert (static.ok, static.reason) == (running_answers[patch.id].ok, running_answers[patch.id].reason)


_SURVEY = """
import importlib, json, sys, warnings
warnings.simplefilter("ignore")
from compat_patches.evidence import LiveFacts
from compat_patches.manifest import Target
from compat_patches import source
facts, found = LiveFacts(), {}
for module in sys.argv[1:]:
    importlib.import_module(module)
    for name, value in list(vars(sys.modules[module]).items()):
        # What a large module only imports is left out; looking it up would parse half of torch.
        if len(vars(sys.modules[module])) > 100 and getattr(value, "__module__", None) != module:
            continue
        names = [name]
        if isinstance(value, type) and value.__module__ == module:
            names += [f"{name}.{inner}" for inner in [*vars(value), "surely_not"]]
        for each in names:
            target = Target(module, each)
            node = facts.definition(target)
            found[str(target)] = [facts.exists(target), facts.parameters(target), node and source.tree_hash(node)]
    found[f"{module}:surely_not"] = [False, None, None]
print(json.dumps(found))
"""
MODULES = (
    "torch.xpu.streams",
    "torch.accelerator",
    "torch.accelerator.memory",
    "torch.cuda.streams",
    "torch._inductor.codecache",
)


def test_the_files_are_never_wrong_about_the_modules_that_are_patched(release: places.Release) -> None:
    modules = [name for name in MODULES if _has(release, name)]
    root = Path(manifest.__file__).parents[1]
    done = subprocess.run(
        [sys.executable, "-c", _SURVEY, *modules],
        env={**os.environ, "COMPAT_PATCHES": "off", "PYTHONPATH": str(root)},
        capture_output=True,
        text=True,
        check=True,
    )
    survey = json.loads(done.stdout)
    assert len(survey) > 300
    wrong, told = {}, 0
    for name, right in survey.items():
        answers = _answers(release.facts, Target.parse(name))
        if right[1] is not None:
            right[1] = tuple(right[1])
        if any(mine not in (None, its) for mine, its in zip(answers, right, strict=True)):
            wrong[name] = (answers, right)
        told += answers[0] is not None
    assert not wrong
    assert told > 0.6 * len(survey)


def _has(release: places.Release, module: str) -> bool:
    return release.facts.look(Target(module, "surely_not")).missing != module


def _answers(facts: StaticFacts, target: Target) -> list[Any]:
    try:
        node = facts.definition(target)
        return [facts.exists(target), facts.parameters(target), node and source.tree_hash(node)]
    except UnreadableSource:
        return [None, None, None]
