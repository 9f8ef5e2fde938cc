"""``doctor``: each thing that can be amiss is found, with a remedy."""

from __future__ import annotations

import functools
import json
import os
import sys
import types
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
import wrapt
from environments import CHECKOUT, Environment

from compat_patches import foreign, manifest

Findings = list[dict[str, str]]


def examine(
    environment: Environment, *flags: str, check: int = 0, arguments: tuple[str, ...] = (), **variables: str
) -> Findings:
    command = [*flags, "-m", "compat_patches", "doctor", "--json", "--no-torch", *arguments]
    done = environment.run(*command, check=False, **variables)
    assert done.returncode == check, done.stdout + done.stderr
    findings: Findings = json.loads(done.stdout)["findings"]
    for finding in findings:
        assert finding["verdict"] in ("ok", "note", "problem")
        assert finding["remedy"] or finding["verdict"] != "problem", finding
    return findings


def found(findings: Findings, check: str, *verdicts: str) -> list[str]:
    return [f["found"] for f in findings if f["check"] == check and (not verdicts or f["verdict"] in verdicts)]


def test_all_is_well(environment: Environment) -> None:
    findings = examine(environment, COMPAT_PATCHES="on")
    assert {finding["verdict"] for finding in findings} == {"ok"}
    assert found(findings, "switch") == ["COMPAT_PATCHES=on"]
    assert "fired in this process: compat_patches.pth" in found(findings, "startup files")
    assert found(findings, "new processes") == ["a new process is active, by compat_patches.pth"]
    assert found(findings, "torch")[0].startswith("torch ")


def test_nobody_has_switched_it_on(installed: Environment) -> None:
    findings = examine(installed)
    assert "only programs that import it are patched" in found(findings, "switch", "note")[0]
    assert found(findings, "new processes", "note") == ["a new process is not active"]


def test_off_wins(disposable: Environment) -> None:
    disposable.run("-m", "compat_patches", "enable")
    assert "enabled for the environment" in found(examine(disposable), "switch", "ok")[0]
    said = found(examine(disposable, COMPAT_PATCHES="off"), "switch", "note")[0]
    assert said == f"COMPAT_PATCHES=off; it wins over {disposable.folder / 'compat_patches.enabled'}"


@pytest.mark.parametrize("flag", ["-I", "-E", "-s"])
def test_flags(installed: Environment, flag: str) -> None:
    assert found(examine(installed, flag, COMPAT_PATCHES="on"), "flags", "note")[0].startswith(f"{flag}: ")


def test_without_site(installed: Environment) -> None:
    findings = examine(
        installed,
        "-S",
        check=1,
        COMPAT_PATCHES="on",
        PYTHONPATH=os.pathsep.join([str(installed.site_packages), *filter(None, sys.path)]),
    )
    assert found(findings, "flags", "problem") == ["-S: Python reads no startup file"]
    assert found(findings, "new processes", "problem") == ["a new process is not active, though it is switched on"]


def test_no_startup_file(bare: Environment) -> None:
    findings = examine(bare, check=1, COMPAT_PATCHES="on", PYTHONPATH=str(CHECKOUT))
    assert found(findings, "startup files", "problem") == [
        "no folder that this Python reads at its start has a startup file of compat_patches"
    ]
    assert found(findings, "new processes", "problem") == ["a new process is not active, though it is switched on"]


def test_a_startup_file_of_another_release(disposable: Environment) -> None:
    path = disposable.site_packages / "compat_patches.pth"
    path.write_text("import sys\n")
    findings = examine(disposable, check=1, COMPAT_PATCHES="on")
    assert found(findings, "startup files", "problem")[0] == (
        f"{path} is of another release, or not ours: it does not call _compat_patches_startup"
    )


def test_a_startup_file_that_was_left_behind(disposable: Environment) -> None:
    path = disposable.site_packages / "compat_patches.pth"
    text = path.read_text()
    disposable.pip("uninstall", "--yes", "compat-patches")
    path.write_text(text)
    findings = examine(disposable, check=1, COMPAT_PATCHES="on", PYTHONPATH=str(CHECKOUT))
    assert found(findings, "startup files", "problem") == [
        f"{path} was left behind: compat-patches is not installed in that folder any more"
    ]


def test_activation_that_failed(disposable: Environment) -> None:
    (disposable.site_packages / "sitecustomize.py").write_text(
        "import _compat_patches_startup as s\ns._report(ValueError('a defect'))\n"
    )
    findings = examine(disposable, check=1, COMPAT_PATCHES="on")
    assert "activating failed: ValueError: a defect" in found(findings, "startup files", "problem")


def test_a_second_copy(disposable: Environment) -> None:
    findings = examine(disposable, check=1, COMPAT_PATCHES="on", PYTHONPATH=str(CHECKOUT))
    other = disposable.site_packages / "compat_patches"
    assert f"another copy, {other}, is shadowed by this one" in found(findings, "copies", "problem")


def test_a_copy_of_another_release(disposable: Environment) -> None:
    path = disposable.site_packages / "compat_patches" / "__init__.py"
    path.write_text(path.read_text().replace('__version__ = "', '__version__ = "99.'))
    (problem,) = found(examine(disposable, check=1), "copies", "problem")
    assert problem.startswith("installed as release ")
    assert ", while 99." in problem


def test_a_sitecustomize_before_ours(installed: Environment, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("")
    folder = str(installed.site_packages / "compat_patches" / "_sitecustomize")
    hidden = examine(installed, COMPAT_PATCHES="on", PYTHONPATH=os.pathsep.join([str(tmp_path), folder]))
    assert found(hidden, "sitecustomize", "note") == [
        f"ours on PYTHONPATH is shadowed by {tmp_path / 'sitecustomize.py'}"
    ]
    first = examine(installed, COMPAT_PATCHES="on", PYTHONPATH=os.pathsep.join([folder, str(tmp_path)]))
    assert found(first, "sitecustomize", "ok") == [f"ours comes first on PYTHONPATH: {folder}"]


def test_settings_that_nobody_understands(installed: Environment, tmp_path: Path) -> None:
    variables = {"COMPAT_PATCHES": "on", "COMPAT_PATCHES_DISABLE": "nosuch", "COMPAT_PATCHES_MANIFEST": "relative.toml"}
    problems = found(examine(installed, check=1, **variables), "settings", "problem")
    assert any("no patch and no group is named 'nosuch'" in problem for problem in problems)
    assert any("relative.toml: COMPAT_PATCHES_MANIFEST: is relative" in problem for problem in problems)
    assert found(examine(installed, "-I", check=1, **variables), "settings", "note") == [
        "ignored, as Python ignores its environment: relative.toml"
    ]


def test_another_tool_that_patches_our_target(installed: Environment, tmp_path: Path) -> None:
    (tmp_path / "other_tool.py").write_text("""
import torch
def dump(self, *args):
    return original(self, *args)
original, torch.xpu.streams.Event.__new__ = torch.xpu.streams.Event.__new__, dump
""")
    arguments = ("--import", "other_tool")
    findings = examine(installed, arguments=arguments, COMPAT_PATCHES="on", PYTHONPATH=str(tmp_path))
    others = found(findings, "other tools", "note")
    assert others == ["torch.xpu.streams:Event.__new__ holds a function of other_tool (other_tool.py:3)"]
    assert found(findings, "patches", "note")[0].startswith("xpu-event-blocking is overlaid")


def test_a_tool_that_is_known_to_patch_torch(disposable: Environment) -> None:
    (disposable.site_packages / "vllm-0.24.0.dist-info").mkdir()
    metadata = "Metadata-Version: 2.1\nName: vllm\nVersion: 0.24.0\n"
    (disposable.site_packages / "vllm-0.24.0.dist-info" / "METADATA").write_text(metadata)
    assert found(examine(disposable, COMPAT_PATCHES="on"), "other tools", "note") == [
        "vllm 0.24.0 is installed and changes torch when it is imported"
    ]


@pytest.mark.slow
def test_code_that_uses_what_is_patched_is_compiled(installed: Environment) -> None:
    done = installed.run("-m", "compat_patches", "doctor", "--json", "--selftest", COMPAT_PATCHES="on")
    compiled = found(json.loads(done.stdout)["findings"], "torch.compile", "ok")
    assert any(text.startswith("xpu-event-blocking: ") for text in compiled)


def test_what_it_prints_for_people(installed: Environment) -> None:
    done = installed.run("-m", "compat_patches", "doctor", "--no-torch")
    lines = done.stdout.splitlines()
    assert lines[1].startswith("note    switch: neither ")
    assert lines[2] == "        -> compat-patches enable, or COMPAT_PATCHES=on"


# --- who made an object --------------------------------------------------------------------------------------------

PATCH = """
[manifest]
name = "m"
schema = 1

[[patch]]
id = "some"
summary = "s"
why = "w"
upstream = ["u"]
remove_when = "r"
target = "foreign_target.inner:function"
action = "noop"
"""


def function_of(module: str) -> Any:
    space: dict[str, Any] = {"__name__": module}
    exec("def function(*args): return len(args)", space)
    return space["function"]


@pytest.fixture
def target(monkeypatch: pytest.MonkeyPatch) -> types.ModuleType:
    """A module that a patch is about."""
    package, inner = types.ModuleType("foreign_target"), types.ModuleType("foreign_target.inner")
    inner.function = function_of("foreign_target.inner")  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "foreign_target", package)
    monkeypatch.setitem(sys.modules, "foreign_target.inner", inner)
    return inner


def changes() -> list[str]:
    (patch,) = manifest.parse(PATCH.encode(), "m.toml").patches
    return [what for _, what in foreign.changes(patch)]


def test_what_the_package_itself_put_there_is_not_foreign(target: Any) -> None:
    assert changes() == []
    target.function = functools.lru_cache(target.function)
    assert changes() == []
    target.function = functools.wraps(target.function)(function_of("foreign_target.other"))
    assert changes() == []


def test_a_closure_of_somebody_else(target: Any) -> None:
    target.function = functools.wraps(target.function)(function_of("other.tool"))
    assert changes() == ["a function of other.tool (<string>:1)"]


def test_a_closure_of_somebody_else_beneath_ours(target: Any) -> None:
    beneath = functools.wraps(target.function)(function_of("other.tool"))
    target.function = functools.wraps(beneath)(function_of("compat_patches.functions"))
    assert changes() == ["a function of other.tool (<string>:1)"]


def test_a_wrapt_proxy(target: Any) -> None:
    target.function = wrapt.FunctionWrapper(target.function, function_of("other.tool"))
    assert changes() == ["a wrapt proxy of other.tool"]


def test_a_bare_wrapt_proxy(target: Any) -> None:
    target.function = wrapt.ObjectProxy(target.function)
    assert len(changes()) == 1
    assert changes()[0].startswith("a wrapt proxy of ")


def test_a_mock(target: Any) -> None:
    with mock.patch.object(target, "function"):
        assert changes() == ["a MagicMock of unittest.mock"]
    assert changes() == []


def test_a_partial_and_a_class_of_somebody_else(target: Any) -> None:
    target.function = functools.partial(function_of("other.tool"), 1)
    assert changes() == ["a function of other.tool (<string>:1)"]
    target.function = type("Stand", (), {"__module__": "other.tool"})
    assert changes() == ["a class of other.tool"]


def test_an_object_that_answers_every_attribute(target: Any) -> None:
    class Endless:
        __module__ = "other.tool"

        def __getattr__(self, name: str) -> Any:
            return self

    target.function = Endless()
    assert changes() == ["a Endless of other.tool"]


def test_a_target_that_is_not_imported_or_not_there(target: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    del target.function
    assert changes() == []
    monkeypatch.delitem(sys.modules, "foreign_target.inner")
    assert changes() == []
