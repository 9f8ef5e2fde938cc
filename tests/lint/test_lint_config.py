"""What a project says in pyproject.toml or setup.cfg, and its baseline."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

pytest.importorskip("ruff")

from compat_patches.lint import baseline, running
from compat_patches.lint.config import DEFAULT_MIN_TORCH, Configuration, load
from compat_patches.lint.errors import LintError

USE = "import torch\ntorch.cuda.synchronize()\ntorch.cuda.mem_get_info()\n"


def _load(folder: Path, **files: str) -> Configuration:
    for name, text in files.items():
        (folder / name.replace("_", ".")).write_text(text, encoding="utf-8")
    return load([folder])


def _found(*paths: Path, **options: object) -> list[tuple[str, str]]:
    report = running.run(running.Options(paths, **options))  # type: ignore[arg-type]
    return [(Path(finding.path).name, finding.name) for _, finding in report.shown if finding.level == "finding"]


# -- min-torch -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('[project]\ndependencies = ["numpy", "torch>=2.9,<3"]', (2, 9)),
        ('[project]\ndependencies = ["torch==2.11.0"]', (2, 11)),
        ('[project]\ndependencies = ["torch~=2.10.0"]', (2, 10)),
        ('[project]\ndependencies = ["torch==2.10.*"]', (2, 10)),
        ('[project]\ndependencies = ["torch>2.9"]', (2, 9)),
        (
            "[project]\ndependencies = [\"torch>=2.12; python_version>='3.12'\", "
            "\"torch>=2.10; python_version<'3.12'\"]",
            (2, 10),
        ),
        ('[project.optional-dependencies]\ngpu = ["torch>=2.10"]', (2, 10)),
        ('[build-system]\nrequires = ["setuptools", "torch == 2.11.0"]', (2, 11)),
        ('[project]\ndependencies = ["torch"]\n[build-system]\nrequires = ["torch==2.11.0"]', (2, 11)),
        ('[project]\ndependencies = ["torchvision>=0.20", "torch-scatter>=3.0"]', DEFAULT_MIN_TORCH),
        ('[project]\ndependencies = ["torch<3", "torch ??"]', DEFAULT_MIN_TORCH),
        ('[project]\ndependencies = "torch>=2.10"', DEFAULT_MIN_TORCH),
        ("", DEFAULT_MIN_TORCH),
    ],
)
def test_min_torch_is_read_from_a_projects_requirements(text: str, expected: tuple[int, int], tmp_path: Path) -> None:
    assert _load(tmp_path, pyproject_toml=text).min_torch == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[options]\ninstall_requires =\n    numpy\n    torch>=2.10\n", (2, 10)),
        ("[options.extras_require]\ngpu =\n    torch>=2.9\n", (2, 9)),
        ("[metadata]\nname = x\n", DEFAULT_MIN_TORCH),
    ],
)
def test_min_torch_is_read_from_setup_cfg(text: str, expected: tuple[int, int], tmp_path: Path) -> None:
    assert _load(tmp_path, setup_cfg=text).min_torch == expected


def test_what_is_said_more_plainly_counts_more(tmp_path: Path) -> None:
    required = '[project]\ndependencies = ["torch>=2.9"]\n'
    configured = required + '[tool.compat-patches.lint]\nmin-torch = "2.10"\n'
    assert _load(tmp_path, pyproject_toml=required).min_torch == (2, 9)
    assert _load(tmp_path, pyproject_toml=configured).min_torch == (2, 10)
    assert load([tmp_path], min_torch=(2, 11)).min_torch == (2, 11)
    assert load([tmp_path], min_torch=(2, 11)).min_torch_from == "--min-torch"


# -- the section ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (
            "pyproject.toml",
            '[tool.compat-patches.lint]\nallow = ["platforms", "tests/*: torch-cuda-memory"]\n'
            'exclude = ["third_party"]\nmin-torch = "2.10"\n',
        ),
        (
            "setup.cfg",
            "[compat-patches:lint]\nallow =\n    platforms/\n    tests/*: torch-cuda-memory\n"
            "exclude = ./third_party\nmin-torch = 2.10\n",
        ),
    ],
)
def test_files_are_allowed_and_excluded(name: str, text: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text)
    for file in ("platforms/deep/a.py", "tests/deep/b.py", "third_party/c.py", "src/d.py"):
        path = tmp_path / file
        path.parent.mkdir(parents=True)
        path.write_text(USE)
    assert sorted(_found(tmp_path)) == [
        ("b.py", "torch.cuda.synchronize"),
        ("d.py", "torch.cuda.mem_get_info"),
        ("d.py", "torch.cuda.synchronize"),
    ]
    # The configuration of a project holds for each of its parts.
    assert _found(tmp_path / "platforms" / "deep" / "a.py") == []


def test_further_tables_come_from_the_configuration(tmp_path: Path) -> None:
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "more.toml").write_text(
        '[table]\nschema = 1\n[[migration]]\nname = "mine.platform.mem_get_info"\nrule = "mine-memory"\n'
        'replacement = "torch.accelerator.get_memory_info"\nsince = "2.10"\nrewrite = "call"\n'
    )
    (tmp_path / "pyproject.toml").write_text(
        '[tool.compat-patches.lint]\nextend = ["tools/more.toml"]\nmin-torch = "2.10"\n'
    )
    (tmp_path / "a.py").write_text("from mine import platform\nplatform.mem_get_info()\n")
    package = tmp_path / "mine"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "b.py").write_text("from . import platform as p\nfrom .platform import mem_get_info\nmem_get_info()\np.mem_get_info()\n")  # fmt: skip # noqa: E501
    name = "mine.platform.mem_get_info"
    assert _found(tmp_path) == [("a.py", name), ("b.py", name), ("b.py", name), ("b.py", name)]


def test_names_of_the_users_are_rewritten_too(tmp_path: Path) -> None:
    pytest.importorskip("libcst")
    from compat_patches.lint import fixing

    (tmp_path / "more.toml").write_text(
        "[table]\nschema = 1\n"
        '[[migration]]\nname = "mine.platform.mem_get_info"\nrule = "mine"\nrewrite = "call"\n'
        'replacement = "torch.accelerator.get_memory_info"\n'
        '[[migration]]\nname = "mine.platform.seed"\nrule = "mine"\nrewrite = "name"\nreplacement = "ours.seed"\n'
    )
    (tmp_path / "a.py").write_text(
        "from mine import platform\n"
        "from mine.platform import mem_get_info\n"
        "platform.mem_get_info(device=0)\n"
        "mem_get_info()\n"
        "platform.seed()\n"
    )
    options = running.Options((tmp_path / "a.py",), (2, 15), tables=(tmp_path / "more.toml",))
    (fixed,) = fixing.fix(running.run(options))
    assert isinstance(fixed, fixing.Fixed)
    assert fixed.text == (
        "import torch\n"
        "from mine import platform\n"
        "from torch.accelerator import get_memory_info as mem_get_info\n"
        "torch.accelerator.get_memory_info(0)\n"
        "mem_get_info()\n"
        "platform.seed()\n"
    )
    assert [verdict.reason for verdict in fixed.verdicts if not verdict.rewritten] == [
        "ours.seed is no name of torch, and its import is to be written by hand"
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[tool.compat-patches.lint]\nalow = []\n", "unknown key 'alow'; did you mean 'allow'?"),
        ("[tool.compat-patches.lint]\nallow = 'x'\n", "allow: expected a list of texts, found 'x'"),
        ("[tool.compat-patches.lint]\nmin-torch = 2.10\n", "min-torch: expected a text, found 2.1"),
        ("[tool.compat-patches.lint]\nmin-torch = 'new'\n", "min-torch: 'new' is not a torch release"),
        ("[tool.compat-patches.lint]\nextend = ['no.toml']\n", r"no\.toml: the table of migrations cannot"),
        ("[tool.compat-patches.lint]\nbaseline = 'no.json'\n", "no baseline, or a broken one"),
        ("[tool\n", "the configuration cannot be read"),
    ],
)
def test_a_wrong_configuration_says_what_is_wrong(text: str, expected: str, tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(text)
    with pytest.raises(LintError, match=expected.replace("?", r"\?").replace("[", r"\[")):
        running.run(running.Options((tmp_path,)))


def test_two_sections_are_one_too_many(tmp_path: Path) -> None:
    with pytest.raises(LintError, match="both configure lint"):
        _load(
            tmp_path,
            pyproject_toml="[tool.compat-patches.lint]\n",
            setup_cfg="[compat-patches:lint]\nmin-torch = 2.9\n",
        )


def test_a_configuration_file_that_is_named_has_to_be_there(tmp_path: Path) -> None:
    with pytest.raises(LintError, match="no such configuration file"):
        load([tmp_path], tmp_path / "pyproject.toml")


# -- the baseline --------------------------------------------------------------------------------------------


@pytest.fixture
def started(tmp_path: Path) -> Path:
    """A project of one file with two findings, and the baseline that knows them."""
    (tmp_path / "a.py").write_text(USE)
    report = running.run(running.Options((tmp_path,), (2, 15)))
    count = baseline.write(
        tmp_path / "baseline.json", [(checked.source, checked.findings) for checked in report.checked]
    )
    assert count == 2
    return tmp_path


def _new(folder: Path) -> running.Report:
    return running.run(running.Options((folder,), (2, 15), baseline=folder / "baseline.json"))


def test_what_the_baseline_knows_does_not_count(started: Path) -> None:
    report = _new(started)
    assert report.shown == [] and report.known == 2 and report.gone == 0 and not report.failed


def test_lines_may_move(started: Path) -> None:
    (started / "a.py").write_text("'''Moved.'''\n\n\n" + USE.replace("torch.cuda.mem", "    torch.cuda.mem"))
    (started / "a.py").write_text("'''Moved.'''\n\n\n" + USE)
    assert _new(started).shown == []


def test_what_is_new_counts_also_if_it_looks_the_same(started: Path) -> None:
    (started / "a.py").write_text(USE + "torch.cuda.synchronize()\n")
    (started / "b.py").write_text(USE)
    report = _new(started)
    assert [(Path(finding.path).name, finding.row) for _, finding in report.shown] == [
        ("a.py", 4),
        ("b.py", 2),
        ("b.py", 3),
    ]
    assert report.failed


def test_what_is_mended_is_told(started: Path) -> None:
    (started / "a.py").write_text("import torch\ntorch.cuda.synchronize()\n")
    report = _new(started)
    assert (report.known, report.gone) == (1, 1)


def test_the_baseline_works_from_any_folder(started: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(started)
    report = running.run(running.Options((Path("a.py"),), (2, 15), baseline=Path("baseline.json")))
    assert report.known == 2


@pytest.mark.parametrize(
    "content", ["", "[]", "{}", '{"schema": 2, "findings": {}}', '{"schema": 1, "findings": {"a.py": [1]}}']
)
def test_a_broken_baseline_is_refused(content: str, started: Path) -> None:
    (started / "baseline.json").write_text(content)
    with pytest.raises(LintError, match="--write-baseline makes one"):
        _new(started)


def test_the_baseline_is_stable_under_sorting(started: Path) -> None:
    document = json.loads((started / "baseline.json").read_text())
    assert list(document["findings"]) == ["a.py"]
    assert [entry["count"] for entry in document["findings"]["a.py"]] == [1, 1]
