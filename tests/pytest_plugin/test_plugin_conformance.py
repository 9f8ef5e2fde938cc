"""The conformance suite finds what is wrong with a manifest, says what it is, and passes what is right."""

from __future__ import annotations

import importlib.util
import re

import pytest
from inner_project import HEADER, Project, patch

FAULTS = """
import functools

import wrapt
import victim

# Undoing sets where it must delete: looking the method up, this writes it into the class that inherits it.
def writes_the_slot(original):
    victim.Derived.inherited = original

    @functools.wraps(original)
    def inherited(self):
        return original(self).upper()
    return inherited

# The second application adds a layer: this wraps what it made before.
made = []

def remembers(original):
    wrapped = made[-1] if made else original

    @functools.wraps(wrapped)
    def answer(*args, **kwargs):
        return wrapped(*args, **kwargs) + 10
    made.append(answer)
    return answer

def takes_blocking(original):
    def answer(x=0, blocking=False):
        return original(x)
    return answer

@wrapt.decorator
def _proxy(wrapped, instance, args, kwargs):
    return wrapped(*args, **kwargs) + 10

def proxies(original):
    return _proxy(original)
"""

# id: what is declared, the check that fails, and what it says.
PLANTED = {
    "undo-sets": (
        {"target": "victim:Derived.inherited", "using": "faults:writes_the_slot"},
        "undoes_exactly",
        "victim:Derived had no entry 'inherited' of its own, and now it has function Base.inherited .*must be deleted",
    ),
    "window-too-wide": (
        {"requires": ["pytest>=1"], "needed_if": {"lacks_parameter": "x"}},
        "evidence",
        "the window is too wide, or the evidence wrong: the window takes in this process .pytest is .*, wanted "
        "pytest>=1.*, but the defect is not there: victim:answer takes .x., x included",
    ),
    "adds-a-layer": (
        {"using": "faults:remembers"},
        "is_idempotent",
        "applying again adds a layer: victim:answer goes through 3 functions after the third application, 1 after the "
        "first",
    ),
    "evidence-wrong": (
        {"using": "faults:takes_blocking", "needed_if": {"lacks_parameter": "blockin"}},
        "evidence",
        "the evidence is wrong: lacks_parameter = 'blockin' holds as well with the patch applied, .* victim:answer now "
        "takes .x=0, blocking=False.",
    ),
    "name-missing": (
        {"target": "victim:anwser"},
        "applies",
        "failed: target missing: victim has no 'anwser'",
    ),
    "proxy": (
        {"using": "faults:proxies"},
        "is_traceable",
        "victim:answer is a .*FunctionWrapper, expected a plain Python function: torch.compile runs straight past",
    ),
    "one-object": (
        {"action": "set", "using": "victim:other"},
        "is_traceable",
        "victim:answer and victim:other hold one and the same object",
    ),
}


@pytest.fixture
def planted(project: Project) -> Project:
    """A manifest with seven faults, and one patch without."""
    project.makepyfile(faults=FAULTS)
    project.path.joinpath("faults.toml").write_text(
        HEADER + patch("faultless") + "".join(patch(name, **fields) for name, (fields, _, _) in PLANTED.items())
    )
    return project


def test_all_seven_planted_faults_are_found(planted: Project) -> None:
    result = planted.run_tests("--compat-patches-manifest=faults.toml", "-k", "not + and not all_orders", "-rf")
    text = result.stdout.str()
    failed = set(re.findall(r"FAILED faults.toml::(\S+)", text))
    assert {f"{name}::{check}" for name, (_, check, _) in PLANTED.items()} <= failed
    for _, _, message in PLANTED.values():
        assert re.search(message, text), message
    # A fault is reported where it is, and nothing is said against a patch without one.
    assert not [name for name in failed if name.startswith("faultless")]
    assert len(failed) == len(PLANTED)


def test_faults_are_found_by_two_workers_too(planted: Project) -> None:
    result = planted.run_tests("--compat-patches-manifest=faults.toml", "-n", "2", "-k", "not + and not all_orders")
    assert result.parseoutcomes()["failed"] == len(PLANTED)


def test_orders_find_what_undoing_leaves_behind(planted: Project) -> None:
    result = planted.run_tests("--compat-patches-manifest=faults.toml", "faults.toml::undo-sets::all_orders")
    result.assert_outcomes(failed=1)
    assert "import victim > apply undo-sets > undo undo-sets: victim:Derived.inherited holds" in result.stdout.str()


def test_a_manifest_without_faults_passes(project: Project) -> None:
    result = project.run_tests("--compat-patches-manifest=manifest.toml", "-v", "-rs")
    # Three patches with six checks each, and three pairs that share a slot.
    outcomes = result.parseoutcomes()
    assert sum(outcomes.values()) == 21 and "failed" not in outcomes and "errors" not in outcomes
    text = result.stdout.str()
    assert "manifest.toml::ten+hundred::all_orders PASSED" in text
    # What is out of its window is not applied, and that is said.
    assert re.search(r"manifest.toml::never::applies SKIPPED", text)
    assert re.search(r"pytest is .*, wanted pytest<1", text)
    assert re.search(r"compat_patches: 42 orders of 3 tests, .* imports", text)


def test_alone_it_runs_no_other_tests(project: Project) -> None:
    project.tests("def test_of_the_project():\n    pass\n")
    alone = project.run_tests("--compat-patches-manifest=manifest.toml", "-k", "evidence", "--collect-only", "-q")
    assert "test_of_the_project" not in alone.stdout.str()
    beside = project.run_tests("--compat-patches-manifest=manifest.toml", "test_it.py", "--collect-only", "-q")
    assert "test_of_the_project" in beside.stdout.str() and "manifest.toml::ten::evidence" in beside.stdout.str()


def test_a_broken_manifest_is_an_error_of_collection(project: Project) -> None:
    project.path.joinpath("broken.toml").write_text('[manifest]\nname = "x"\nschema = 1\n[[patch]]\nid = "y"\n')
    result = project.run_tests("--compat-patches-manifest=broken.toml")
    result.assert_outcomes(errors=1)
    assert "patch 'y': key 'summary': missing" in result.stdout.str()


def test_a_window_that_has_closed_on_a_defect(project: Project) -> None:
    project.path.joinpath("narrow.toml").write_text(
        HEADER
        + patch("narrow", requires=["pytest<2"], needed_if={"lacks_parameter": "y"})
        + patch("covered", target="victim:other", requires=["pytest<2"], needed_if={"lacks_parameter": "y"})
        + patch("covering", target="victim:other", requires=["pytest>=2"], needed_if={"lacks_parameter": "y"})
        + patch("old", requires=["pytest>=1000"], needed_if={"lacks_parameter": "y"})
    )
    result = project.run_tests("--compat-patches-manifest=narrow.toml", "-k", "evidence", "-rf")
    failed = set(re.findall(r"FAILED narrow.toml::(\S+)", result.stdout.str()))
    # remedies:add_ten takes any argument, so that it does provide y.
    assert failed == {"narrow::evidence"}
    assert "the window is too narrow: it has closed" in result.stdout.str()


def test_an_exception_that_does_not_exist_is_no_evidence(project: Project) -> None:
    project.path.joinpath("typo.toml").write_text(HEADER + patch("typo", needed_if={"does_not_catch": "ValuError"}))
    result = project.run_tests("--compat-patches-manifest=typo.toml", "-k", "evidence")
    result.assert_outcomes(failed=1, deselected=5)
    assert "there is no exception 'ValuError'" in result.stdout.str()


def test_an_implementation_that_ends_the_process_fails_its_checks_alone(project: Project) -> None:
    project.makepyfile(deadly="import os\n\ndef dies(original):\n    os._exit(7)\n")
    project.path.joinpath("deadly.toml").write_text(HEADER + patch("deadly", using="deadly:dies") + patch("sound"))
    result = project.run_tests("--compat-patches-manifest=deadly.toml", "-k", "applies", "-rA")
    result.assert_outcomes(failed=1, passed=1, deselected=11)
    assert "a process of the suite ended with 7" in result.stdout.str()


TRACED = """
import torch

def add_one(x):
    return x + 1
"""


# Not imported here: pytester would take it out of sys.modules again, and torch cannot be imported twice.
@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed")
@pytest.mark.parametrize(
    ("using", "problem"),
    [("remedies:add_ten", None), ("faults:proxies", "torch.compile runs past the patch of traced:add_one")],
)
def test_patches_that_say_so_are_compiled(planted: Project, using: str, problem: str | None) -> None:
    planted.makepyfile(traced=TRACED)
    planted.path.joinpath("traced.toml").write_text(
        HEADER + patch("traced", target="traced:add_one", using=using, affects_compile=True)
    )
    result = planted.run_tests("--compat-patches-manifest=traced.toml", "-k", "survives_compile")
    if problem is None:
        result.assert_outcomes(passed=1, deselected=6)
    else:
        result.assert_outcomes(failed=1, deselected=6)
        assert problem in result.stdout.str()
