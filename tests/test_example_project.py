"""The example of a project that ships a manifest of its own: built, installed, applied to this torch, and undone."""

from __future__ import annotations

import importlib.metadata
import json
import os
import shutil
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Callable
from pathlib import Path

import pytest
from packaging.version import Version
from support import ROOT, clean_environment

from compat_patches import manifest
from compat_patches.predicates import Circumstances

EXAMPLE = ROOT / "examples" / "acme-compat"
TORCH = Circumstances.current()

# What each patch is to say, by release; "cuda" and "cpu" where it depends on the build.
APPLIED = ("applied", "")
WINDOW = ("skipped", "wanted torch")
EXPECTED: dict[str, dict[str, tuple[str, str]]] = {
    "2.10.0": {
        "inductor-compile-threads": APPLIED,
        "no-loop-reordering": ("skipped", "wanted torch>=2.11,<2.12"),
        "cache-dir-of-unknown-user": ("applied", "default_cache_dir catches nothing, not KeyError"),
        "foreach-loop-reordering": ("applied", "is the one with the defect"),
        "standalone-compile-fake-mode": ("applied", "not fake_mode"),
        "fxgraph-cache-value-error": ("skipped", "conflicts with compat-patches/fxgraph-cache-value-error"),
        "get-raw-stream": WINDOW,
        "reset-memory-stats": ("applied", "does not ask _accelerator_isAllocatorInitialized"),
        "empty-host-cache": ("applied", "there is no torch.accelerator:empty_host_cache"),
    },
    "2.11.0": {
        "inductor-compile-threads": APPLIED,
        "no-loop-reordering": APPLIED,
        "cache-dir-of-unknown-user": ("applied", "default_cache_dir catches nothing, not KeyError"),
        "foreach-loop-reordering": ("applied", "is the one with the defect"),
        "standalone-compile-fake-mode": ("applied", "not fake_mode"),
        "fxgraph-cache-value-error": WINDOW,
        "get-raw-stream": WINDOW,
        "reset-memory-stats": ("applied", "does not ask _accelerator_isAllocatorInitialized"),
        "empty-host-cache": ("applied", "there is no torch.accelerator:empty_host_cache"),
    },
    "2.13.0": {
        "inductor-compile-threads": APPLIED,
        "no-loop-reordering": WINDOW,
        "cache-dir-of-unknown-user": WINDOW,
        "foreach-loop-reordering": WINDOW,
        "standalone-compile-fake-mode": ("skipped", "not needed: "),
        "fxgraph-cache-value-error": WINDOW,
        "get-raw-stream": WINDOW,
        "reset-memory-stats": ("skipped", "asks _accelerator_isAllocatorInitialized"),
        "empty-host-cache": WINDOW,
    },
}
RELEASE = (TORCH.torch or "none").partition("+")[0]
needs_torch = pytest.mark.skipif(RELEASE not in EXPECTED, reason=f"says nothing about torch {RELEASE}")

LOOK = """
import getpass, json, os, sys
import compat_patches
import torch
import torch._inductor.codecache, torch._inductor.scheduler
from torch._inductor.runtime import cache_dir_utils
from importlib import import_module

compiling = import_module("torch._inductor.standalone_compile")
SLOTS = [
    (cache_dir_utils, "default_cache_dir"),
    (torch._inductor.scheduler.FusedSchedulerNode, "reorder_loops_by_dep_pair"),
    (compiling, "standalone_compile"), (torch._inductor.codecache.FxGraphCachePickler, "dumps"),
    (torch.accelerator, "reset_peak_memory_stats"), (torch.accelerator.memory, "reset_peak_memory_stats"),
    (torch.accelerator, "empty_host_cache"), (torch.accelerator.memory, "empty_host_cache"),
]
VARIABLES = [
    "TORCHINDUCTOR_COMPILE_THREADS", "PYTORCH_NVML_BASED_CUDA_CHECK", "TORCHINDUCTOR_LOOP_ORDERING_AFTER_FUSION"
]

def unknown_user():
    raise KeyError("getpwuid(): uid not found: 12345")

def outcome(function, *arguments):
    try:
        return repr(function(*arguments))
    except Exception as error:
        return type(error).__name__

def look():
    known, getpass.getuser = getpass.getuser, unknown_user
    try:
        # Inductor copied it by value while it was patched.
        folders = [outcome(module.default_cache_dir) for module in (cache_dir_utils, torch._inductor.codecache)]
    finally:
        getpass.getuser = known
    return {
        "ours": [name for owner, name in SLOTS if "acme_compat" in getattr(
            getattr(vars(owner).get(name), "__code__", None), "co_filename", "")],
        "exported": "empty_host_cache" in torch.accelerator.__all__,
        "variables": {name: os.environ.get(name) for name in VARIABLES},
        "folders": folders,
        "reset": outcome(torch.accelerator.reset_peak_memory_stats),
        "host": outcome(getattr(torch.accelerator, "empty_host_cache", None) or (lambda: None)),
    }

manifests = sorted({s.manifest for s in compat_patches.status()})
applied = {s.id.removeprefix("acme-compat/"): (s.state, s.reason) for s in compat_patches.status("acme")}
with_patches = look()
states = {s.state for s in compat_patches.revert("acme")}
print(json.dumps([manifests, applied, with_patches, sorted(states), look()]))
"""


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., str]:
    """A Python of a fresh environment with the example installed from its wheel; torch is that of the tests."""
    folder = tmp_path_factory.mktemp("example")
    # Building writes into the folder.
    source = shutil.copytree(EXAMPLE, folder / "source")
    environment = folder / "environment"
    venv.create(environment, with_pip=False)
    wheels = folder / "wheels"
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    # What the project is built with; where the tests' own is older or not there, pip fetches it.
    offline = ["--no-index", "--no-build-isolation"] if _has_setuptools("77") else []
    options = ["--no-deps", *offline]
    _run([*pip, "wheel", *options, "--wheel-dir", str(wheels), str(source)])
    (wheel,) = wheels.glob("acme_compat-1.0-*.whl")
    _run([*pip, "--python", str(environment / "bin" / "python"), "install", "--no-index", "--no-deps", str(wheel)])
    site = Path(sysconfig.get_path("purelib", vars={"base": str(environment), "platbase": str(environment)}))
    # A folder that a .pth file names is searched, but its own .pth files, as of an editable installation, are not read.
    (site / "torch_of_the_tests.pth").write_text(sysconfig.get_path("purelib") + "\n")

    def run(code: str, **variables: str) -> str:
        return _run([str(environment / "bin" / "python"), "-c", code], **variables)

    return run


def _has_setuptools(at_least: str) -> bool:
    return any(Version(one.version) >= Version(at_least) for one in importlib.metadata.distributions(name="setuptools"))


def _run(command: list[str], **variables: str) -> str:
    done = subprocess.run(
        command, env=clean_environment(**variables), capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr + done.stdout
    return done.stdout


def test_the_manifest_declares_ten_patches_and_the_readme_lists_them():
    declared = manifest.load(EXAMPLE / "acme_compat" / "patches.toml").patches
    assert len(declared) == 10
    table = (EXAMPLE / "README.md").read_text(encoding="utf-8")
    assert all(f"| `{patch.id}` |" in table for patch in declared)
    assert all(link.startswith("https://github.com/") for patch in declared for link in patch.upstream)


def test_the_manifest_is_found_where_it_is_installed_without_importing_the_project(python):
    code = """
import sys
from compat_patches import discovery
from compat_patches.settings import Settings
print([one.name for one in discovery.manifests(Settings())], "acme_compat" in sys.modules)
"""
    assert python(code, COMPAT_PATCHES="off").strip() == "['compat-patches', 'acme-compat'] False"


@needs_torch
def test_the_patches_are_applied_as_this_release_needs_them_and_undone(python, tmp_path):
    manifests, states, with_patches, undone, without = json.loads(
        python(LOOK, TORCHINDUCTOR_CACHE_DIR=str(tmp_path), CUDA_VISIBLE_DEVICES="").splitlines()[-1]
    )
    assert manifests == ["acme-compat", "compat-patches"]
    cuda = TORCH.build == "cuda"
    expected = {**EXPECTED[RELEASE], "nvml-cuda-check": APPLIED if cuda else ("skipped", "built for cpu")}
    assert {name: state for name, (state, _) in states.items()} == {
        name: state for name, (state, _) in expected.items()
    }
    for name, (_, reason) in expected.items():
        assert reason in states[name][1], name
        assert states[name][1], name
    assert with_patches["variables"]["TORCHINDUCTOR_COMPILE_THREADS"] == "1"
    assert set(without["variables"].values()) == {None}
    assert (without["ours"], set(undone)) == ([], {"reverted", "skipped"})
    if RELEASE == "2.13.0":
        assert with_patches["ours"] == []
        return
    assert with_patches["ours"] == [
        "default_cache_dir",
        "reorder_loops_by_dep_pair",
        "standalone_compile",
        *["reset_peak_memory_stats"] * 2,
        *["empty_host_cache"] * 2,
    ]
    assert (with_patches["exported"], without["exported"]) == (True, False)
    assert all(f"torchinductor_uid_{os.getuid()}" in folder for folder in with_patches["folders"])
    assert without["folders"] == ["KeyError", "KeyError"]
    assert (with_patches["reset"], with_patches["host"]) == ("None", "None")


@needs_torch
def test_a_user_who_asked_for_compile_threads_keeps_them(python):
    code = """
import os, compat_patches, torch
status, = compat_patches.status("inductor-compile-threads")
print(os.environ["TORCHINDUCTOR_COMPILE_THREADS"], status.state, status.reason)
"""
    told = python(code, TORCHINDUCTOR_COMPILE_THREADS="4").strip()
    assert told == "4 skipped not needed: TORCHINDUCTOR_COMPILE_THREADS is set already, to '4'"
