"""Activation: when it happens, what it costs, what keeps it away."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support import printed, python

HEAVY = ("torch", "wrapt", "packaging", "tomllib", "tomli", "psutil", "asyncio", "logging", "dataclasses", "inspect")


def test_importing_us_imports_nothing_heavy() -> None:
    loaded = json.loads(printed("-c", "import compat_patches, json, sys; print(json.dumps(sorted(sys.modules)))"))
    assert not [name for name in loaded if name.split(".")[0] in HEAVY]


def test_importing_us_imports_three_modules_of_ours_alone() -> None:
    program = "import sys; before = set(sys.modules); import compat_patches; print(*sorted(set(sys.modules) - before))"
    assert printed("-c", program) == "compat_patches compat_patches.env_override compat_patches.importing"


def test_off_keeps_the_import_from_doing_anything() -> None:
    program = "import sys; before = list(sys.meta_path); import compat_patches; print(sys.meta_path == before)"
    assert printed("-c", program, COMPAT_PATCHES="off") == "True"
    assert printed("-c", program) == "False"


def test_importing_us_twice_is_importing_us_once() -> None:
    program = (
        "import sys, importlib, compat_patches\n"
        "importlib.reload(compat_patches)\n"
        "compat_patches.env_override.activate()\n"
        "print(sum('_Finder' in type(entry).__name__ for entry in sys.meta_path))"
    )
    assert printed("-c", program) == "1"


@pytest.fixture
def stand_in_torch(tmp_path: Path) -> Path:
    """A package called torch, of release 2.13.0, that has what the built-in patches change there."""
    torch = tmp_path / "torch"
    (torch / "xpu").mkdir(parents=True)
    (torch / "accelerator").mkdir()
    (torch / "version.py").write_text("__version__ = '2.13.0+cpu'\ncuda = None\nhip = None\nxpu = None\n")
    (torch / "__init__.py").write_text(
        "from .version import __version__\nfrom . import xpu\nfrom . import accelerator\nimported = True\n"
    )
    (torch / "xpu" / "__init__.py").write_text("from .streams import Event\n")
    (torch / "xpu" / "streams.py").write_text(
        "class Event:\n    def __new__(cls, enable_timing=False):\n        return super().__new__(cls)\n"
    )
    (torch / "accelerator" / "__init__.py").write_text(
        "from .memory import get_memory_info\ndef is_available(): return False\n"
    )
    (torch / "accelerator" / "memory.py").write_text(
        "def get_memory_info(device_index=None, /):\n    raise RuntimeError('Cannot access accelerator device')\n"
    )
    return tmp_path


STATES = "import json; print(json.dumps({s.id: [s.state, s.reason] for s in compat_patches.status()}))"


def states(program: str, path: Path, **variables: str) -> dict[str, list[str]]:
    lines = printed("-c", f"import sys; sys.path.insert(0, {str(path)!r})\n{program}\n{STATES}", **variables)
    found: dict[str, list[str]] = json.loads(lines.splitlines()[-1])
    return found


@pytest.mark.parametrize(
    "program",
    ["import compat_patches, torch", "import torch, compat_patches"],
    ids=["we come first", "torch comes first"],
)
def test_patches_are_applied_in_either_order_of_import(program: str, stand_in_torch: Path) -> None:
    found = states(program, stand_in_torch)
    assert found["xpu-event-blocking"][0] == "applied"
    assert found["cpu-memory-info"][0] == "applied"
    assert found["xpu-event-external"] == ["skipped", "torch is 2.13.0+cpu, wanted torch>=2.15"]


def test_a_program_that_only_looks_whether_torch_is_there_does_not_wake_us(stand_in_torch: Path) -> None:
    program = (
        f"import sys; sys.path.insert(0, {str(stand_in_torch)!r})\n"
        "import compat_patches, importlib.util\n"
        "found = importlib.util.find_spec('torch')\n"
        "print(found.origin.endswith('__init__.py'), 'compat_patches.engine' in sys.modules)"
    )
    assert printed("-c", program) == "True False"


def test_before_torch_is_imported_patches_say_what_they_wait_for(stand_in_torch: Path) -> None:
    found = states("import compat_patches", stand_in_torch)
    assert found["xpu-event-blocking"] == ["pending", "waits for torch.xpu.streams to be imported"]
    assert found["xpu-event-external"][0] == "skipped"


def test_off_wins_but_for_what_code_asks_for(stand_in_torch: Path) -> None:
    found = states("import compat_patches, torch", stand_in_torch, COMPAT_PATCHES="off")
    assert {state for state, _ in found.values()} == {"skipped"}
    assert {reason for _, reason in found.values()} == {"switched off by COMPAT_PATCHES=off"}
    asked = "import compat_patches, torch; compat_patches.apply('xpu-event-blocking')"
    found = states(asked, stand_in_torch, COMPAT_PATCHES="off")
    assert {name for name, (state, _) in found.items() if state == "applied"} == {"xpu-event-blocking"}


def test_only_and_disable_choose_by_id_and_by_group(stand_in_torch: Path) -> None:
    found = states("import compat_patches, torch", stand_in_torch, COMPAT_PATCHES_ONLY="xpu")
    assert found["xpu-event-blocking"][0] == "applied"
    assert found["cpu-memory-info"] == ["skipped", "not among COMPAT_PATCHES_ONLY"]
    found = states("import compat_patches, torch", stand_in_torch, COMPAT_PATCHES_DISABLE="xpu-event-blocking,inductor")
    assert found["xpu-event-blocking"] == ["skipped", "disabled by COMPAT_PATCHES_DISABLE"]
    assert found["cpu-memory-info"][0] == "applied"


BAD = {
    "a manifest that is not there": {"COMPAT_PATCHES_MANIFEST": "/nowhere/at/all.toml"},
    "a misspelt id": {"COMPAT_PATCHES_DISABLE": "xpu-event-blockin"},
    "a level of logging that is none": {"COMPAT_PATCHES_LOG": "loud"},
    "a switch that is neither on nor off": {"COMPAT_PATCHES": "perhaps"},
}


@pytest.mark.parametrize("variables", BAD.values(), ids=BAD)
def test_bad_settings_are_reported_and_the_program_runs_on(variables: dict[str, str], stand_in_torch: Path) -> None:
    program = (
        f"import sys; sys.path.insert(0, {str(stand_in_torch)!r}); import compat_patches, torch; print(torch.imported)"
    )
    culprit = next(iter(variables.values()))
    done = python("-c", program, **variables)
    assert (done.returncode, done.stdout.strip()) == (0, "True"), done.stderr
    assert culprit in done.stderr
    strict = python("-c", program, COMPAT_PATCHES_STRICT="1", **variables)
    assert strict.returncode == 1
    assert culprit in strict.stderr


def test_a_broken_implementation_leaves_the_import_alone_and_is_an_error_where_strict(
    stand_in_torch: Path,
) -> None:
    (stand_in_torch / "broken.py").write_text("raise SystemExit('at import')\n")
    text = Path(stand_in_torch, "m.toml")
    text.write_text(
        '[manifest]\nname = "theirs"\nschema = 1\n[[patch]]\nid = "broken"\nsummary = "s"\nwhy = "w"\n'
        'upstream = ["u"]\nremove_when = "r"\ntarget = "torch.xpu.streams:Event.__new__"\naction = "wrap"\n'
        'using = "broken:make"\n'
    )
    text.chmod(0o600)
    found = states("import compat_patches, torch", stand_in_torch, COMPAT_PATCHES_MANIFEST=str(text))
    assert found["broken"] == ["failed", "SystemExit: at import"]
    assert found["xpu-event-blocking"][0] == "applied"
    program = f"import sys; sys.path.insert(0, {str(stand_in_torch)!r}); import compat_patches, torch"
    strict = python("-c", program, COMPAT_PATCHES_MANIFEST=str(text), COMPAT_PATCHES_STRICT="1")
    assert strict.returncode == 1
    assert "PatchError: theirs/broken failed: SystemExit: at import" in strict.stderr


def test_python_that_turns_warnings_into_errors_sees_none_of_ours(stand_in_torch: Path) -> None:
    insert = f"import sys; sys.path.insert(0, {str(stand_in_torch)!r})"
    program = f"{insert}; import compat_patches, torch; compat_patches.status()"
    done = python("-W", "error", "-c", program)
    assert (done.returncode, done.stderr) == (0, "")
