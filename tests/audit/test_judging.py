"""Judging: each verdict, and when one patch looks after what is outside of another's window."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from compat_patches import manifest
from compat_patches.audit import judging, places
from compat_patches.audit.judging import Judgement
from compat_patches.verdict import Verdict

Make = Callable[..., Path]


@pytest.fixture
def verdicts(make_folder: Make, make_manifest: Make) -> Callable[..., list[Judgement]]:
    """Judges a manifest of the given tables against a torch of the given files."""

    def judge(version: str, files: dict[str, str], *tables: str) -> list[Judgement]:
        patches = manifest.load(make_manifest(*tables)).patches
        release = places.open_release(str(make_folder(version, files)))
        return list(judging.judge(patches, release))

    return judge


WITH_DEFECT = {"torch/a.py": "def f(x): pass"}
MENDED = {"torch/a.py": "def f(x, blocking=False): pass"}
LACKS = """
    target = "torch.a:f"
    requires = ["torch>=2.9,<2.11"]
    needed_if = { lacks_parameter = "blocking" }
"""


@pytest.mark.parametrize(
    "version, files, verdict, said",
    [
        (
            "2.10.0",
            WITH_DEFECT,
            "needed",
            "torch is 2.10.0, wanted torch>=2.9,<2.11; torch.a:f takes (x), not blocking",
        ),
        ("2.11.0", MENDED, "not needed", "torch is 2.11.0, wanted"),
        ("2.11.0", WITH_DEFECT, "window too narrow", "but the defect is there: torch.a:f takes (x), not blocking"),
        ("2.8.0", WITH_DEFECT, "window too narrow", "but the defect is there"),
        ("2.10.0", MENDED, "window too wide", "but the defect is not there: torch.a:f takes (x, blocking)"),
        ("2.10.0", {"torch/a.py": "def g(x): pass"}, "target missing", "torch.a has no 'f' in torch 2.10.0"),
        ("2.10.0", {"torch/b.py": ""}, "target missing", "there is no module torch.a in torch 2.10.0"),
        ("2.12.0", {"torch/b.py": ""}, "not needed", "there is no module torch.a"),
        ("2.10.0", {"torch/a.py": "f = make()"}, "unknown", "only running code can tell"),
        ("2.12.0", {"torch/a.py": "f = make()"}, "unknown", "only running code can tell"),
        ("2.10.0", {"torch/a.py": "def f(:"}, "unknown", "cannot be parsed by Python"),
        ("2.10.0+cu128", WITH_DEFECT, "needed", "torch is 2.10.0+cu128"),
        ("2.11.0.dev20260101+cpu", WITH_DEFECT, "needed", "a pre-release of 2.11.0"),
        ("2.11.0.dev20260101+cpu", MENDED, "not needed", "a pre-release of 2.11.0"),
        ("2.10.0rc1", MENDED, "not needed", "a pre-release of 2.10.0"),
        ("parrots", WITH_DEFECT, "window too narrow", "'parrots', which PEP 440 cannot read"),
    ],
)
def test_verdicts(
    version: str, files: dict[str, str], verdict: str, said: str, verdicts: Callable[..., list[Judgement]]
) -> None:
    (judgement,) = verdicts(version, files, LACKS)
    assert (judgement.verdict, judgement.is_mismatch) == (verdict, verdict in judging.MISMATCHES)
    assert said in judgement.reason


def test_a_patch_without_evidence_is_unknown_everywhere(verdicts: Callable[..., list[Judgement]]) -> None:
    table = 'target = "torch.a:f"\nrequires = ["torch<2.11"]'
    for version in ("2.10.0", "2.12.0"):
        (judgement,) = verdicts(version, WITH_DEFECT, table)
        assert judgement.verdict == "unknown"
        assert "the patch has no needed_if" in judgement.reason


def test_a_probe_is_left_to_running_code(verdicts: Callable[..., list[Judgement]]) -> None:
    (judgement,) = verdicts("2.10.0", WITH_DEFECT, 'target = "torch.a:f"\nneeded_if = { probe = "impl:probe" }')
    assert judgement.verdict == "unknown"
    assert "only running code can answer the probe impl:probe" in judgement.reason


def test_nobody_looks_after_what_only_running_code_knows(make_folder: Make, make_manifest: Make) -> None:
    probed = 'target = "torch.a:f"\nrequires = ["torch<2.10"]\nneeded_if = { probe = "impl:probe" }'
    patches = manifest.load(make_manifest(probed, LACKS)).patches
    release = places.open_release(str(make_folder("2.10.0", WITH_DEFECT)))
    found = list(judging.judge(patches, release, lambda patch, release: Verdict(True, "seen")))
    assert [each.verdict for each in found] == ["window too narrow", "needed"]


def test_pins(verdicts: Callable[..., list[Judgement]]) -> None:
    from compat_patches import source

    node = source.parse_definition("def f(x): return x + 1")
    assert node is not None
    table = f'target = "torch.a:f"\npins = {{ "2.10.0" = "{source.tree_hash(node)}" }}'
    same = {"torch/a.py": "def f(\n    x,\n):\n    # a comment\n    return (x + 1)"}
    (judgement,) = verdicts("2.10.0", same, table)
    assert judgement.verdict == "unknown"  # There is no needed_if; the pin is fine.
    (judgement,) = verdicts("2.10.1", {"torch/a.py": "def f(x): return x - 1"}, table)
    assert judgement.verdict == "drifted"
    assert f"the patch was written against {source.tree_hash(node)} (2.10.0)" in judgement.reason


def test_an_injected_name_may_be_missing_but_not_what_holds_it(verdicts: Callable[..., list[Judgement]]) -> None:
    table = """
        target = "torch.a:C.f"
        action = "inject"
        using = "impl:f"
        needed_if = { lacks_attribute = "f" }
    """
    assert verdicts("2.10.0", {"torch/a.py": "class C: pass"}, table)[0].verdict == "needed"
    assert verdicts("2.10.0", {"torch/a.py": "class C:\n    f = 1"}, table)[0].verdict == "window too wide"
    (judgement,) = verdicts("2.10.0", {"torch/a.py": "class D: pass"}, table)
    assert judgement.verdict == "target missing"
    assert "torch.a has no 'C'" in judgement.reason


def test_all_slots_have_to_be_there(verdicts: Callable[..., list[Judgement]]) -> None:
    table = LACKS + '\nalso_bind = ["torch.b:f"]'
    assert verdicts("2.10.0", {**WITH_DEFECT, "torch/b.py": "from .a import f"}, table)[0].verdict == "needed"
    (judgement,) = verdicts("2.10.0", {**WITH_DEFECT, "torch/b.py": ""}, table)
    assert judgement.verdict == "target missing"
    assert "torch.b has no 'f'" in judgement.reason


def test_what_an_alias_stands_for_has_to_be_there(verdicts: Callable[..., list[Judgement]]) -> None:
    table = 'target = "torch.a:f"\naction = "alias"\nusing = "torch.a:gone"\nneeded_if = { lacks_parameter = "y" }'
    (judgement,) = verdicts("2.10.0", WITH_DEFECT, table)
    assert judgement.verdict == "target missing"
    assert "'gone'" in judgement.reason


def test_a_step_is_looked_at_where_it_is_for(verdicts: Callable[..., list[Judgement]]) -> None:
    table = """
        requires = ["torch>=2.9"]
        needed_if = { lacks_parameter = "blocking" }
        [[patch.step]]
        target = "torch.a:f"
        action = "wrap"
        using = "impl:make"
        [[patch.step]]
        requires = ["torch>=2.11"]
        target = "torch.b:f"
        action = "wrap"
        using = "impl:make"
    """
    assert verdicts("2.10.0", WITH_DEFECT, table)[0].verdict == "needed"
    assert verdicts("2.11.0", WITH_DEFECT, table)[0].verdict == "target missing"


def test_a_marker_or_a_build_is_no_matter_of_the_release(verdicts: Callable[..., list[Judgement]]) -> None:
    table = """
        target = "torch.a:f"
        requires = ["torch<2.11; sys_platform == 'no-such-platform'", "numpy<1"]
        build = ["xpu"]
        needed_if = { lacks_parameter = "blocking" }
    """
    assert verdicts("2.10.0", WITH_DEFECT, table)[0].verdict == "needed"
    assert verdicts("2.11.0", MENDED, table)[0].verdict == "not needed"


# --- one patch after another ---------------------------------------------------------------------------------------


def catcher(requires: str, names: str, more: str = "") -> str:
    return f'target = "torch.a:f"\nrequires = ["{requires}"]\nneeded_if = {{ does_not_catch = {names} }}\n{more}'


NOTHING_CAUGHT = {"torch/a.py": "def f():\n    try:\n        g()\n    except KeyError:\n        pass"}


def test_another_patch_may_look_after_the_defect(verdicts: Callable[..., list[Judgement]]) -> None:
    new = catcher("torch==2.10.*", '"ValueError"', 'id = "new"')
    old = catcher("torch<2.10", '["ValueError", "TypeError"]', 'id = "old"')
    first, second = verdicts("2.9.1", NOTHING_CAUGHT, new, old)
    assert (first.verdict, second.verdict) == ("not needed", "needed")
    assert "old looks after it there" in first.reason


def test_what_has_to_be_there_is_no_defect(verdicts: Callable[..., list[Judgement]]) -> None:
    table = """
        target = "torch.a:f"
        requires = ["torch{}"]
        needed_if = {{ has_parameter = "x", lacks_parameter = "blocking" }}
    """
    other = LACKS.replace(">=2.9,<2.11", "<2.11")
    found = verdicts("2.10.0", WITH_DEFECT, table.format(">=2.11"), other)
    assert [each.verdict for each in found] == ["not needed", "needed"]
    found = verdicts("2.10.0", {"torch/a.py": "def f(y): pass"}, table.format("<2.11"))
    assert found[0].verdict == "window too wide"


def test_only_a_defect_that_is_there_has_to_be_looked_after(verdicts: Callable[..., list[Judgement]]) -> None:
    half = {"torch/a.py": "def f():\n    try:\n        g()\n    except TypeError:\n        pass"}
    new = catcher("torch==2.10.*", '"ValueError"')
    old = catcher("torch<2.10", '["ValueError", "TypeError"]')
    assert [each.verdict for each in verdicts("2.10.0", half, new, old)] == ["needed", "not needed"]


@pytest.mark.parametrize(
    "other",
    [
        catcher("torch<2.10", '"TypeError"'),
        catcher("torch<2.9", '"ValueError"'),
        catcher("torch<2.10", '"ValueError"', "enabled = false"),
        catcher("torch<2.10", '"ValueError"').replace("torch.a:f", "torch.b:f"),
    ],
    ids=["against something else", "not for this release", "only where it is named", "of another target"],
)
def test_not_every_patch_looks_after_it(other: str, verdicts: Callable[..., list[Judgement]]) -> None:
    files = {**NOTHING_CAUGHT, "torch/b.py": NOTHING_CAUGHT["torch/a.py"]}
    found = verdicts("2.9.1", files, catcher("torch==2.10.*", '"ValueError"'), other)
    assert found[0].verdict == "window too narrow"
