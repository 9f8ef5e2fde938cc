"""``enable`` and ``disable``."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from environments import CHECKOUT, Environment, clean_environment

from compat_patches import activation
from compat_patches.activation import ActivationError, Place

ACTIVE = """
import json, sys
print(json.dumps(any("compat_patches" in type(finder).__module__ for finder in sys.meta_path)))
"""


@pytest.fixture
def unprivileged() -> Iterator[None]:
    """Whoever may write everything becomes somebody who may not."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


def command(environment: Environment, *arguments: str, check: bool = True, **variables: str) -> tuple[int, str, str]:
    done = environment.run("-m", "compat_patches", *arguments, check=check, **variables)
    return done.returncode, done.stdout, done.stderr


def test_an_environment_is_switched_on_and_off(disposable: Environment) -> None:
    marker = disposable.folder / "compat_patches.enabled"
    assert disposable.ask(ACTIVE) is False
    assert command(disposable, "enable")[1].splitlines() == [
        f"wrote {marker}",
        f"The patches are on in every new Python process of the environment {disposable.folder}.",
    ]
    assert disposable.ask(ACTIVE) is True
    assert disposable.ask(ACTIVE, "-I") is True
    assert disposable.ask(ACTIVE, COMPAT_PATCHES="off") is False
    assert command(disposable, "disable") == (0, f"removed {marker}\n", "")
    assert disposable.ask(ACTIVE) is False
    assert not marker.exists()


def test_both_can_be_said_twice(disposable: Environment) -> None:
    marker = disposable.folder / "compat_patches.enabled"
    command(disposable, "enable")
    before = marker.stat()
    assert command(disposable, "enable")[1].startswith(f"{marker} was there already; nothing to do\n")
    assert marker.stat() == before
    command(disposable, "disable")
    assert command(disposable, "disable") == (0, f"there was no {marker}; nothing to do\n", "")


def test_nothing_but_the_marker_is_written(disposable: Environment) -> None:
    def files() -> set[Path]:
        return {path for path in disposable.folder.rglob("*") if "__pycache__" not in path.parts}

    before = files()
    command(disposable, "enable")
    assert files() - before == {disposable.folder / "compat_patches.enabled"}
    command(disposable, "disable")
    assert files() == before


def test_an_environment_that_was_switched_on_is_silent_after_an_uninstall(disposable: Environment) -> None:
    command(disposable, "enable")
    disposable.pip("uninstall", "--yes", "compat-patches")
    assert disposable.ask(ACTIVE) is False


def test_an_editable_install_can_be_switched_on(editable: Environment) -> None:
    command(editable, "enable")
    try:
        assert editable.ask(ACTIVE) is True
    finally:
        command(editable, "disable")
    assert editable.ask(ACTIVE) is False


def test_what_the_environment_variable_says_is_mentioned(disposable: Environment) -> None:
    assert "COMPAT_PATCHES=off is set here and wins" in command(disposable, "enable", COMPAT_PATCHES="off")[2]
    assert "COMPAT_PATCHES=on is set here" in command(disposable, "disable", COMPAT_PATCHES="on")[2]


def test_a_users_site_is_switched_on_and_off(tmp_path: Path, wheel: Path) -> None:
    """A virtual environment that reads the user's site, as a system's Python does, and a user of its own."""
    environment = Environment(tmp_path / "environment")
    configuration = environment.folder / "pyvenv.cfg"
    text = configuration.read_text().replace("system-site-packages = false", "system-site-packages = true")
    configuration.write_text(text)
    environment.pip("install", "--no-deps", "--no-index", str(wheel))
    base = tmp_path / "user"
    user = {"PYTHONUSERBASE": str(base)}
    code, out, _ = command(environment, "enable", "--user", **user)
    (marker,) = base.rglob("compat_patches.enabled")
    assert (code, out.splitlines()[0]) == (0, f"wrote {marker}")
    assert environment.ask(ACTIVE, **user) is True
    assert environment.ask(ACTIVE, "-s", **user) is False
    assert environment.ask(ACTIVE) is False
    assert f"your own user's site is still on, by {marker}" in command(environment, "disable", **user)[2]
    assert command(environment, "disable", "--user", **user)[1] == f"removed {marker}\n"
    assert environment.ask(ACTIVE, **user) is False


def test_a_users_site_that_is_not_read_is_refused(disposable: Environment) -> None:
    code, out, error = command(disposable, "enable", "--user", check=False)
    assert (code, out) == (2, "")
    assert "does not read the user's site: its virtual environment leaves it out" in error


def test_what_may_not_be_written_is_refused(
    tmp_path: Path, unprivileged: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(activation, "startup_files", lambda: ["some"])
    place = Place("a folder of somebody else", "/usr/lib/compat_patches.enabled")
    with pytest.raises(
        ActivationError, match=r"cannot write /usr/lib/compat_patches\.enabled: Permission denied\. Ask"
    ):
        activation.enable(place)
    assert not place.enabled
    with pytest.raises(ActivationError, match=r"cannot remove /usr/lib/os-release: Permission denied"):
        activation.disable(Place("a file of somebody else", "/usr/lib/os-release"))


def test_without_a_startup_file_it_is_refused(bare: Environment) -> None:
    """A checkout on the path, for example: the marker would mean nothing."""
    code, out, error = command(bare, "enable", check=False, PYTHONPATH=str(CHECKOUT))
    assert (code, out) == (2, "")
    assert "has compat_patches.pth: compat_patches was" in " ".join(error.split())
    assert not (bare.folder / "compat_patches.enabled").exists()


def test_an_interrupted_write_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*args: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(activation, "startup_files", lambda: ["some"])
    monkeypatch.setattr(os, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        activation.enable(Place("a folder", str(tmp_path / "compat_patches.enabled")))
    assert list(tmp_path.iterdir()) == []


def test_the_folder_for_the_path_is_printed(installed: Environment) -> None:
    _, out, _ = command(installed, "sitecustomize")
    assert Path(out.strip(), "sitecustomize.py").is_file()
    assert installed.ask(ACTIVE, PYTHONPATH=out.strip()) is True


def test_no_network_is_needed(disposable: Environment) -> None:
    """Nothing that opens a connection is even imported."""
    code = """
import json, sys
from click.testing import CliRunner
from compat_patches.cli import main
assert CliRunner().invoke(main, ["enable"]).exit_code == 0
print(json.dumps(sorted({"socket", "ssl", "http", "urllib.request"} & set(sys.modules))))
"""
    assert set(disposable.ask(code)) <= {"socket"}  # click's testing brings it
    assert clean_environment(COMPAT_PATCHES="on")["COMPAT_PATCHES"] == "on"
