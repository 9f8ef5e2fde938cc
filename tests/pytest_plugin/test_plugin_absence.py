"""A test run that asks for nothing gets nothing: no patch, no module but the plugin's own."""

from __future__ import annotations

import json

import pytest
from inner_project import ROOT, Project

DUMPS = """
import json
import sys

def pytest_unconfigure(config):
    with open("modules.json", "w") as file:
        json.dump(sorted(sys.modules), file)
"""


def test_modules_with_and_without_the_plugin(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    project.makeconftest(DUMPS)
    project.tests("def test_it():\n    pass\n")
    monkeypatch.delenv("COMPAT_PATCHES_MANIFEST")

    def modules(*arguments: str) -> set[str]:
        result = project.run_tests("--collect-only", *arguments)
        assert result.ret == 0
        return set(json.loads(project.path.joinpath("modules.json").read_text()))

    assert modules() - modules("-p", "no:compat_patches") == {"_compat_patches_pytest"}
    assert modules("-p", "no:compat_patches") - modules() == set()


def test_a_package_that_was_imported_before_is_not_warned_of(project: Project) -> None:
    # As a startup file does; pytest wants to rewrite the assertions in all of a plugin's distribution, and would say
    # that it comes too late.
    project.path.joinpath("sitecustomize.py").write_text("import compat_patches\n")
    metadata = project.path.joinpath("installed", "compat_patches_pytest-0.dist-info")
    if metadata.exists():
        metadata.joinpath("RECORD").write_text("_compat_patches_pytest.py,,\ncompat_patches/__init__.py,,\n")
    project.tests("import sys\n\ndef test_it():\n    assert 'compat_patches' in sys.modules\n")
    result = project.run_tests("-W", "error")
    result.assert_outcomes(passed=1)
    assert "PytestAssertRewriteWarning" not in result.stdout.str() + result.stderr.str()


def test_tests_run_without_the_plugin(project: Project) -> None:
    project.tests("def test_it():\n    pass\n")
    project.run_tests("-p", "no:compat_patches").assert_outcomes(passed=1)


def test_the_entry_point_is_declared() -> None:
    from configparser import ConfigParser

    metadata = ConfigParser()
    metadata.read(ROOT / "setup.cfg")
    assert "compat_patches = _compat_patches_pytest" in metadata["options.entry_points"]["pytest11"].splitlines()
    assert "_compat_patches_pytest" in metadata["options"]["py_modules"].split()
