"""The built-in manifest as a whole, on the torch that is installed."""

from __future__ import annotations

import importlib
import json

import pytest
from support import entries, printed

import compat_patches
from compat_patches import env_override, manifest
from compat_patches.discovery import builtin_manifest
from compat_patches.manifest import Patch

PATCHES = manifest.load(builtin_manifest()).patches


def test_activation_waits_for_the_packages_that_the_manifest_is_about() -> None:
    assert {root for patch in PATCHES for root in patch.roots} == set(env_override.ROOTS)


def test_every_implementation_can_be_imported_without_torch() -> None:
    steps = [step for patch in PATCHES for step in patch.steps if step.action != "alias"]
    modules = sorted({str(step.using).partition(":")[0] for step in steps})
    program = (
        f"import importlib, sys\nfor name in {modules}: importlib.import_module(name)\nprint('torch' in sys.modules)"
    )
    assert printed("-c", program, COMPAT_PATCHES="off") == "False"


@pytest.mark.parametrize("patch", PATCHES, ids=lambda patch: patch.id)
def test_undoing_leaves_every_owner_as_it_was(patch: Patch) -> None:
    torch = pytest.importorskip("torch")
    compat_patches.revert(*(other.id for other in PATCHES))
    has_memory_info = hasattr(torch.accelerator, "get_memory_info")
    owners = [owner for step in patch.steps for target in step.targets if (owner := _owner(target)) is not None]
    before = [entries(owner) for owner in owners]
    assert owners
    (status,) = compat_patches.apply(patch.id, force=True)
    if patch.id == ("cpu-memory-info-backport" if has_memory_info else "cpu-memory-info"):
        # Forced outside of its window: there is nothing to inject, or nothing to wrap, and nothing is changed.
        assert status.state in ("skipped", "failed")
        assert [entries(owner) for owner in owners] == before
    else:
        assert status.state == "applied", status.reason
        assert [entries(owner) for owner in owners] != before
    compat_patches.revert(patch.id)
    assert [entries(owner) for owner in owners] == before


def _owner(target: manifest.Target):  # a module or a class
    try:
        owner = importlib.import_module(target.module)
    except ModuleNotFoundError:  # torch.accelerator.memory before 2.9
        return None
    for part in target.qualname.split(".")[:-1]:
        owner = getattr(owner, part)
    return owner


def test_status_names_every_patch_with_its_state_and_reason() -> None:
    torch = pytest.importorskip("torch")
    document = json.loads(printed("-m", "compat_patches", "status", "--json", "--import", "torch._inductor.codecache"))
    assert document["schema"] == 1
    assert document["torch"] == torch.__version__
    assert {record["id"] for record in document["patches"]} == {patch.id for patch in PATCHES}
    release = tuple(int(part) for part in torch.__version__.split("+")[0].split(".")[:2])
    expected = {
        "xpu-event-blocking": release < (2, 15),
        "xpu-event-external": release >= (2, 15),
        "cpu-memory-info": release >= (2, 10),
        "cpu-memory-info-backport": release < (2, 10),
        "fxgraph-cache-value-error": release == (2, 10),
        "fxgraph-cache-pickling-errors": (2, 8) <= release < (2, 10),
        "fxgraph-cache-pybind11-error": (2, 8) <= release < (2, 11),
    }
    states = {record["id"]: record["state"] == "applied" for record in document["patches"] if record["id"] in expected}
    assert states == expected
    assert all(record["reason"] for record in document["patches"])
    assert all(
        f"torch is {torch.__version__}" in record["reason"]
        for record in document["patches"]
        if record["id"] in expected
    )
