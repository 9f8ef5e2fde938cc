"""What a test run tells: the header line, the JSON report, the JUnit file."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ElementTree

import pytest
from inner_project import Project

TESTS = """
    import pytest
    import victim
    from compat_patches.testing import both

    @pytest.mark.compat_patches(apply=["hundred"], revert=["ten"])
    def test_marked():
        assert victim.answer() == 101

    @pytest.mark.compat_patches(apply=["never"])
    def test_skipped():
        pass

    @both("ten")
    def test_both():
        assert victim.answer() == 11

    def test_leaks():
        victim.answer = None

    def test_plain():
        pass
"""
WORKERS = pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["one-process", "two-workers"])


@WORKERS
def test_the_json_report(project: Project, workers: tuple[str, ...]) -> None:
    project.tests(TESTS)
    # In this order in one process, the leak would be in the way of none but the plain test.
    project.run_tests("--compat-patches-report=out/report.json", "--compat-patches-leaks=error", *workers)
    report = json.loads(project.path.joinpath("out/report.json").read_text())
    assert report["schema"] == 1 and report["pytest"] == pytest.__version__
    states = {found["id"]: found["state"] for found in report["patches"] if found["manifest"] == "test"}
    assert states["never"] == "skipped" and states["hundred"] == "skipped"
    tests = {test.pop("nodeid").partition("::")[2]: test for test in report["tests"]}
    leaks = tests["test_leaks"].pop("leak")
    skipped = tests["test_skipped"].pop("does_not_apply")
    assert tests == {
        "test_marked": {"outcome": "passed", "apply": ["hundred"], "revert": ["ten"]},
        "test_skipped": {"outcome": "skipped"},
        "test_both[with-ten]": {"outcome": "passed", "apply": ["ten"]},
        "test_both[without-ten]": {"outcome": "failed", "revert": ["ten"]},
        "test_leaks": {"outcome": "failed"},
    }
    assert len(leaks) == 1 and leaks[0].startswith("victim:answer: held function answer")
    assert "wanted pytest<1" in skipped[0]


@WORKERS
def test_the_junit_file(project: Project, workers: tuple[str, ...]) -> None:
    project.tests(TESTS)
    project.run_tests("--junitxml=junit.xml", *workers)
    suite = ElementTree.parse(project.path / "junit.xml").getroot().find("testsuite")
    assert suite is not None
    properties = {found.get("name"): found.get("value", "") for found in suite.findall("properties/property")}
    assert properties["compat_patches.version.compat_patches"] == "0.1.0"
    assert {"compat_patches.version.python", "compat_patches.version.torch"} <= properties.keys()
    assert "wanted pytest<1" in properties["compat_patches.patch.never"]
    [marked] = [case for case in suite.findall("testcase") if case.get("name") == "test_marked"]
    of_the_test = {found.get("name"): found.get("value") for found in marked.findall("properties/property")}
    assert of_the_test == {"compat_patches.apply": "hundred", "compat_patches.revert": "ten"}


@WORKERS
def test_a_run_without_patches_has_no_section(project: Project, workers: tuple[str, ...]) -> None:
    project.tests("def test_it():\n    pass\n")
    project.run_tests("--junitxml=junit.xml", *workers)
    assert "compat_patches" not in project.path.joinpath("junit.xml").read_text()


def test_the_header_of_a_verbose_run(project: Project) -> None:
    project.tests("import victim\n\ndef test_it(compat_patches):\n    pass\n")
    verbose = project.run_tests("-v", "--compat-patches-strict").stdout.str()
    [line] = [line for line in verbose.splitlines() if line.startswith("compat_patches ")]
    assert line.startswith("compat_patches 0.1.0: torch ") and "pending: " in line and "ten" in line
    assert "compat_patches 0.1.0" not in project.run_tests("--compat-patches-strict").stdout.str()
    # Where nothing asks for the package, nothing imports it for a line of text.
    assert "compat_patches 0.1.0" not in project.run_tests("-v").stdout.str()


def test_the_header_says_that_all_is_switched_off(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COMPAT_PATCHES", "off")
    project.tests("def test_it():\n    pass\n")
    text = project.run_tests("-v", "--compat-patches-strict").stdout.str()
    assert "switched off by COMPAT_PATCHES=off" in text
