"""Real Ray: a local cluster of two nodes.

Slow, and only where Ray is installed or ``TESTS_RAY`` names the ``site-packages`` of an environment that has it.
"""

from __future__ import annotations

import importlib.util
import json
import os
from pathlib import Path
from typing import Any

import pytest
from environments import Environment

from compat_patches.integrations import ray as patches
from compat_patches.launch import child_environment

ONCE = {"early": False, "state": "applied", "most": 1, "wrappers": 1}
FOLDER = os.environ.get("TESTS_RAY", "")
with_ray = pytest.mark.skipif(
    not FOLDER and importlib.util.find_spec("ray") is None,
    reason="Ray is not installed; TESTS_RAY may name the site-packages of an environment that has it",
)

CLUSTER = """
import json, os, sys
import ray
from ray.cluster_utils import Cluster
from compat_patches.integrations import ray as patches

def start(second_node={}, **keywords):
    cluster = Cluster(initialize_head=True, head_node_args={
        "num_cpus": 1, "include_dashboard": False, "resources": {"first": 1}
    })
    cluster.add_node(num_cpus=1, resources={"second": 1}, env_vars=second_node)
    cluster.wait_for_nodes()
    ray.init(address=cluster.address, namespace="tests", log_to_driver=False, **keywords)
    return cluster

@ray.remote
class Engine:
    def look(self):
        import looking
        return looking.look()

def stop(cluster):
    ray.shutdown()
    cluster.shutdown()
"""


@pytest.fixture(params=["installed", "editable"])
def with_ray_installed(request: pytest.FixtureRequest) -> Environment:
    """An environment that finds Ray."""
    environment: Environment = request.getfixturevalue(request.param)
    if FOLDER:
        (environment.site_packages / "zz_ray.pth").write_text(FOLDER + "\n")
    return environment


def run(environment: Environment, code: str, **variables: str) -> Any:
    variables = {"RAY_USAGE_STATS_ENABLED": "0", "PYTHONPATH": str(Path(__file__).parent), **variables}
    done = environment.run("-c", CLUSTER + code, timeout=570, **variables)
    return json.loads(done.stdout.splitlines()[-1])


@with_ray
@pytest.mark.slow
def test_workers_have_the_patches_once_without_torch_being_imported_for_them(with_ray_installed: Environment) -> None:
    code = """
cluster = start(runtime_env=patches.runtime_env())
first, second = Engine.options(num_cpus=0).remote(), Engine.options(num_cpus=0, resources={"second": 1}).remote()
print(json.dumps(ray.get([first.look.remote(), second.look.remote()])))
stop(cluster)
"""
    # By Ray's setup hook alone: nothing else says on.
    assert run(with_ray_installed, code) == [ONCE, ONCE]


@with_ray
@pytest.mark.slow
def test_the_environment_variable_alone_reaches_workers(with_ray_installed: Environment) -> None:
    code = """
cluster = start()
print(json.dumps(ray.get(Engine.options(num_cpus=0).remote().look.remote())))
stop(cluster)
"""
    assert run(with_ray_installed, code, COMPAT_PATCHES="on") == ONCE


@with_ray
@pytest.mark.slow
def test_the_fleet_report_names_the_node_that_differs(with_ray_installed: Environment) -> None:
    code = """
cluster = start({"COMPAT_PATCHES_DISABLE": "cpu-memory-info"}, runtime_env=patches.runtime_env())
odd = next(node["NodeID"] for node in ray.nodes() if "second" in node["Resources"])
engine = Engine.options(name="engine", num_cpus=0, resources={"first": 1}).remote()
ray.get(engine.look.remote())
report = patches.fleet_report()
try:
    patches.assert_same()
    error = None
except Exception as raised:
    error = f"{type(raised).__name__}: {raised}"
print(json.dumps([odd, [member.as_document() for member in report], error]))
stop(cluster)
"""
    odd, report, error = run(with_ray_installed, code)
    print(error)
    titles = [member["title"] for member in report]
    assert [title.partition(" ")[0] for title in titles] == ["the", "node", "node", "actor"]
    by_title = {member["title"]: member for member in report}
    (odd_title,) = [title for title in titles if title.startswith(f"node {odd[:8]} ")]
    assert {title for title, member in by_title.items() if member["digest"] != by_title["the driver"]["digest"]} == {
        odd_title
    }
    assert by_title["actor engine"]["states"]["compat-patches/xpu-event-blocking"][0] == "applied"
    assert len({member["pid"] for member in report}) == 4
    head, line = error.splitlines()
    assert head == "DifferentPatchesError: not all of the 4 processes have the same patches in effect:"
    assert line.startswith(f"  {odd_title} (")
    assert "compat-patches/cpu-memory-info is off, and on at the driver" in line
    assert "(skipped: disabled by COMPAT_PATCHES_DISABLE)" in line


@with_ray
@pytest.mark.slow
def test_an_actor_that_is_busy_is_reported_in_time(with_ray_installed: Environment) -> None:
    code = """
import time
cluster = start(runtime_env=patches.runtime_env())

@ray.remote
class Busy:
    def work(self):
        time.sleep(120)

busy = Busy.options(num_cpus=0).remote()
busy.work.remote()
print(json.dumps([[m.title, m.error] for m in patches.fleet_report({"busy": busy}, timeout=30) if m.error]))
stop(cluster)
"""
    assert run(with_ray_installed, code) == [["actor busy", "did not answer in time"]]


# --- the runtime environment ---------------------------------------------------------------------------------------


@pytest.fixture
def nothing_said(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("COMPAT_PATCHES")]:
        monkeypatch.delenv(name)


def test_the_runtime_environment(nothing_said: None) -> None:
    assert patches.runtime_env() == {
        "env_vars": {"COMPAT_PATCHES": "on"},
        "worker_process_setup_hook": "compat_patches.integrations.ray.activate_worker",
    }


def test_what_is_chosen_here_reaches_the_workers(nothing_said: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COMPAT_PATCHES_DISABLE", "xpu")
    variables = patches.runtime_env(only=["inductor"], disable=["cpu"], strict=True)["env_vars"]
    assert variables == {
        "COMPAT_PATCHES": "on",
        "COMPAT_PATCHES_ONLY": "inductor",
        "COMPAT_PATCHES_DISABLE": "xpu,cpu",
        "COMPAT_PATCHES_STRICT": "1",
    }


def test_off_here_is_off_there(nothing_said: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COMPAT_PATCHES", "off")
    assert patches.runtime_env()["env_vars"] == {"COMPAT_PATCHES": "off"}


def test_paths_of_this_machine_do_not(nothing_said: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("COMPAT_PATCHES_MANIFEST", str(tmp_path / "m.toml"))
    assert not {"PYTHONPATH", "COMPAT_PATCHES_MANIFEST"} & set(patches.runtime_env()["env_vars"])
    assert "PYTHONPATH" in child_environment({})


def test_a_runtime_environment_is_added_to_and_left_alone(nothing_said: None) -> None:
    base = {"pip": ["some"], "env_vars": {"MINE": "1", "COMPAT_PATCHES": "off"}}
    made = patches.runtime_env(base)
    assert made["pip"] == ["some"]
    assert made["env_vars"] == {"MINE": "1", "COMPAT_PATCHES": "off"}
    assert base == {"pip": ["some"], "env_vars": {"MINE": "1", "COMPAT_PATCHES": "off"}}
    assert patches.runtime_env(made) == made


def test_a_setup_hook_of_the_users_own_is_refused() -> None:
    with pytest.raises(ValueError, match=r"call compat_patches\.integrations\.ray\.activate_worker\(\) there"):
        patches.runtime_env({"worker_process_setup_hook": "mine.hook"})
