"""`compat-patches check` and `compat-patches schema`, for authors of manifests."""

import json
import os
import sys
import types
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from declared import ROOT, document, run_python, table, toml

from compat_patches import manifest
from compat_patches.cli import main
from compat_patches.fields import STEP_FIELDS
from compat_patches.predicates import Circumstances
from compat_patches.schema import json_schema

SOUND = {
    "requires": ["torch>=2.10,<2.11"],
    "target": "json.decoder:JSONDecoder.decode",
    "using": "json.encoder:JSONEncoder",
    "needed_if": {"lacks_parameter": "x"},
}


@pytest.fixture(autouse=True)
def with_torch(monkeypatch):
    """What is checked is checked against this torch, whichever is installed."""
    monkeypatch.setattr(Circumstances, "current", classmethod(lambda cls: cls("2.10.0", "cpu")))


def run(*arguments: str | Path) -> Result:
    result = CliRunner().invoke(main, [*map(str, arguments)])
    assert result.exception is None or isinstance(result.exception, SystemExit)
    return result


def file(folder: Path, name: str = "some", **changes) -> Path:
    path = folder / f"{name}.toml"
    path.write_bytes(toml(document(table(**{**SOUND, **changes}), name=name)))
    return path


def warnings(folder: Path, **changes) -> list[str]:
    result = run("check", file(folder, **changes))
    assert result.exit_code == 0, result.output
    return [line.partition("warning: ")[2] for line in result.output.splitlines() if "warning: " in line]


# --- check ---------------------------------------------------------------------------------------------------------


def test_a_sound_manifest_is_counted(tmp_path):
    path = file(tmp_path)
    result = run("check", path)
    assert (result.exit_code, result.output) == (0, f"{path}: 1 patch, 0 warnings\n")


def test_the_built_in_manifest_can_be_loaded():
    result = run("check", ROOT / "patches.toml")
    assert result.exit_code == 0
    assert f" {len(manifest.load(ROOT / 'patches.toml').patches)} patches, " in result.output


def test_all_problems_of_all_files_are_printed(tmp_path):
    sound, broken = file(tmp_path), file(tmp_path, "broken", summary=None, scope="thread")
    result = run("check", broken, sound, tmp_path / "missing.toml")
    assert result.exit_code == 1
    assert result.output.splitlines() == [
        f"{broken}: patch 'a-patch': key 'scope': found the string 'thread'; expected one of process, context",
        f"{broken}: patch 'a-patch': key 'summary': missing; expected a string",
        f"{broken}: 2 problems; the manifest cannot be loaded",
        f"{sound}: 1 patch, 0 warnings",
        f"{tmp_path}/missing.toml: cannot be read: No such file or directory",
        f"{tmp_path}/missing.toml: 1 problem; the manifest cannot be loaded",
    ]


@pytest.mark.parametrize("arguments", [(), ("--nonsense", "x.toml")])
def test_misuse_is_status_2(arguments):
    assert run("check", *arguments).exit_code == 2


def test_a_machine_reads_the_same(tmp_path):
    sound, broken = file(tmp_path, needed_if=None), file(tmp_path, "broken", summary=None)
    result = run("check", "--json", sound, broken)
    assert result.exit_code == 1
    found = json.loads(result.output)
    (warning,) = found["manifests"][0].pop("warnings")
    assert warning.startswith("patch 'a-patch': no needed_if: ")
    assert found == {
        "schema": 1,
        "manifests": [
            {"source": str(sound), "name": "some", "patches": 1, "problems": []},
            {
                "source": str(broken),
                "name": None,
                "patches": 0,
                "problems": ["patch 'a-patch': key 'summary': missing; expected a string"],
                "warnings": [],
            },
        ],
    }


def test_a_name_that_no_encoding_can_write_is_written_all_the_same(tmp_path):
    name = os.fsdecode(b"\xff.toml")
    for options in ((), ("--json",)):
        result = run("check", *options, tmp_path / name)
        assert result.exit_code == 1
        assert "udcff.toml" in result.output


# --- what an author should know ------------------------------------------------------------------------------------


def test_a_patch_without_evidence(tmp_path):
    (warning,) = warnings(tmp_path, needed_if=None)
    assert warning.startswith("patch 'a-patch': no needed_if: applied also where upstream has fixed the defect")


def test_a_patch_without_requirements(tmp_path):
    assert warnings(tmp_path, requires=None) == ["patch 'a-patch': no requires: meant for every version of json"]
    assert warnings(tmp_path, requires=None, **in_a_step(requires=["torch>=2"])) == []


def in_a_step(**changes) -> dict:
    step = {"target": SOUND["target"], "action": "wrap", "using": SOUND["using"], **changes}
    return {"target": None, "action": None, "using": None, "step": [step]}


def test_a_replacement_without_pins(tmp_path):
    unpinned = (
        "patch 'a-patch': json.decoder:JSONDecoder.decode is replaced without pins: that upstream has changed it since "
        "will not be noticed"
    )
    assert warnings(tmp_path, action="replace") == [unpinned]
    assert warnings(tmp_path, **in_a_step(action="replace")) == [unpinned]
    assert warnings(tmp_path, action="replace", pins={"2.10": "0" * 32}) == []


def test_upstream_that_is_no_link(tmp_path):
    assert warnings(tmp_path, upstream=["PR 1"]) == ["patch 'a-patch': upstream 'PR 1' is no link"]


def test_modules_that_are_not_there(tmp_path):
    assert warnings(
        tmp_path, target="json.missing:f", also_bind=["json.decoder:x", "missing:f"], using="json.no:f"
    ) == [
        "patch 'a-patch': there is no module json.missing here",
        "patch 'a-patch': there is no module missing here",
        "patch 'a-patch': there is no module json.no here",
    ]


@pytest.mark.parametrize(
    "module", ["sys", "os.path", "json", "json.decoder", "_json", "click", "made_at_run_time.inner"]
)
def test_modules_that_are_there(tmp_path, monkeypatch, module):
    monkeypatch.setitem(sys.modules, "made_at_run_time.inner", types.ModuleType("made_at_run_time.inner"))
    assert warnings(tmp_path, target=f"{module}:name") == []


def test_the_target_of_another_version_need_not_be_there(tmp_path):
    assert warnings(tmp_path, requires=["torch>=3"], target="json.missing:f") == []
    assert warnings(tmp_path, requires=["torch>=3"], target="missing:f") == [
        "patch 'a-patch': missing is not installed, so its target could not be looked for"
    ]


def test_the_environment_is_always_there_and_has_no_code(tmp_path):
    env = {"target": None, "using": None, "action": "env", "key": "A", "value": "1", "needed_if": None}
    assert warnings(tmp_path, **env) == []


def test_nothing_is_imported_to_look_for_a_module(tmp_path):
    package = tmp_path / "package"
    package.mkdir()
    (package / "__init__.py").write_text("raise SystemExit('imported')")
    (package / "inner.py").write_text("raise SystemExit('imported')")
    path = file(tmp_path, target="package.inner:f", using="package.inner:g", requires=["package-of-nobody"])
    code = f"from compat_patches.cli import main\nmain(['check', {str(path)!r}])"
    assert run_python(code, tmp_path) == f"{path}: 1 patch, 0 warnings"


# --- schema --------------------------------------------------------------------------------------------------------


def test_the_schema_is_printed():
    result = run("schema")
    assert result.exit_code == 0
    assert json.loads(result.output) == json_schema()
    assert all(field.doc in result.output.replace('\\"', '"') for field in STEP_FIELDS.values())


def test_the_schema_takes_no_arguments():
    assert run("schema", "x").exit_code == 2
