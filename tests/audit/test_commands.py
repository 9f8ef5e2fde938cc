"""The commands: what they print, write and exit with."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from compat_patches import manifest
from compat_patches.audit import documents
from compat_patches.cli import audit as commands

Make = Callable[..., Path]

OLD = {"torch/a.py": "class C:\n    def f(self, x):\n        return x + 1\n"}
NEW = {"torch/a.py": "class C:\n    def f(self, x, blocking=False):\n        return x + 1\n"}
TABLE = """
    id = "one"
    target = "torch.a:C.f"
    requires = ["{requires}"]
    needed_if = {{ lacks_parameter = "blocking" }}
"""


def run(command: str, *arguments: object) -> Result:
    result = CliRunner().invoke(getattr(commands, command), [str(argument) for argument in arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


@pytest.fixture
def places(make_wheel: Make, make_folder: Make) -> list[Path]:
    return [make_wheel("2.10.0", OLD), make_folder("2.11.0+cu128", NEW)]


@pytest.fixture
def fine(make_manifest: Make) -> Path:
    return make_manifest(TABLE.format(requires="torch<2.11"))


@pytest.fixture
def spoilt(make_manifest: Make) -> Path:
    return make_manifest(TABLE.format(requires="torch<2.12"), name="spoilt")


# --- audit ---------------------------------------------------------------------------------------------------------


def test_the_table_has_symbols_that_need_no_colour(places: list[Path], fine: Path) -> None:
    result = run("audit", "--manifest", fine, "--torch", places[0], places[1])
    assert result.exit_code == 0
    lines = [line.split() for line in result.stdout.splitlines()]
    assert lines[0] == ["patch", "window", "2.10.0", "2.11.0"]
    assert lines[1] == ["one", "<2.11", "●", "·"]
    assert "1 patch, 2 releases: no mismatch" in result.stdout
    assert "\x1b" not in result.stdout


def test_a_mismatch_is_named_and_is_the_exit_status(places: list[Path], spoilt: Path) -> None:
    result = run("audit", "--manifest", spoilt, "--torch", places[0], "--torch", places[1])
    assert result.exit_code == 1
    assert "✗ wide" in result.stdout
    assert "one on 2.11.0: window too wide\n  torch is 2.11.0+cu128, wanted torch<2.12, but the defect" in result.stdout
    assert "1 patch, 2 releases: 1 mismatch" in result.stdout


def test_a_place_that_cannot_be_read_is_a_row_and_the_others_go_on(
    places: list[Path], fine: Path, tmp_path: Path
) -> None:
    (tmp_path / "broken.whl").write_text("no")
    result = run("audit", "--manifest", fine, "--torch", tmp_path / "broken.whl", *places)
    assert result.exit_code == 1
    assert "broken.whl: not read" in result.stdout
    assert "one      <2.11       ●         ·" in result.stdout
    assert "no mismatch; 1 place could not be read" in result.stdout


def test_json(places: list[Path], spoilt: Path) -> None:
    result = run("audit", "--json", "--manifest", spoilt, "--torch", *places, "no-such-place")
    document = json.loads(result.stdout)
    assert (document["schema"], document["ok"], document["mismatches"]) == (1, False, 1)
    assert document["counts"]["needed"] == 1
    assert [release["version"] for release in document["releases"]] == ["2.10.0", "2.11.0+cu128"]
    assert document["unread"][0]["where"] == "no-such-place"
    (patch,) = document["patches"]
    assert patch["releases"]["2.11.0"]["verdict"] == "window too wide"
    assert patch["releases"]["2.11.0"]["evidence"] is False
    assert patch["releases"]["2.10.0"]["reason"]


def test_markdown_goes_between_the_marks_of_a_file(places: list[Path], spoilt: Path, tmp_path: Path) -> None:
    page = tmp_path / "README.md"
    page.write_text(f"# Mine\n\n{documents.BEGIN}\nold\n{documents.END}\n\nmore\n")
    for _ in range(2):
        run("audit", "--manifest", spoilt, "--torch", *places, "--markdown", page)
    text = page.read_text()
    assert text.startswith(f"# Mine\n\n{documents.BEGIN}\n| patch | window | 2.10.0 | 2.11.0 |\n")
    assert text.endswith(f"{documents.END}\n\nmore\n")
    assert "| `one` | \\<2.12 | ● | **✗ wide** |" in text
    assert "- `one` on 2.11.0: **window too wide**" in text
    assert "old" not in text


def test_markdown_does_not_overwrite_a_file_without_marks(places: list[Path], fine: Path, tmp_path: Path) -> None:
    page = tmp_path / "README.md"
    page.write_text("# Mine\n")
    result = run("audit", "--manifest", fine, "--torch", *places, "--markdown", page)
    assert result.exit_code == 2
    assert "has no place for the table; put two lines into it" in result.stderr
    assert page.read_text() == "# Mine\n"


def test_the_picture_shows_windows_evidence_and_mismatches(places: list[Path], spoilt: Path, tmp_path: Path) -> None:
    run("audit", "--manifest", spoilt, "--torch", *places, "--svg", tmp_path / "a.svg", "--html", tmp_path / "a.html")
    svg = (tmp_path / "a.svg").read_text(encoding="utf-8")
    root = ElementTree.fromstring(svg)
    space = {"s": "http://www.w3.org/2000/svg"}
    marks = root.findall("s:g", space)
    titles = [title.text for title in root.findall(".//s:title", space)]
    assert titles[0] is not None and titles[0].startswith("torch 2.10.0: needed: ")
    assert titles[1] is not None and titles[1].startswith("torch 2.11.0+cu128: window too wide: ")
    bar = next(rect for rect in root.findall("s:rect", space) if rect.get("class") == "bar")
    flag = next(rect for mark in marks for rect in mark.findall("s:rect", space) if rect.get("class") == "flag")
    # The window covers both releases; the flag stands on the second.
    left, width = float(bar.get("x", "")), float(bar.get("width", ""))
    flagged = float(flag.get("x", "")) + float(flag.get("width", "")) / 2
    assert left + width / 2 < flagged < left + width
    assert "1 mismatch" in svg
    page = (tmp_path / "a.html").read_text(encoding="utf-8")
    assert svg in page
    assert '<tr class="mismatch"><td><code>one</code></td><td>2.11.0</td>' in page


def test_names_in_a_picture_cannot_break_out(make_folder: Make, make_manifest: Make, tmp_path: Path) -> None:
    table = 'target = "torch.a:C.f"\nneeded_if = { lacks_constant = "<script>alert(1)</script>" }'
    run(
        "audit",
        "--manifest",
        make_manifest(table),
        "--torch",
        make_folder("2.10.0", OLD),
        "--html",
        tmp_path / "a.html",
    )
    assert "<script>" not in (tmp_path / "a.html").read_text(encoding="utf-8")


def test_a_second_audit_reads_no_source(places: list[Path], fine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = run("audit", "--json", "--manifest", fine, "--torch", *places)

    def parse(*arguments: object) -> None:
        raise AssertionError("parsed a file again")

    monkeypatch.setattr("compat_patches.audit.modules._parse", parse)
    monkeypatch.setattr("compat_patches.audit.trees.Wheel._open", parse)
    assert run("audit", "--json", "--manifest", fine, "--torch", *places).stdout == first.stdout
    with pytest.raises(AssertionError, match="parsed a file again"):
        run("audit", "--no-cache", "--manifest", fine, "--torch", *places)


def test_a_changed_file_is_read_again(places: list[Path], fine: Path) -> None:
    assert run("audit", "--manifest", fine, "--torch", *places).exit_code == 0
    (places[1] / "torch/a.py").write_text(OLD["torch/a.py"])
    assert run("audit", "--manifest", fine, "--torch", *places).exit_code == 1


@pytest.mark.parametrize("damage", ["", "{", "[]", '{"head": 1, "answers": {}}'])
def test_a_damaged_cache_is_passed_over(places: list[Path], fine: Path, cache_of_its_own: Path, damage: str) -> None:
    run("audit", "--manifest", fine, "--torch", *places)
    kept = list((cache_of_its_own / "answers").iterdir())
    assert len(kept) == 2
    for path in kept:
        path.write_text(damage)
    assert run("audit", "--manifest", fine, "--torch", *places).exit_code == 0


def test_a_cache_that_cannot_be_written_does_no_harm(
    places: list[Path], fine: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert run("audit", "--manifest", fine, "--torch", *places).exit_code == 0


def test_only_shows_one_and_still_knows_the_others(places: list[Path], make_manifest: Make) -> None:
    path = make_manifest(
        TABLE.format(requires="torch>=2.11"), TABLE.format(requires="torch<2.11").replace('"one"', '"two"')
    )
    assert "one on 2.10.0: window too narrow" not in run("audit", "--manifest", path, "--torch", places[0]).stdout
    result = run("audit", "--manifest", path, "--only", "one", "--torch", places[0])
    assert result.exit_code == 0
    assert "two" not in result.stdout.split("patch", 1)[1].split("\n")[1]


@pytest.mark.parametrize(
    "arguments, said",
    [
        (["--manifest", "MANIFEST"], "no release to look at; say --torch WHERE"),
        (["--manifest", "nowhere.toml", "--torch", "x"], "nowhere.toml: cannot be read"),
        (["--manifest", "MANIFEST", "--only", "onee", "--torch", "x"], "did you mean 'one'?"),
    ],
)
def test_misuse(arguments: list[str], said: str, fine: Path) -> None:
    result = run("audit", *[str(fine) if argument == "MANIFEST" else argument for argument in arguments])
    assert result.exit_code == 2
    assert said in result.stderr


def test_running_code_is_asked_only_where_the_user_wants_it(
    tmp_path: Path, make_folder: Make, make_manifest: Make
) -> None:
    import sys

    make_folder("2.10.0", OLD, name="env/lib/python3/site-packages")
    (tmp_path / "env/bin").mkdir()
    (tmp_path / "env/pyvenv.cfg").write_text("")
    python = tmp_path / "env/bin/python"
    # An interpreter that sees this torch and what the package itself needs.
    python.write_text(
        f'#!/bin/sh\nPYTHONPATH={tmp_path}/env/lib/python3/site-packages:{tmp_path} exec {sys.executable} "$@"\n'
    )
    python.chmod(0o755)
    (tmp_path / "impl.py").write_text("print('noise')\ndef probe():\n    return True, 'the probe has seen it'\n")
    path = make_manifest('id = "one"\ntarget = "torch.a:C.f"\nneeded_if = { probe = "impl:probe" }')
    asked = ("--json", "--manifest", path, "--torch", tmp_path / "env")

    def verdict(result: Result) -> tuple[str, str]:
        found = json.loads(result.stdout)["patches"][0]["releases"]["2.10.0"]
        return found["verdict"], found["reason"]

    assert verdict(run("audit", *asked))[0] == "unknown"
    assert verdict(run("audit", "--run", *asked)) == (
        "needed",
        "torch is 2.10.0, every version wanted; the probe has seen it",
    )
    (tmp_path / "impl.py").write_text("def probe():\n    raise OSError('no such device')\n")
    assert verdict(run("audit", "--run", *asked)) == ("unknown", "OSError: no such device")
    (tmp_path / "impl.py").write_text("def probe():\n    import os\n    os._exit(7)\n")
    assert verdict(run("audit", "--run", *asked)) == ("unknown", f"{python} failed: exit status 7")


def test_a_wheel_cannot_be_run(make_wheel: Make, make_manifest: Make) -> None:
    path = make_manifest('target = "torch.a:C.f"\nneeded_if = { probe = "impl:probe" }')
    result = run("audit", "--run", "--manifest", path, "--torch", make_wheel("2.10.0", OLD))
    assert "cannot be run; name an environment that has torch 2.10.0" in result.stdout


# --- diff ----------------------------------------------------------------------------------------------------------


def test_diff_shows_the_line_that_changed(places: list[Path], fine: Path) -> None:
    result = run("diff", "one", "--manifest", fine, "--torch", places[0], "--torch", places[1])
    assert result.exit_code == 1
    assert "--- torch 2.10.0 torch/a.py:2\n+++ torch 2.11.0+cu128 torch/a.py:2\n" in result.stdout
    assert "-    def f(self, x):\n+    def f(self, x, blocking=False):\n" in result.stdout


def test_diff_says_when_only_comments_differ(make_folder: Make, fine: Path) -> None:
    old = make_folder("2.9.0", OLD, name="old")
    new = make_folder(
        "2.10.0", {"torch/a.py": OLD["torch/a.py"].replace("return", "# why\n        return")}, name="new"
    )
    result = run("diff", "one", old, "--manifest", fine, "--torch", new)
    assert result.exit_code == 0
    assert "the same, but for comments and formatting" in result.stdout
    result = run("diff", "one", old, old, "--manifest", fine, "--torch", old)
    assert "found 1 releases, expected two" in result.stderr


BODY = """
    def {name}(self, x):
        total = 0
        for item in range(x):
            total += item * item
        return total
"""


@pytest.mark.parametrize(
    "files, note",
    [
        (
            {"torch/a.py": "from .b import C", "torch/b.py": "class C:" + BODY.format(name="f")},
            "is defined as torch.b:C.f",
        ),
        ({"torch/a.py": "class C:" + BODY.format(name="g")}, "what is most like it is torch.a:C.g"),
        ({"torch/sub/b.py": "class D:" + BODY.format(name="f")}, "what is most like it is torch.sub.b:D.f"),
    ],
    ids=["re-exported", "renamed", "moved"],
)
def test_diff_says_where_the_code_went(files: dict[str, str], note: str, make_folder: Make, fine: Path) -> None:
    old = make_folder("2.9.0", {"torch/a.py": "class C:" + BODY.format(name="f")}, name="old")
    new = make_folder("2.10.0", files, name="new")
    result = run("diff", "one", "--manifest", fine, "--torch", old, "--torch", new)
    assert note in result.stdout
    assert result.exit_code == (0 if "is defined as" in note else 1)
    assert "total += item * item" not in [line[1:].strip() for line in result.stdout.splitlines() if line[:1] in "+-"]


def test_diff_of_what_is_gone(make_folder: Make, fine: Path) -> None:
    old = make_folder("2.9.0", OLD, name="old")
    new = make_folder("2.10.0", {"torch/a.py": ""}, name="new")
    result = run("diff", "one", "--manifest", fine, "--torch", old, "--torch", new)
    assert result.exit_code == 1
    assert "torch.a:C.f is not there: no 'C'" in result.stdout
    assert "+++ torch 2.10.0 (not there)" in result.stdout


# --- pin -----------------------------------------------------------------------------------------------------------


def test_pin_writes_hashes_and_leaves_the_rest(places: list[Path], make_manifest: Make, tmp_path: Path) -> None:
    pytest.importorskip("tomlkit")
    path = make_manifest(TABLE.format(requires="torch<2.12"))
    path.write_text("# A comment to keep.\n" + path.read_text())
    before = path.read_text()
    result = run("pin", "one", "--manifest", path, "--torch", *places, "--dry-run")
    assert result.exit_code == 0 and path.read_text() == before
    result = run("pin", "one", "--manifest", path, "--torch", *places)
    assert result.exit_code == 0
    (patch,) = manifest.load(path).patches
    assert list(patch.steps[0].pins) == ["2.10.0", "2.11.0"]
    assert patch.steps[0].pins["2.10.0"] != patch.steps[0].pins["2.11.0"]
    assert path.read_text().startswith("# A comment to keep.\n")
    assert set(before.splitlines()) <= set(path.read_text().splitlines())
    assert "nothing to change" in run("pin", "one", "--manifest", path, "--torch", *places).stdout

    # What was pinned has not drifted; by one operator it has, by a comment it has not.
    assert "drifted" not in run("audit", "--manifest", path, "--torch", places[0]).stdout
    source = (places[1] / "torch/a.py").read_text()
    (places[1] / "torch/a.py").write_text(source.replace("x + 1", "x  +  1  # one more"))
    assert "drifted" not in run("audit", "--manifest", path, "--torch", places[1]).stdout
    (places[1] / "torch/a.py").write_text(source.replace("x + 1", "x - 1").replace(", blocking=False", ""))
    assert "one on 2.11.0: drifted" in run("audit", "--manifest", path, "--torch", places[1]).stdout


def test_pin_says_what_has_no_hash(make_folder: Make, make_manifest: Make, places: list[Path]) -> None:
    path = make_manifest(TABLE.format(requires="torch<2.11"))
    result = run("pin", "one", "--manifest", path, "--dry-run", "--torch", *places)
    assert result.exit_code == 0
    assert "torch 2.11.0: no pin: outside of the window" in result.stdout
    gone = make_folder("2.9.0", {"torch/a.py": "class C: pass"}, name="gone")
    result = run("pin", "one", "--manifest", path, "--dry-run", "--torch", gone)
    assert result.exit_code == 1
    assert "torch 2.9.0: no pin: torch.a:C.f has no hash: there is no 'f'" in result.stdout


# --- expire --------------------------------------------------------------------------------------------------------


def test_expire_names_the_dead_and_the_lines(make_manifest: Make, tmp_path: Path) -> None:
    (tmp_path / "impl.py").write_text(
        "import os\n\n\ndef old(original):\n    return original\n\n\ndef new(original):\n    return 1\n"
    )
    path = make_manifest(
        TABLE.format(requires="torch<2.11") + '\naction = "wrap"\nusing = "impl:old"',
        TABLE.format(requires="torch>=2.8").replace('"one"', '"two"') + '\naction = "wrap"\nusing = "impl:new"',
    )
    assert run("expire", "--oldest-torch", "2.10", "--manifest", path).exit_code == 0
    result = run("expire", "--oldest-torch", "2.11", "--manifest", path)
    assert result.exit_code == 1
    assert "one: its window (<2.11) ends before torch 2.11" in result.stdout
    assert f"{tmp_path}/impl.py:4-5  old, which nothing else uses" in result.stdout
    document = json.loads(run("expire", "--json", "--oldest-torch", "2.11", "--manifest", path).stdout)
    declared = document["lines"][0]
    lines = path.read_text().splitlines(keepends=True)
    del lines[declared["first"] - 1 : declared["last"]]
    (left,) = manifest.parse("".join(lines).encode(), "left").patches
    assert left.id == "two"


def test_expire_of_all_patches_of_a_file_names_the_whole_file(make_manifest: Make, tmp_path: Path) -> None:
    (tmp_path / "impl.py").write_text("import os\n\n\ndef old(original):\n    return original\n")
    path = make_manifest(TABLE.format(requires="torch<2.11") + '\naction = "wrap"\nusing = "impl:old"')
    assert "impl.py:1-5  the whole file" in run("expire", "--oldest-torch", "2.11", "--manifest", path).stdout
    (tmp_path / "other.py").write_text("from impl import os\n")
    assert "impl.py:4-5  old" in run("expire", "--oldest-torch", "2.11", "--manifest", path).stdout


def test_expire_names_a_dead_step(make_manifest: Make) -> None:
    step = '[[patch.step]]\nrequires = ["torch{}"]\ntarget = "torch.a:f"\naction = "wrap"\nusing = "impl:make"\n'
    path = make_manifest('id = "one"\n' + step.format("<2.10") + "# The new one.\n" + step.format(">=2.10"))
    result = run("expire", "--oldest-torch", "2.10", "--manifest", path)
    assert "one (step 1): some of its steps are for torch before 2.10 alone" in result.stdout
    document = json.loads(run("expire", "--json", "--oldest-torch", "2.10", "--manifest", path).stdout)
    (part,) = document["lines"]
    lines = path.read_text().splitlines(keepends=True)
    del lines[part["first"] - 1 : part["last"]]
    (left,) = manifest.parse("".join(lines).encode(), "left").patches
    assert [step.requires for step in left.steps] == [("torch>=2.10",)]
    assert "# The new one." in "".join(lines)


def test_expire_asks_the_sources(make_manifest: Make, make_folder: Make) -> None:
    path = make_manifest(TABLE.format(requires="torch>=2.8"))
    mended = make_folder("2.12.0", NEW, name="mended")
    assert run("expire", "--oldest-torch", "2.11", "--manifest", path).exit_code == 0
    result = run("expire", "--oldest-torch", "2.11", "--manifest", path, "--torch", mended)
    assert "one: the defect is not there in 2.12.0: torch is 2.12.0, wanted torch>=2.8, but" in result.stdout


def test_remove_when_is_held_against_window_and_evidence(make_manifest: Make, make_folder: Make) -> None:
    stated = '\nremove_when = "torch 2.11 is the oldest supported release"'
    path = make_manifest(TABLE.format(requires="torch<2.13") + stated)
    old = make_folder("2.12.0", OLD, name="old")
    result = run("expire", "--oldest-torch", "2.5", "--manifest", path, "--torch", old)
    assert "one: remove_when says torch 2.11, but the window (<2.13) goes on after it" in result.stdout
    assert "one: remove_when says torch 2.11, but 2.12.0 needs it: " in result.stdout
    path = make_manifest(TABLE.format(requires="torch<2.11") + stated)
    new = make_folder("2.10.0", NEW, name="new")
    result = run("expire", "--oldest-torch", "2.5", "--manifest", path, "--torch", new)
    assert "one: remove_when says torch 2.11, but 2.10.0 already does without" in result.stdout


@pytest.mark.parametrize(
    "requires, floor, dead",
    [
        ("torch<2.11", "2.11", True),
        ("torch<2.11", "2.10", False),
        ("torch<2.11", "2.10.1", False),
        ("torch<=2.11", "2.11", False),
        ("torch<=2.11", "2.11.1", True),
        ("torch==2.10.*", "2.11", True),
        ("torch==2.10.*", "2.10.5", False),
        ("torch~=2.10.1", "2.11", True),
        ("torch~=2.10", "2.20", False),
        ("torch~=2.10", "3", True),
        ("torch>=2.10", "99", False),
        ("torch!=2.11.*", "2.11", False),
        ("torch>=2.10,<2.12,!=2.11.*", "2.11", True),
        ("torch", "2.11", False),
        ("numpy<1", "2.11", False),
    ],
)
def test_whether_a_window_is_dead(requires: str, floor: str, dead: bool) -> None:
    from packaging.version import Version

    from compat_patches.audit.expiry import is_dead

    assert is_dead([requires], Version(floor)) is dead


# --- the terminal --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("width", [60, 80, 200])
def test_a_narrow_terminal_cuts_no_cell(width: int, make_folder: Make, spoilt: Path) -> None:
    import io

    from rich.console import Console

    from compat_patches.audit import outcome, tables

    versions = [f"2.{minor}.10" for minor in range(1, 9)]
    wheres = [str(make_folder(version, NEW, name=version)) for version in versions]
    found = outcome.audit(manifest.load(spoilt).patches, wheres)
    file = io.StringIO()
    tables.show(found, Console(file=file, width=width, force_terminal=True, color_system=None, legacy_windows=False))
    lines = file.getvalue().splitlines()
    end = next(number for number, line in enumerate(lines) if "window too wide:" in line)
    assert max(map(len, lines[:end])) <= width
    table = "\n".join(lines[:end])
    assert [word for word in table.split() if word.startswith("2.")] == versions
    assert table.count("✗ wide") == len(versions)
    assert table.count("one ") == table.count("patch ")


def test_without_unicode_the_symbols_are_ascii(places: list[Path], spoilt: Path) -> None:
    result = CliRunner(charset="ascii").invoke(
        commands.audit, ["--manifest", str(spoilt), "--torch", *map(str, places)], env={"PYTHONIOENCODING": "ascii"}
    )
    assert "one      <2.12       *       X wide" in result.stdout
    assert result.stdout.isascii()
