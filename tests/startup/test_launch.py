"""The environment that a child gets."""

from __future__ import annotations

import os

from compat_patches import launch


def test_the_child_is_active_by_its_startup_file_or_by_the_sitecustomize() -> None:
    environment = launch.child_environment({"HOME": "/home/somebody"})
    assert environment == {
        "HOME": "/home/somebody",
        "COMPAT_PATCHES": "on",
        "COMPAT_PATCHES_PYTHON": launch.this_python(),
        "PYTHONPATH": launch.sitecustomize_folder(),
    }


def test_off_wins() -> None:
    assert launch.child_environment({"COMPAT_PATCHES": "off"})["COMPAT_PATCHES"] == "off"


def test_the_folder_comes_first_and_once_and_the_rest_keeps_its_order() -> None:
    base = {"PYTHONPATH": os.pathsep.join(["/first", "", launch.sitecustomize_folder(), "/second"])}
    once = launch.child_environment(base)
    assert once["PYTHONPATH"].split(os.pathsep) == [launch.sitecustomize_folder(), "/first", "/second"]
    assert launch.child_environment(once) == once


def test_what_is_chosen_reaches_the_child() -> None:
    base = {"COMPAT_PATCHES_ONLY": "old", "COMPAT_PATCHES_DISABLE": "xpu, cpu", "COMPAT_PATCHES_STRICT": "1"}
    environment = launch.child_environment(base, only=["inductor"], disable=["cpu", "cuda"], strict=False)
    assert environment["COMPAT_PATCHES_ONLY"] == "inductor"
    assert environment["COMPAT_PATCHES_DISABLE"] == "xpu,cpu,cuda"
    assert environment["COMPAT_PATCHES_STRICT"] == "0"


def test_what_is_not_chosen_is_inherited() -> None:
    base = {"COMPAT_PATCHES_ONLY": "xpu", "COMPAT_PATCHES_DISABLE": "cpu", "COMPAT_PATCHES_STRICT": "1"}
    environment = launch.child_environment(base)
    assert {name: environment[name] for name in base} == base


def test_the_environment_that_it_starts_from_is_left_alone() -> None:
    base = {"PYTHONPATH": "/first"}
    launch.child_environment(base, only=["xpu"])
    assert base == {"PYTHONPATH": "/first"}
