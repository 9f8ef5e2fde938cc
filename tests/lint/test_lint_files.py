"""Which files are looked at, and what happens to those that cannot be."""

from __future__ import annotations

import os
import shutil
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("ruff")
pytest.importorskip("libcst")

from compat_patches.lint import fixing, resolving, running
from compat_patches.lint import sources as files
from compat_patches.lint.errors import LintError
from compat_patches.lint.processes import map_in_processes
from compat_patches.lint.sources import Filter, Problem, Source
from compat_patches.lint.table import load_table

USE = "import torch\ntorch.cuda.synchronize()\n"
FIXED = "import torch\ntorch.accelerator.synchronize()\n"


def _run(*paths: Path) -> running.Report:
    return running.run(running.Options(paths, (2, 15)))


def _found(report: running.Report) -> list[str]:
    return [Path(finding.path).name for _, finding in report.shown]


def _reasons(report: running.Report) -> dict[str, str]:
    return {Path(problem.path).name: problem.reason for problem in report.problems}


def _fix_one(path: Path) -> fixing.Fixed:
    (result,) = fixing.fix(_run(path))
    assert isinstance(result, fixing.Fixed)
    return result


def test_what_cannot_be_read_is_reported_and_the_rest_is_looked_at(tmp_path: Path) -> None:
    (tmp_path / "good.py").write_text(USE)
    (tmp_path / "broken.py").write_text(USE + "def f(:\n")
    (tmp_path / "nul.py").write_text(USE + "\0\n")
    (tmp_path / "latin.py").write_bytes(b"# coding: latin-1\nimport torch\ntorch.cuda.synchronize()  # \xe9\n")
    (tmp_path / "link.py").symlink_to(tmp_path / "good.py")
    (tmp_path / "folder").symlink_to(tmp_path)
    report = _run(tmp_path)
    assert _found(report) == ["good.py"]
    reasons = _reasons(report)
    assert sorted(reasons) == ["broken.py", "latin.py", "link.py", "nul.py"]
    assert reasons["broken.py"].startswith("does not parse: line 3")
    assert reasons["nul.py"].startswith("does not parse")
    assert "is not UTF-8: byte 0xe9" in reasons["latin.py"]
    assert "is a link" in reasons["link.py"]


def test_a_file_that_vanishes_meanwhile_is_reported(tmp_path: Path) -> None:
    sources, problems = files.candidates([str(tmp_path / "gone.py")], load_table())
    assert sources == []
    assert [problem.reason for problem in problems] == ["vanished before it could be read"]


@pytest.mark.skipif(os.getuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "secret.py"
    path.write_text(USE)
    path.chmod(0)
    assert "cannot be read" in _reasons(_run(tmp_path))["secret.py"]


def test_a_link_that_is_named_is_followed_and_stays_a_link(tmp_path: Path) -> None:
    real = tmp_path / "real.py"
    real.write_text(USE)
    link = tmp_path / "link.py"
    link.symlink_to(real)
    assert fixing.write(_fix_one(link)) is None
    assert link.is_symlink()
    assert real.read_text() == FIXED


def test_folders_of_tools_and_caches_are_left_out(tmp_path: Path) -> None:
    for folder in (".git", ".venv", "node_modules", "__pycache__", "package"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / f"{folder.strip('._')}.py").write_text(USE)
    (tmp_path / "notes.txt").write_text(USE)
    (tmp_path / "stub.pyi").write_text(USE)
    assert sorted(_found(_run(tmp_path))) == ["package.py", "stub.pyi"]
    assert _found(_run(tmp_path / ".venv")) == ["venv.py"]


def test_a_file_that_is_named_twice_is_looked_at_once(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_text(USE)
    assert len(_run(tmp_path, path, path).shown) == 1


@pytest.mark.parametrize("name", ["with space.py", "«ü».py", "a'b.py", "-.py", "@a.py", "per%20cent.py"])
def test_names_of_files_may_be_anything(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(USE)
    report = _run(tmp_path)
    assert not report.problems
    assert _found(report) == [name]


@pytest.mark.parametrize("name", [b"two\nlines.py", b"latin-\xe9.py"])
def test_names_that_ruff_cannot_be_told_are_reported(name: bytes, tmp_path: Path) -> None:
    path = os.path.join(os.fsencode(tmp_path), name)
    with open(path, "wb") as file:
        file.write(USE.encode())
    report = _run(tmp_path)
    (problem,) = report.problems
    assert "has a name" in problem.reason and problem.path.isascii() and problem.path.isprintable()


def test_the_users_own_ruff_configuration_says_nothing_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "ruff.toml").write_text('exclude = ["*"]\n[lint]\nselect = ["E"]\nignore = ["TID251"]\n')
    (tmp_path / "a.py").write_text(USE)
    monkeypatch.setenv("RUFF_OUTPUT_FORMAT", "concise")
    monkeypatch.setenv("RUFF_OUTPUT_FILE", str(tmp_path / "out"))
    monkeypatch.chdir(tmp_path)
    assert _found(_run(Path("."))) == ["a.py"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.py", "ruff.toml"]


def test_nothing_is_parsed_that_does_not_name_torch_cuda() -> None:
    may_hold = Filter(load_table())
    for text in (
        "import torch\nx.cuda()\n",
        'import torch\ntorch.device("cuda")\n',
        'import torch\ntorch.zeros(1, device="cuda:0")\n',
        "cuda.synchronize()\n",
        "import torch\n",
    ):
        assert not may_hold(text.encode()), text
    for text in (
        "import torch\ntorch.cuda.synchronize()",
        "import torch as t\nt . \\\n cuda . synchronize()",
        "from torch import (\n    cuda)\n",
        "from torch import nn, cuda as c\n",
        'import torch\ngetattr(torch, "cuda")',
        "import torch\ngetattr(torch,\n 'cuda')",
        'mock.patch("torch.cuda.synchronize")',
        "from torch._C import _host_emptyCache",
    ):
        assert may_hold(text.encode()), text


def test_many_files_are_read_by_many_processes_with_the_same_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(60):
        (tmp_path / f"f{number:02}.py").write_text(USE if number % 2 else "x = 1\n")
    alone = _run(tmp_path)
    monkeypatch.setattr(running, "_FILES_WORTH_PROCESSES", 1)
    monkeypatch.setattr(running, "_CHUNK", 7)
    monkeypatch.setattr(running, "available_cores", lambda: 2)
    together = _run(tmp_path)
    assert [finding for _, finding in together.shown] == [finding for _, finding in alone.shown]
    assert len(together.shown) == 30


# -- writing -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "code",
    [
        b"import torch\r\nCALL()\r\n",
        b"import torch\nCALL()",
        b"\xef\xbb\xbfimport torch\nCALL()\n",
        b"import torch\n\x0c\nCALL() ;\n\n\n",
        b"import torch\nif x:\n\tCALL( ) # \xe2\x80\xa8 \n",
        b"import torch\nx = '''\r\n'''\ny = 1 \nCALL()\r\n",
        b"#!/usr/bin/env python\n# -*- coding: utf-8 -*-\nimport torch;CALL()#\n# end",
    ],
    ids=["CRLF", "no end", "BOM", "form feed and semicolon", "tab and U+2028", "mixed ends", "comments"],
)
def test_every_other_byte_stays(code: bytes, tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_bytes(code.replace(b"CALL", b"torch.cuda.synchronize"))
    assert fixing.write(_fix_one(path)) is None
    assert path.read_bytes() == code.replace(b"CALL", b"torch.accelerator.synchronize")


def test_line_ends_that_libcst_does_not_keep_are_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_bytes(USE.replace("\n", "\r").encode())
    (result,) = fixing.fix(_run(path))
    assert isinstance(result, Problem) and "does not give back the text" in result.reason


def test_permissions_stay_and_nothing_is_left_behind(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_text(USE)
    path.chmod(0o750)
    assert fixing.write(_fix_one(path)) is None
    assert stat.S_IMODE(path.stat().st_mode) == 0o750
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.py"]


def test_a_file_that_was_changed_meanwhile_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_text(USE)
    fixed = _fix_one(path)
    path.write_text(USE + "x = 1\n")
    problem = fixing.write(fixed)
    assert isinstance(problem, Problem) and "changed while it was looked at" in problem.reason
    assert path.read_text() == USE + "x = 1\n"
    path.unlink()
    problem = fixing.write(fixed)
    assert isinstance(problem, Problem) and "vanished" in problem.reason


def test_a_failed_write_leaves_the_file_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.py"
    path.write_text(USE)
    fixed = _fix_one(path)

    def fail(*arguments: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(shutil, "copymode", fail)
    problem = fixing.write(fixed)
    assert isinstance(problem, Problem) and "No space left" in problem.reason
    assert path.read_text() == USE
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.py"]


def test_the_diff_applies(tmp_path: Path) -> None:
    git = shutil.which("git")
    if git is None:
        pytest.skip("there is no git to apply it")
    path = tmp_path / "a.py"
    path.write_text("import torch\ntorch.cuda.synchronize()")
    fixed = fixing.Fixed(Source("a.py", path.read_text()), _fix_one(path).text, [])
    subprocess.run([git, "apply", "--no-index", "-"], input=fixed.diff().encode(), cwd=tmp_path, check=True)
    assert path.read_text() == "import torch\ntorch.accelerator.synchronize()"


def test_many_files_are_fixed_by_many_processes_with_the_same_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(12):
        (tmp_path / f"f{number:02}.py").write_text(USE)
    report = _run(tmp_path)
    monkeypatch.setattr(fixing, "available_cores", lambda: 1)
    alone = list(fixing.fix(report))
    monkeypatch.setattr(fixing, "available_cores", lambda: 2)
    assert list(fixing.fix(report)) == alone
    assert len(alone) == 12


def test_a_program_without_a_guard_may_call_it(tmp_path: Path) -> None:
    """Processes that import the main module again would run such a program again and again."""
    folder = tmp_path / "code"
    folder.mkdir()
    for number in range(10):
        (folder / f"f{number}.py").write_text(USE)
    program = tmp_path / "program.py"
    program.write_text(
        f"import sys; sys.path.insert(0, {str(Path(__file__).parents[2])!r})\n"
        "from compat_patches.lint import fixing\n"
        "from compat_patches.cli.fix import fix\n"
        "fixing.available_cores = lambda: 2\n"
        f"fix([{str(folder)!r}, '--write'])\n"
    )
    result = subprocess.run([sys.executable, str(program)], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    assert result.stderr == "10 rewritten in 10 of 10 files, 0 stay\n"


def _die(number: int) -> int:
    if number == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return number


def test_a_process_that_is_killed_ends_the_run_with_a_reason() -> None:
    with pytest.raises(LintError, match="was killed"):
        list(map_in_processes(2, _die, [0, 1, 2]))


def test_code_that_is_nested_too_deeply_is_passed_over(tmp_path: Path) -> None:
    depth = 100 * sys.getrecursionlimit()
    (tmp_path / "deep.py").write_text("import torch\ncuda = torch.cuda\nx = " + "-" * depth + "1\n")
    (tmp_path / "good.py").write_text(USE)
    report = _run(tmp_path)
    assert _found(report) == ["good.py"]
    assert _reasons(report)["deep.py"].endswith("it is nested too deeply")


def test_a_long_sum_is_no_problem(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("import torch\ncuda = torch.cuda\nx = 0" + " + 1" * 900 + "\n" + USE)
    report = _run(tmp_path)
    assert not report.problems and len(report.shown) == 1
    (fixed,) = fixing.fix(report)
    assert isinstance(fixed, fixing.Fixed) and fixed.changed


def test_another_failure_of_ruff_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.py").write_text(USE)
    monkeypatch.setattr(resolving, "configuration", lambda table: "no = [toml")
    with pytest.raises(LintError, match=r"(?s)ruff ended with 2: .*TOML"):
        _run(tmp_path)
    monkeypatch.setattr(resolving, "find_ruff", lambda: str(tmp_path / "no-ruff"))
    with pytest.raises(LintError, match="cannot be started"):
        _run(tmp_path)
