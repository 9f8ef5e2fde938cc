"""The sitecustomize for ``PYTHONPATH``: it activates, and the user's own runs as if ours were not there."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import zipfile
from pathlib import Path

import pytest
from environments import CHECKOUT, Environment, clean_environment

FOLDER = CHECKOUT / "compat_patches" / "_sitecustomize"
CODE = """
import json, sys
own = sys.modules.get("sitecustomize")
print(json.dumps({
    "active": any("compat_patches" in type(finder).__module__ for finder in sys.meta_path),
    "own": getattr(own, "__file__", None),
    "runs": getattr(sys, "own_runs", 0),
    "on the path": [entry for entry in sys.path if entry.endswith("_sitecustomize")],
}))
"""
OWN = "import sys; sys.own_runs = getattr(sys, 'own_runs', 0) + 1\n"


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """A folder with a sitecustomize of the user's own."""
    folder = tmp_path / "own"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(OWN)
    return folder


def path_of(*folders: Path) -> str:
    return os.pathsep.join(map(str, folders))


def test_it_activates_where_the_environment_does_not_say_off(environment: Environment) -> None:
    assert environment.ask(CODE, PYTHONPATH=path_of(FOLDER))["active"] is True
    assert environment.ask(CODE, PYTHONPATH=path_of(FOLDER), COMPAT_PATCHES="off")["active"] is False


def test_the_users_own_runs_once(environment: Environment, own: Path) -> None:
    found = environment.ask(CODE, PYTHONPATH=path_of(FOLDER, own))
    assert found == {"active": True, "own": str(own / "sitecustomize.py"), "runs": 1, "on the path": []}


def test_the_users_own_runs_once_beside_the_startup_file(environment: Environment, own: Path) -> None:
    found = environment.ask(CODE, PYTHONPATH=path_of(FOLDER, own), COMPAT_PATCHES="on")
    assert found == {"active": True, "own": str(own / "sitecustomize.py"), "runs": 1, "on the path": []}


def test_the_users_own_runs_once_where_it_is_switched_off(environment: Environment, own: Path) -> None:
    found = environment.ask(CODE, PYTHONPATH=path_of(FOLDER, own), COMPAT_PATCHES="off")
    assert found == {"active": False, "own": str(own / "sitecustomize.py"), "runs": 1, "on the path": []}


def test_the_users_own_in_site_packages_is_found(disposable: Environment) -> None:
    (disposable.site_packages / "sitecustomize.py").write_text(OWN)
    found = disposable.ask(CODE, PYTHONPATH=path_of(FOLDER))
    assert (found["active"], found["runs"]) == (True, 1)


def test_the_users_own_may_be_a_package(installed: Environment, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize").mkdir()
    (tmp_path / "sitecustomize" / "__init__.py").write_text(OWN)
    found = installed.ask(CODE, PYTHONPATH=path_of(FOLDER, tmp_path))
    assert (found["active"], found["runs"]) == (True, 1)


def test_where_there_is_none_importing_it_fails_as_it_would(installed: Environment) -> None:
    code = """
import json
try:
    import sitecustomize
except ModuleNotFoundError as error:
    print(json.dumps([error.name, str(error)]))
"""
    assert installed.ask(code) == installed.ask(code, PYTHONPATH=path_of(FOLDER))


@pytest.mark.parametrize("fault", ["raise ValueError('own fault')", "import no_such_module", "1 +"])
def test_one_that_raises_is_reported_as_it_would_be(installed: Environment, own: Path, fault: str) -> None:
    (own / "sitecustomize.py").write_text(f"{OWN}{fault}\n")
    without = installed.run("-c", CODE, PYTHONPATH=path_of(own))
    with_ours = installed.run("-c", CODE, PYTHONPATH=path_of(FOLDER, own))
    assert without.stderr.startswith("Error in sitecustomize")
    assert with_ours.stderr == without.stderr
    before, after = json.loads(without.stdout), json.loads(with_ours.stdout)
    assert after == {**before, "active": True}


def test_one_that_exits_ends_the_interpreter_as_it_would(installed: Environment, own: Path) -> None:
    (own / "sitecustomize.py").write_text("raise SystemExit(7)\n")
    without, with_ours = (
        installed.run("-c", CODE, check=False, PYTHONPATH=path) for path in (path_of(own), path_of(FOLDER, own))
    )
    assert without.returncode != 0
    assert (with_ours.returncode, with_ours.stdout) == (without.returncode, without.stdout)


def test_one_that_imports_torch_gets_it_patched(environment: Environment, own: Path) -> None:
    (own / "sitecustomize.py").write_text(f"{OWN}import torch\n")
    code = """
import json, sys, compat_patches
states = {s.id: s.state for s in compat_patches.status()}
print(json.dumps([sys.own_runs, states["xpu-event-blocking"]]))
"""
    done = environment.run("-c", code, PYTHONPATH=path_of(FOLDER, own))
    assert json.loads(done.stdout) == [1, "applied"]


def test_one_that_imports_compat_patches_itself(installed: Environment, own: Path) -> None:
    (own / "sitecustomize.py").write_text(f"{OWN}import compat_patches\n")
    assert installed.ask(CODE, PYTHONPATH=path_of(own)) == installed.ask(CODE, PYTHONPATH=path_of(FOLDER, own))


def test_one_that_itself_runs_the_next(installed: Environment, own: Path, tmp_path: Path) -> None:
    """As other tools chain theirs: their folder off the path, their module out of ``sys.modules``."""
    chaining = tmp_path / "chaining"
    chaining.mkdir()
    (chaining / "sitecustomize.py").write_text(
        "import os, sys\n"
        "here = os.path.dirname(__file__)\n"
        "sys.path.remove(here)\n"
        "this = sys.modules.pop('sitecustomize')\n"
        "import sitecustomize\n"
        "sys.path.insert(0, here)\n"
    )
    for path in (path_of(FOLDER, chaining, own), path_of(chaining, FOLDER, own)):
        found = installed.ask(CODE, PYTHONPATH=path)
        assert (found["active"], found["runs"]) == (True, 1)


def test_python_of_an_environment_without_it_is_left_alone(own: Path) -> None:
    """Also a Python so old that it cannot read our modules."""
    pythons = [shutil.which(name) for name in ("python2.7", "python3.6", "python3.9", "/usr/bin/python3")]
    found = [python for python in pythons if python and subprocess.run([python, "-c", ""]).returncode == 0]
    if not found:
        pytest.skip("no Python of another environment here")
    for python in found:
        without = subprocess.run(
            [python, "-c", CODE], capture_output=True, text=True, env=clean_environment(PYTHONPATH=path_of(own))
        )
        environment = clean_environment(
            PYTHONPATH=path_of(FOLDER, own), COMPAT_PATCHES="on", COMPAT_PATCHES_PYTHON="3.11:/another"
        )
        with_ours = subprocess.run([python, "-c", CODE], capture_output=True, text=True, env=environment)
        assert (with_ours.stdout, with_ours.stderr) == (without.stdout, without.stderr), python


def test_a_package_in_a_zip_file_is_found_by_the_same_python_alone(bare: Environment, tmp_path: Path) -> None:
    archive = shutil.make_archive(str(tmp_path / "app"), "zip", CHECKOUT, "compat_patches")
    with zipfile.ZipFile(archive, "a") as file:
        file.write(CHECKOUT / "_compat_patches_startup.py", "_compat_patches_startup.py")
        file.write(CHECKOUT / "patches.toml", "compat_patches/patches.toml")
    code = f"""
import json, os, subprocess, sys
sys.path.insert(0, {archive!r})
from compat_patches import launch
environment = launch.child_environment(os.environ)
print(subprocess.run([sys.executable, "-c", {CODE!r}], env=environment, check=True, stdout=-1, text=True).stdout)
"""
    assert bare.ask(code)["active"] is True
    other = Environment(tmp_path / "other")
    code = code.replace("sys.executable", repr(other.python))
    assert bare.ask(code)["active"] is False
