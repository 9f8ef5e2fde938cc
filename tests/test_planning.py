"""Planning: which steps of a patch are taken, and what keeps a patch away."""

from __future__ import annotations

import pytest
from standins import declaration

from compat_patches import manifest, planning
from compat_patches.manifest import Patch
from compat_patches.predicates import Circumstances

STEP = {"target": "torch.somewhere:f", "action": "noop"}


def patch(*requirements: str, **fields: object) -> Patch:
    steps = [{**STEP, "requires": [text]} for text in requirements]
    return manifest.parse(declaration("test", [{"id": "p", "step": steps, **fields}]).encode(), "a test").patches[0]


def admitted(declared: Patch, torch: str, force: bool = False) -> list[str]:
    admission = planning.admit(declared, Circumstances(torch, "cpu"), force=force)
    return [step.requires[0] for step in admission.steps]


def test_the_steps_for_this_release_are_taken() -> None:
    declared = patch("torch>=2.9", "torch<2.9")
    assert admitted(declared, "2.10.0") == ["torch>=2.9"]
    assert admitted(declared, "2.8.0") == ["torch<2.9"]


def test_a_patch_without_a_step_for_this_release_is_skipped_with_the_versions() -> None:
    with pytest.raises(planning.Skip, match=r"torch is 2\.8\.0, wanted torch>=2\.9"):
        admitted(patch("torch>=2.9"), "2.8.0")


def test_force_takes_the_steps_for_this_release_and_all_where_there_is_none() -> None:
    declared = patch("torch>=2.9", "torch<2.7")
    assert admitted(declared, "2.10.0", force=True) == ["torch>=2.9"]
    assert admitted(declared, "2.8.0", force=True) == ["torch>=2.9", "torch<2.7"]


def test_a_step_on_a_pre_release_needs_evidence_as_a_patch_does() -> None:
    with pytest.raises(planning.Skip, match="unproven on a pre-release"):
        admitted(patch("torch>=2.9"), "2.10.0a0+git")
    proven = patch("torch>=2.9", needed_if={"lacks_attribute": "g"})
    assert admitted(proven, "2.10.0a0+git") == ["torch>=2.9"]
    assert planning.admit(proven, Circumstances("2.10.0a0+git", "cpu"), force=False).verdict.needs_evidence
