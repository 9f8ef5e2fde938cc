"""Whether a patch is for this torch, this build, this platform: an answer with its reason, whatever there is."""

import sys
import types
import warnings

import pytest
from declared import patch, run_python
from hypothesis import example, given, settings
from hypothesis import strategies as st

from compat_patches.predicates import Circumstances, build_verdict, gate, marker_verdict, requirement_verdict
from compat_patches.verdict import Verdict

WINDOW = "torch>=2.10,<2.11"
MANY_CONDITIONS = patch(requires=[WINDOW, "torch!=2.10.1", "torch~=2.10.0", "torch==2.10.*"], build=["cpu"])


def asked(torch: str | None, requirement: str, **others) -> Verdict:
    return requirement_verdict(requirement, Circumstances(torch, "cpu", **others))


# --- versions ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("version", "requirement"),
    [
        ("2.10.0", WINDOW),
        ("2.10", WINDOW),
        ("2.10.1", WINDOW),
        ("2.10.0+cu128", WINDOW),
        ("2.10.0+xpu", WINDOW),
        ("2.10.0+gitunknown.dirty", WINDOW),
        ("2.10.0.post1", WINDOW),
        ("2.10.0.post1+cpu", WINDOW),
        ("2.10.0+cu128", "torch==2.10.0"),
        ("2.10.0+cu128", "torch<=2.10"),
        ("2.10.7+rocm6.4", "torch==2.10.*"),
        ("2.10.7", "torch~=2.10.0"),
        ("2.11.0", "torch~=2.10"),
        ("2.10.0", "torch!=2.10.1"),
        ("2.10.1", "torch!=2.11.*"),
        ("1!2.10.0", "torch>=2.11"),
        ("1!2.10.0", "torch>=1!2.10"),
        ("v2.10.0", WINDOW),
        ("2.10.0", "torch"),
        ("2.10.0", "Torch>=2.10"),
        ("2.10.0", "torch (>=2.10)"),
    ],
)
def test_a_release_inside_the_window_is_taken(version, requirement):
    assert asked(version, requirement) == Verdict(True, f"{requirement[:5]} is {version}, wanted {requirement}")


@pytest.mark.parametrize(
    ("version", "requirement"),
    [
        ("2.11.0", WINDOW),
        ("2.9.1", WINDOW),
        ("2.9.1+cu128", WINDOW),
        ("2.11.0.post1", WINDOW),
        ("1!2.10.0", WINDOW),
        ("2.10.1", "torch!=2.10.1"),
        ("2.10.1+cpu", "torch!=2.10.1"),
        ("2.10.0.post1", "torch==2.10.0"),
        ("2.11.0", "torch==2.10.*"),
        ("2.11.0", "torch~=2.10.0"),
    ],
)
def test_a_release_outside_of_the_window_is_told_with_both_versions(version, requirement):
    assert asked(version, requirement) == Verdict(False, f"torch is {version}, wanted {requirement}")


@pytest.mark.parametrize(
    ("version", "requirement", "release"),
    [
        ("2.10.0a0+git0123abc", WINDOW, "2.10.0"),
        ("2.10.0a0+b558c986e8.nv25.11", WINDOW, "2.10.0"),
        ("2.10.0rc1", WINDOW, "2.10.0"),
        ("2.10.1rc1", "torch==2.10.*", "2.10.1"),
        ("2.10.0a0", "torch~=2.10.0", "2.10.0"),
        ("2.10.0.dev20251001+cu130", "torch>=2.10", "2.10.0"),
        ("2.10.0.post1.dev3", WINDOW, "2.10.0"),
        ("2.11.0.dev20260101+cpu", "torch<2.11", "2.11.0"),
        ("2.11.0.dev20260101+cpu", WINDOW, "2.11.0"),
        ("2.11.0rc2", WINDOW, "2.11.0"),
        ("2.15.0a0+gitabc", "torch>=2.15", "2.15.0"),
        ("2.10.0a0", "torch!=2.9.0", "2.10.0"),
        ("2.10.0a0", "torch", "2.10.0"),
        ("1!2.10.0a0", "torch>=1!2.10", "1!2.10.0"),
    ],
)
def test_a_pre_release_counts_as_its_release_and_needs_evidence(version, requirement, release):
    assert asked(version, requirement) == Verdict(
        True, f"torch is {version}, a pre-release of {release}, wanted {requirement}", needs_evidence=True
    )


@pytest.mark.parametrize(
    ("version", "requirement"),
    [
        ("2.9.0a0+git", WINDOW),
        ("2.12.0.dev20260401", WINDOW),
        ("2.10.0rc1", "torch!=2.10.0"),
        ("2.10.0rc1", "torch>2.10"),
        ("2.11.0.dev1", "torch==2.10.*"),
        ("2.11.0.dev1", "torch<=2.10"),
    ],
)
def test_a_pre_release_outside_of_the_window_is_left_alone(version, requirement):
    assert asked(version, requirement) == Verdict(False, f"torch is {version}, wanted {requirement}")


@pytest.mark.parametrize(
    ("version", "requirement", "ok"),
    [
        ("2.10.0a0", "torch>=2.10.0a0,<2.11", True),
        ("2.10.0rc1", "torch>=2.10.0rc2", False),
        ("2.10.0rc2+cu128", "torch==2.10.0rc2", True),
        ("2.10.0.dev1", "torch>=2.10.0a0", False),
        ("2.11.0.dev1", "torch>=2.10.0a0,<2.11", False),
        ("2.10.0", "torch>2.10.0rc1", True),
        ("2.11.0rc1", "torch!=2.11.0rc1", False),
    ],
)
def test_a_specifier_that_names_a_pre_release_is_compared_to_the_letter(version, requirement, ok):
    assert asked(version, requirement) == Verdict(ok, f"torch is {version}, wanted {requirement}")


@pytest.mark.parametrize("version", ["parrots", "unknown", "", "2.10.0a0+", "2.10.x", "1." + "9" * 5000, "²"])
def test_a_version_that_cannot_be_read_skips_the_patch(version):
    verdict = asked(version, WINDOW)
    assert verdict.ok is False
    assert verdict.reason == f"torch reports the version {version!r}, which PEP 440 cannot read, wanted {WINDOW}"


def test_without_torch_the_patch_is_not_for_here():
    assert asked(None, WINDOW) == Verdict(False, f"torch is not installed, wanted {WINDOW}")


@settings(deadline=None)
@given(st.text() | st.none() | st.from_regex(r"[0-9]{1,3}(\.[0-9]+)*(a|rc|\.dev|\.post)?[0-9]*(\+[a-z0-9.]*)?"))
@example("1." + "9" * 5000)
@example("1!" * 5000)
def test_no_version_whatever_makes_the_gate_raise(version):
    verdict = gate(MANY_CONDITIONS, Circumstances(version, "cpu"))
    assert verdict.reason
    assert verdict.ok in (True, False)


@pytest.mark.parametrize("local", ["", "+cu128", "+xpu", "+git0123abc", "+b558c986e8.nv25.11"])
@settings(deadline=None)
@given(
    st.sampled_from(["2.9.1", "2.10.0", "2.10.1", "2.11.0", "2.10.0a0", "2.11.0.dev1", "2.10.0rc3", "2.10.0.post1"]),
    st.sampled_from([WINDOW, "torch<2.11", "torch==2.10.*", "torch!=2.10.0", "torch==2.10.0", "torch>=2.10.0a0"]),
)
def test_a_local_part_never_decides(local, version, requirement):
    with_local, without = asked(version + local, requirement), asked(version, requirement)
    assert (with_local.ok, with_local.needs_evidence) == (without.ok, without.needs_evidence)


# --- other distributions -------------------------------------------------------------------------------------------


def test_another_distribution_is_asked_for_its_own_version():
    assert asked("2.10.0", "vllm>=0.9", versions={"vllm": "0.9.1"}).ok
    assert asked("2.10.0", "vllm>=0.9", versions={"vllm": "0.8"}) == Verdict(False, "vllm is 0.8, wanted vllm>=0.9")
    assert asked("2.10.0", "packaging>=1!9").reason.endswith(", wanted packaging>=1!9")
    assert asked("2.10.0", "no-such-thing") == Verdict(False, "no-such-thing is not installed, wanted no-such-thing")


def test_names_are_compared_as_packaging_does():
    assert asked("2.10.0", "Some_Thing>=1", versions={"some-thing": "1"}).ok
    assert asked("2.10.0", "TORCH==2.10.0").ok


@pytest.mark.parametrize("metadata", [None, b"", b"Name: broken\n", b"\xff\xfe\x00", b"Name: broken\nVersion: \n"])
def test_a_broken_installation_has_no_version_and_breaks_nothing(tmp_path, monkeypatch, metadata):
    folder = tmp_path / "broken-1.0.dist-info"
    folder.mkdir()
    if metadata is not None:
        (folder / "METADATA").write_bytes(metadata)
    monkeypatch.syspath_prepend(tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert asked("2.10.0", "broken>=1").ok is False


# --- markers and builds --------------------------------------------------------------------------------------------


def test_a_marker_is_answered_with_what_was_found():
    verdict = marker_verdict("sys_platform == 'linux'", Circumstances(None, None, markers={"sys_platform": "win32"}))
    assert verdict == Verdict(False, "sys_platform is 'win32', wanted sys_platform == 'linux'")
    verdict = marker_verdict("os.name == 'x'", Circumstances(None, None, markers={"os_name": "x"}))
    assert verdict == Verdict(True, "os_name is 'x', wanted os.name == 'x'")


def test_a_marker_is_about_this_interpreter_unless_told_otherwise():
    assert marker_verdict(f"sys_platform == '{sys.platform}'", Circumstances(None, None)).ok


@pytest.mark.parametrize("release", ["6.1.0-custom", "5.15.0-1064-azure", "6.8", ""])
def test_a_kernel_that_is_no_version_does_not_raise(release):
    verdict = marker_verdict(
        "platform_release >= '5.0'", Circumstances(None, None, markers={"platform_release": release})
    )
    assert verdict.ok in (True, False)
    assert verdict.reason.startswith(f"platform_release is {release!r}")


def test_a_requirement_counts_where_its_marker_holds():
    requirement = "torch>=2.10; sys_platform == 'linux'"
    on_linux = asked("2.9.1", requirement, markers={"sys_platform": "linux"})
    assert on_linux == Verdict(False, "torch is 2.9.1, wanted torch>=2.10")
    elsewhere = asked("2.9.1", requirement, markers={"sys_platform": "win32"})
    assert elsewhere.ok
    assert "does not count here (sys_platform is 'win32', wanted sys_platform ==" in elsewhere.reason


def test_a_build_is_one_of_those_wanted():
    assert build_verdict(("cuda", "cpu"), Circumstances("2.10.0", "cpu")) == Verdict(
        True, "torch is built for cpu, wanted cuda or cpu"
    )
    assert build_verdict(("xpu",), Circumstances("2.10.0", "cpu")) == Verdict(
        False, "torch is built for cpu, wanted xpu"
    )
    assert build_verdict(("xpu",), Circumstances(None, None)) == Verdict(
        False, "torch is not installed, wanted a build for xpu"
    )
    assert build_verdict(("cpu",), Circumstances("2.10.0", None)) == Verdict(
        False, "torch does not say what it was built for, wanted a build for cpu"
    )


# --- all of it -----------------------------------------------------------------------------------------------------


def test_a_patch_without_conditions_is_for_everything():
    assert gate(patch(), Circumstances(None, None)) == Verdict(True, "for every version and platform")


def test_all_reasons_are_given_where_all_conditions_hold():
    verdict = gate(patch(requires=[WINDOW, "torch!=2.10.3"], build=["cpu"]), Circumstances("2.10.0", "cpu"))
    assert verdict == Verdict(
        True,
        f"torch is 2.10.0, wanted {WINDOW}; torch is 2.10.0, wanted torch!=2.10.3; torch is built for cpu, wanted cpu",
    )


def test_the_first_condition_that_does_not_hold_is_the_reason():
    verdict = gate(patch(requires=["torch>=2", "torch<1"], build=["xpu"]), Circumstances("2.10.0", "cpu"))
    assert verdict == Verdict(False, "torch is 2.10.0, wanted torch<1")


def test_a_patch_without_evidence_is_unproven_on_a_pre_release():
    verdict = gate(patch(requires=[WINDOW]), Circumstances("2.10.0a0+git0123abc", "cpu"))
    assert verdict.ok is False
    assert verdict.reason.startswith("unproven on a pre-release: torch is 2.10.0a0+git0123abc, ")


def test_evidence_decides_on_a_pre_release():
    declared = patch(requires=["torch<2.11"], needed_if={"does_not_catch": "ValueError"})
    verdict = gate(declared, Circumstances("2.11.0.dev20260101+cpu", "cpu"))
    assert (verdict.ok, verdict.needs_evidence) == (True, True)


# --- what this process has -----------------------------------------------------------------------------------------

ASK = """
import sys
from compat_patches.predicates import Circumstances
found = Circumstances.current()
print(found.torch, found.build, "torch" in sys.modules)
"""
REAL = """
from typing import Optional
__all__ = ["__version__", "debug", "cuda", "git_version", "hip", "xpu"]
__version__ = {version!r}
debug = False
cuda: Optional[str] = {cuda!r}
hip: Optional[str] = {hip!r}
xpu: Optional[str] = {xpu!r}
"""


def version_file(version: str, cuda: object = None, hip: object = None, xpu: object = None) -> bytes:
    return REAL.format(version=version, cuda=cuda, hip=hip, xpu=xpu).encode()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (version_file("2.13.0+cpu"), "2.13.0+cpu cpu"),
        (version_file("2.13.0+cu130", cuda="13.0"), "2.13.0+cu130 cuda"),
        (version_file("2.13.0+rocm6.4", hip="6.4"), "2.13.0+rocm6.4 rocm"),
        (version_file("2.13.0+xpu", xpu="20250301"), "2.13.0+xpu xpu"),
        (version_file("parrots"), "parrots cpu"),
        (b"\xef\xbb\xbf" + version_file("2.13.0"), "2.13.0 cpu"),
        (b"# coding: latin-1\n# \xe9\n" + version_file("2.13.0"), "2.13.0 cpu"),
        (b"__version__ = '2.13.0'\n", "2.13.0 None"),
        (b"__version__ = 2.13\ncuda = None\n", "2.13 cpu"),
        (b"__version__ = make_version()\ncuda = None\n", "unknown cpu"),
        (b"broken = {[]: 1}\n" + version_file("2.13.0"), "2.13.0 cpu"),
        (b"from ._version import __version__\n", "unknown None"),
        (b"", "unknown None"),
        (b"this is no Python\n", "unknown None"),
        (b"\0", "unknown None"),
        (None, "unknown None"),
    ],
)
def test_the_version_is_read_from_the_file_beside_the_torch_that_was_found(tmp_path, monkeypatch, text, expected):
    for name in ("torch", "torch.version"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    if text is not None:
        (tmp_path / "version.py").write_bytes(text)
    found = Circumstances.current(str(tmp_path / "__init__.py"))
    assert f"{found.torch} {found.build}" == expected


def test_the_version_is_read_without_importing_torch(tmp_path):
    package = tmp_path / "torch"
    package.mkdir()
    (package / "__init__.py").write_text("raise SystemExit('imported')")
    (package / "version.py").write_bytes(version_file("2.13.0+cpu"))
    assert run_python(ASK, tmp_path, options=("-W", "error")) == "2.13.0+cpu cpu False"


def test_a_torch_that_is_imported_says_its_version_itself(tmp_path):
    package = tmp_path / "torch"
    package.mkdir()
    (package / "__init__.py").write_text("from . import version\nversion.__version__ = '2.14.0'")
    (package / "version.py").write_bytes(version_file("2.13.0", xpu="2025"))
    assert run_python(f"import torch\n{ASK}", tmp_path) == "2.14.0 xpu True"


@pytest.mark.parametrize(
    ("stub", "expected"),
    [({"__version__": "1.0"}, ("1.0", None)), ({"__version__": 1}, (None, None)), ({"__spec__": None}, (None, None))],
)
def test_a_stub_that_somebody_put_in_the_place_of_torch_does_not_raise(monkeypatch, stub, expected):
    module = types.ModuleType("torch")
    vars(module).update(stub)
    monkeypatch.setitem(sys.modules, "torch", module)
    monkeypatch.delitem(sys.modules, "torch.version", raising=False)
    found = Circumstances.current()
    assert (found.torch, found.build) == expected


def test_folders_that_happen_to_be_called_torch_are_no_torch(tmp_path):
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "version.py").write_bytes(version_file("2.13.0"))
    code = f"import sys\nsys.path[:] = [p for p in sys.path if 'site-packages' not in p]\n{ASK}"
    assert run_python(code, tmp_path) == "None None False"
