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
from compat_patches.audit import judging, places, running
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


@pytest.mark.parametrize("patch", [p for p in PATCHES if p.needed_if], ids=lambda patch: patch.id)
def test_static_and_running_evidence_agree(
    patch: manifest.Patch, release: places.Release, running_answers: dict[str, Any]
) -> None:
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

def survey(target):
    node = facts.definition(target)
    found[str(target)] = [facts.exists(target), facts.parameters(target), node and source.tree_hash(node)]

for module in sys.argv[1:]:
    if ":" in module:
        target = Target.parse(module)
        importlib.import_module(target.module)
        survey(target)
        continue
    importlib.import_module(module)
    for name, value in list(vars(sys.modules[module]).items()):
        # What a large module only imports is left out; looking it up would parse half of torch.
        if len(vars(sys.modules[module])) > 100 and getattr(value, "__module__", None) != module:
            continue
        names = [name]
        if isinstance(value, type) and value.__module__ == module:
            names += [f"{name}.{inner}" for inner in [*vars(value), "surely_not"]]
        for each in names:
            survey(Target(module, each))
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


def _survey(*names: str) -> dict[str, list[Any]]:
    """What the running torch says of the names in modules, and of single targets."""
    done = subprocess.run(
        [sys.executable, "-c", _SURVEY, *names],
        env={**os.environ, "COMPAT_PATCHES": "off", "PYTHONPATH": str(Path(manifest.__file__).parents[1])},
        capture_output=True,
        text=True,
        check=True,
    )
    found: dict[str, list[Any]] = json.loads(done.stdout)
    for answers in found.values():
        answers[1] = None if answers[1] is None else tuple(answers[1])
    return found


def _contradictions(facts: StaticFacts, survey: dict[str, list[Any]]) -> dict[str, Any]:
    wrong = {}
    for name, right in survey.items():
        answers = _answers(facts, Target.parse(name))
        if any(mine not in (None, its) for mine, its in zip(answers, right, strict=True)):
            wrong[name] = (answers, right)
    return wrong


def test_static_and_running_answers_about_all_targets_agree(release: places.Release) -> None:
    steps = [step for patch in PATCHES for step in judging.window_of(patch, release.version).steps]
    targets = {str(target) for step in steps for target in step.targets if step.action != "env"}
    assert len(targets) > 20
    assert _contradictions(release.facts, _survey(*sorted(targets))) == {}


def test_the_files_are_never_wrong_about_the_modules_that_are_patched(release: places.Release) -> None:
    survey = _survey(*[name for name in MODULES if _has(release, name)])
    assert len(survey) > 300
    assert _contradictions(release.facts, survey) == {}
    told = [name for name in survey if _answers(release.facts, Target.parse(name))[0] is not None]
    assert len(told) > 0.6 * len(survey)


def _has(release: places.Release, module: str) -> bool:
    return release.facts.look(Target(module, "surely_not")).missing != module


def _answers(facts: StaticFacts, target: Target) -> list[Any]:
    try:
        node = facts.definition(target)
        return [facts.exists(target), facts.parameters(target), node and source.tree_hash(node)]
    except UnreadableSource:
        return [None, None, None]
