"""The commands `lint` and `fix`: exit codes, formats, what goes to stdout and what to stderr."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

pytest.importorskip("ruff")
pytest.importorskip("libcst")

from compat_patches.cli.fix import fix
from compat_patches.cli.lint import lint

ROOT = Path(__file__).parents[2]
CODE = """\
import torch

event = torch.cuda.Event(True)
other = torch.cuda.Event(blocking=True)
text = "\N{EURO SIGN}"; torch.cuda.synchronize()
graph = torch.cuda.CUDAGraph()
torch.cuda.is_available()
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "a.py").write_text(CODE, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def _lint(*arguments: str) -> Result:
    return CliRunner().invoke(lint, list(arguments))


def _fix(*arguments: str) -> Result:
    return CliRunner().invoke(fix, list(arguments))


# -- exit codes ----------------------------------------------------------------------------------------------


def test_lint_ends_with_1_if_there_are_findings_and_0_if_there_are_only_notes(project: Path) -> None:
    assert _lint("a.py").exit_code == 1
    (project / "a.py").write_text("import torch\ngraph = torch.cuda.CUDAGraph()\n")
    result = _lint("a.py", "--min-torch", "2.11")
    assert result.exit_code == 0
    assert "note: torch.accelerator.Graph will replace torch.cuda.CUDAGraph" in result.stdout
    assert _lint("a.py", "--min-torch", "2.11", "--no-notes").stdout == ""
    assert _lint("a.py", "--min-torch", "2.12").exit_code == 1


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "Missing argument"),
        (["nowhere"], "does not exist"),
        (["a.py", "--min-torch", "new"], "not a torch release"),
        (["a.py", "--table", "no.toml"], "no.toml: the table of migrations cannot be read"),
        (["a.py", "--config", "no.toml"], "no.toml: there is no such configuration file"),
        (["a.py", "--format", "xml"], "xml"),
    ],
)
def test_misuse_ends_with_2(arguments: list[str], said: str, project: Path) -> None:
    result = _lint(*arguments)
    assert result.exit_code == 2
    assert said in result.stderr
    if "--format" not in arguments:
        assert _fix(*arguments).exit_code == 2


def test_fix_ends_with_1_as_long_as_something_is_left(project: Path) -> None:
    assert _fix("a.py").exit_code == 1
    assert _fix("a.py", "--write").exit_code == 1
    (project / "a.py").write_text("import torch\ntorch.cuda.synchronize()\n")
    assert _fix("a.py").exit_code == 1
    assert _fix("a.py", "--write").exit_code == 0
    assert _fix("a.py").exit_code == 0


@pytest.mark.parametrize(("library", "command"), [("ruff", "lint"), ("ruff", "fix"), ("libcst", "fix")])
def test_a_missing_library_names_the_extra(library: str, command: str, project: Path) -> None:
    code = (
        f"import sys; sys.path.insert(0, {str(ROOT)!r}); sys.modules[{library!r}] = None; "
        f"from compat_patches.cli.{command} import {command}; {command}(['a.py'])"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert result.returncode == 2
    assert f"{library} is not installed" in result.stderr
    assert "pip install 'compat-patches[lint]'" in result.stderr
    assert "Traceback" not in result.stderr


def test_nothing_of_this_is_imported_with_the_package() -> None:
    code = (
        f"import sys; sys.path.insert(0, {str(ROOT)!r}); import compat_patches; "
        "print([name for name in sys.modules if name.startswith('compat_patches.lint') or name in "
        "('libcst', 'ruff')])"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"


def test_lint_does_not_need_libcst(project: Path) -> None:
    code = (
        f"import sys; sys.path.insert(0, {str(ROOT)!r}); sys.modules['libcst'] = None; "
        "from compat_patches.cli.lint import lint; lint(['a.py', '--format', 'concise'])"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert result.returncode == 1 and result.stdout.count("torch-cuda-event") == 2


# -- formats -------------------------------------------------------------------------------------------------


def test_text_shows_the_code(project: Path) -> None:
    result = _lint("a.py")
    assert (
        "a.py:3:9: torch-cuda-event: torch.cuda.Event exists for CUDA and ROCm only; torch.Event is the "
        "event of whichever accelerator there is\n"
        "  |\n"
        "3 | event = torch.cuda.Event(True)\n"
        "  |         ^^^^^^^^^^^^^^^^\n"
    ) in result.stdout
    assert "= differs: its first parameter is a device" in result.stdout
    assert "\N{ESCAPE}" not in result.stdout
    assert "3 findings and 1 note in 1 file; torch 2.8 and newer" in result.stderr


def test_marks_stand_below_what_they_mark_behind_a_tab(project: Path) -> None:
    (project / "a.py").write_text("import torch\nif torch:\n\ttorch.cuda.synchronize()\n")
    assert "3 | \ttorch.cuda.synchronize()\n  | \t^^^^^^^^^^^^^^^^^^^^^^\n" in _lint("a.py").stdout


def test_concise_is_a_line_each(project: Path) -> None:
    lines = _lint("a.py", "--format", "concise").stdout.splitlines()
    assert [line.split(": ")[0] for line in lines] == ["a.py:3:9", "a.py:4:9", "a.py:5:13", "a.py:6:9"]


def test_json_is_a_document(project: Path) -> None:
    result = _lint("a.py", "--json", "--min-torch", "2.15")
    document = json.loads(result.stdout)
    assert document == json.loads(_lint("a.py", "--format", "json", "--min-torch", "2.15").stdout)
    assert document["schema"] == 1 and document["min_torch"] == "2.15" and document["files"] == 1
    first = document["findings"][0]
    assert (first["path"], first["row"], first["column"], first["end_column"]) == ("a.py", 3, 9, 25)
    assert (first["rule"], first["level"], first["name"], first["replacement"]) == (
        "torch-cuda-event",
        "finding",
        "torch.cuda.Event",
        "torch.Event",
    )
    assert result.stderr == ""


def test_github_annotates(project: Path) -> None:
    lines = _lint("a.py", "--format", "github").stdout.splitlines()
    assert lines[0].startswith(
        "::error file=a.py,line=3,endLine=3,col=9,endColumn=25,title=torch-cuda-event::torch.cuda.Event"
    )
    assert lines[3].startswith("::notice file=a.py,line=6")


def test_github_escapes_what_would_end_a_command(project: Path) -> None:
    (project / "a,b:c%.py").write_text("import torch\ntorch.cuda.synchronize()\n")
    result = _lint("a,b:c%.py", "--format", "github")
    assert result.stdout.startswith("::error file=a%2Cb%3Ac%25.py,line=2,")


def test_sarif_points_to_the_code(project: Path) -> None:
    (project / "b c.py").write_text("import torch\ntorch.cuda.synchronize(\n")
    document = json.loads(_lint("a.py", "b c.py", "--format", "sarif").stdout)
    assert document["version"] == "2.1.0"
    (run,) = document["runs"]
    rules = run["tool"]["driver"]["rules"]
    for result in run["results"]:
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
    assert [result["level"] for result in run["results"]] == ["error", "error", "error", "note"]
    region = run["results"][2]["locations"][0]["physicalLocation"]["region"]
    # Behind the euro sign: columns are code points, as columnKind says.
    assert run["columnKind"] == "unicodeCodePoints"
    assert region == {"startLine": 5, "startColumn": 13, "endLine": 5, "endColumn": 35}
    (notification,) = run["invocations"][0]["toolExecutionNotifications"]
    assert "b c.py does not parse" in notification["message"]["text"]


def test_all_shows_what_has_no_other_form(project: Path) -> None:
    assert "torch.cuda.is_available" not in _lint("a.py").stdout
    result = _lint("a.py", "--all", "--format", "concise")
    assert "a.py:7:1: torch-cuda-available" in result.stdout
    (project / "a.py").write_text("import torch\ntorch.cuda.is_available()\n")
    assert _lint("a.py", "--all").exit_code == 0


def test_statistics_count_by_name(project: Path) -> None:
    rows = [line.split("\t") for line in _lint("a.py", "--statistics").stdout.splitlines()]
    assert rows[0] == ["2", "finding", "torch-cuda-event", "torch.cuda.Event"]
    assert len(rows) == 3


def test_verdicts_say_what_fix_would_do(project: Path) -> None:
    lines = _lint("a.py", "--verdicts", "--format", "concise").stdout.splitlines()
    assert lines[0].endswith("[fix: rewritten]")
    assert "[fix: blocking=True: torch.Event takes blocking and ignores it" in lines[1]
    document = json.loads(_lint("a.py", "--verdicts", "--json").stdout)
    assert [finding["verdict"] is None for finding in document["findings"]] == [False, False, False, True]


def test_problems_go_to_stderr(project: Path) -> None:
    (project / "b.py").write_text("import torch\ntorch.cuda.synchronize(\n")
    result = _lint(".")
    assert "b.py: passed over: does not parse: line 3" in result.stderr
    assert "b.py" not in result.stdout
    (project / "a.py").unlink()
    assert _lint(".").exit_code == 0


def test_a_baseline_is_written_and_then_holds(project: Path) -> None:
    result = _lint("a.py", "--write-baseline", "known.json")
    assert (result.exit_code, result.stdout) == (0, "")
    result = _lint("a.py", "--baseline", "known.json")
    assert result.exit_code == 0
    assert "3 known to the baseline" in result.stderr
    # Written anew, it holds everything and not only what is new.
    (project / "setup.cfg").write_text("[compat-patches:lint]\nbaseline = known.json\n")
    assert "known.json: 3 findings" in _lint("a.py", "--write-baseline", "known.json").stderr


# -- fix -----------------------------------------------------------------------------------------------------


def test_fix_shows_a_diff_and_says_what_stays(project: Path) -> None:
    result = _fix("a.py", "--min-torch", "2.15")
    assert "-event = torch.cuda.Event(True)\n" in result.stdout
    assert "+event = torch.Event(enable_timing=True)\n" in result.stdout
    assert "a.py:4:9: torch.cuda.Event stays: blocking=True: torch.Event takes blocking" in result.stderr
    assert "2 can be rewritten in 1 of 1 files, 2 stay" in result.stderr
    assert (project / "a.py").read_text(encoding="utf-8") == CODE


def test_fix_writes_when_it_is_told_to(project: Path) -> None:
    result = _fix("a.py", "--write")
    assert result.stdout == ""
    assert "2 rewritten in 1 of 1 files, 1 stay" in result.stderr
    written = (project / "a.py").read_text(encoding="utf-8")
    assert written == CODE.replace("torch.cuda.Event(True)", "torch.Event(enable_timing=True)").replace(
        "torch.cuda.synchronize", "torch.accelerator.synchronize"
    )
    assert "0 rewritten in 0 of 1 files" in _fix("a.py", "--write").stderr
    assert (project / "a.py").read_text(encoding="utf-8") == written


def test_fix_leaves_what_is_allowed(project: Path) -> None:
    (project / "setup.cfg").write_text("[compat-patches:lint]\nallow = a.py\n")
    result = _fix("a.py")
    assert (result.exit_code, result.stdout) == (0, "")


def test_fix_rewrites_what_the_baseline_knows(project: Path) -> None:
    _lint("a.py", "--write-baseline", "known.json")
    (project / "setup.cfg").write_text("[compat-patches:lint]\nbaseline = known.json\n")
    assert _lint("a.py").exit_code == 0
    assert "+event = torch.Event(enable_timing=True)\n" in _fix("a.py").stdout


def test_fix_writes_json(project: Path) -> None:
    document = json.loads(_fix("a.py", "--json").stdout)
    assert document["schema"] == 1 and document["written"] is False
    (file,) = document["files"]
    assert file["path"] == "a.py" and file["changed"] and file["diff"].startswith("--- a/a.py\n")
    assert [finding["rewritten"] for finding in file["findings"]] == [True, False, True]
    assert file["findings"][1]["reason"].startswith("blocking=True")
