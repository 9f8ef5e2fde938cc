"""A manifest that the environment names is not believed where somebody else could have written it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from environments import Environment

from compat_patches import discovery, trust
from compat_patches.errors import ManifestError
from compat_patches.settings import Settings

MANIFEST = """
[manifest]
name = "other"
schema = 1

[[patch]]
id = "threads"
summary = "One thread"
why = "A test of what is believed."
upstream = ["https://example.org/1"]
remove_when = "never"
action = "env"
key = "OTHER_THREADS"
value = "1"
"""
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A manifest in a folder of its own."""
    folder = tmp_path / "folder"
    folder.mkdir(mode=0o755)
    path = folder / "other.toml"
    path.write_text(MANIFEST)
    path.chmod(0o644)
    return path


def loaded(path: Path | str) -> str:
    """What became of it: the name of the manifest, or the problem."""
    (found,) = list(discovery.manifests(Settings(manifests=(str(path),))))[1:]
    return found.problems[0] if isinstance(found, ManifestError) else found.name


def test_one_that_only_the_user_may_write_is_taken(path: Path) -> None:
    assert loaded(path) == "other"


@pytest.mark.parametrize("mode", [0o646, 0o666, 0o777])
def test_one_that_everybody_may_write_is_refused(path: Path, mode: int) -> None:
    path.chmod(mode)
    assert f"everybody may write to {path}" in loaded(path)


@pytest.mark.parametrize("mode", [0o757, 0o777, 0o1777])
def test_one_in_a_folder_that_everybody_may_write_is_refused(path: Path, mode: int) -> None:
    """Also where nobody may rename another's file there: the folder's owner did not mean it for configuration."""
    path.parent.chmod(mode)
    assert f"everybody may write to {path.parent} " in loaded(path)


def test_a_folder_further_above_may_be_like_tmp_but_no_worse(path: Path) -> None:
    path.parent.parent.chmod(0o1777)
    assert loaded(path) == "other"
    path.parent.parent.chmod(0o777)
    assert f"everybody may write to {path.parent.parent} " in loaded(path)


@as_root
def test_one_that_a_group_may_write_is_refused(path: Path) -> None:
    os.chown(path, 0, 65534)
    path.chmod(0o664)
    assert f"group 65534 may write to {path}" in loaded(path)


@as_root
def test_one_of_another_user_is_refused(path: Path) -> None:
    os.chown(path, 65534, 0)
    assert f"{path} belongs to user 65534; expected user 0" in loaded(path)


def test_both_ends_of_a_link_are_looked_at(path: Path, tmp_path: Path) -> None:
    links = tmp_path / "links"
    links.mkdir(mode=0o755)
    (links / "link.toml").symlink_to(path)
    assert loaded(links / "link.toml") == "other"
    path.chmod(0o666)
    assert f"everybody may write to {path}" in loaded(links / "link.toml")
    path.chmod(0o644)
    links.chmod(0o777)
    assert f"everybody may write to {links} " in loaded(links / "link.toml")


def test_a_relative_path_is_refused(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(path.parent)
    assert "is relative to whatever the working directory is" in loaded("other.toml")


def test_one_that_is_not_there_is_reported_as_such(path: Path) -> None:
    assert trust.why_not(str(path.parent / "none.toml")) is None
    assert loaded(path.parent / "none.toml") == "cannot be read: No such file or directory"


@pytest.mark.parametrize("flag", ["-I", "-E"])
def test_one_is_ignored_where_python_ignores_its_environment(installed: Environment, path: Path, flag: str) -> None:
    code = (
        "import json, os, compat_patches; compat_patches.status(); print(json.dumps(os.environ.get('OTHER_THREADS')))"
    )
    variables = {"COMPAT_PATCHES": "on", "COMPAT_PATCHES_MANIFEST": str(path)}
    assert installed.ask(code, **variables) == "1"
    assert installed.ask(code, flag, **variables) is None


def test_what_is_refused_is_reported_and_the_program_runs_on(installed: Environment, path: Path) -> None:
    path.chmod(0o666)
    code = "import os; print(os.environ.get('OTHER_THREADS'))"
    variables = {"COMPAT_PATCHES": "on", "COMPAT_PATCHES_MANIFEST": str(path)}
    done = installed.run("-c", code, **variables)
    assert done.stdout == "None\n"
    assert "a manifest was left out" in done.stderr
    assert f"everybody may write to {path}" in done.stderr


@pytest.mark.parametrize("how", ["-c", "script", "-m"])
def test_nothing_is_taken_from_the_working_directory(installed: Environment, tmp_path: Path, how: str) -> None:
    """A folder that somebody was sent, with what looks like an installed project that names a manifest."""
    (tmp_path / "sent").mkdir()
    (tmp_path / "sent" / "manifest.toml").write_text(MANIFEST)
    (tmp_path / "sent" / "__init__.py").write_text("")
    for name in ("sent-1.0.dist-info", "sent.egg-info"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "METADATA").write_text("Metadata-Version: 2.1\nName: sent\nVersion: 1.0\n")
        (tmp_path / name / "entry_points.txt").write_text("[compat_patches.manifests]\nsent = sent:manifest.toml\n")
    program = """
import os, sys
from importlib.metadata import entry_points
assert entry_points(group="compat_patches.manifests")
import compat_patches
print(sorted({status.manifest for status in compat_patches.status()}), os.environ.get("OTHER_THREADS"))
"""
    (tmp_path / "program.py").write_text(program)
    arguments = {"-c": ["-c", program], "script": ["program.py"], "-m": ["-m", "program"]}[how]
    done = installed.run(*arguments, cwd=tmp_path, COMPAT_PATCHES="on")
    assert (done.stdout, done.stderr) == ("['compat-patches'] None\n", "")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    done = installed.run("-c", program, cwd=elsewhere, COMPAT_PATCHES="on", PYTHONPATH=str(tmp_path))
    assert (done.stdout, done.stderr) == ("['compat-patches', 'other'] 1\n", "")
