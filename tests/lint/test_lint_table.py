"""The table of replacements: true for the installed torch, and read with care."""

from __future__ import annotations

import functools
import importlib
import inspect
import json
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
from packaging.version import Version

from compat_patches.lint.errors import LintError
from compat_patches.lint.table import Migration, load_table, parse_version

MIGRATIONS = sorted(set(load_table().by_name.values()), key=lambda migration: migration.name)
REPLACED = [migration for migration in MIGRATIONS if migration.replacement is not None]


@pytest.fixture(scope="module")
def torch() -> ModuleType:
    return pytest.importorskip("torch")


def _find(torch: ModuleType, name: str) -> object | None:
    assert name.startswith("torch.")
    try:
        return functools.reduce(getattr, name.split(".")[1:], torch)
    except AttributeError:
        return None


def _ids(migration: Migration) -> str:
    return migration.name


@pytest.fixture(scope="module")
def unpatched(torch: ModuleType) -> frozenset[str]:
    """The replacements that torch has by itself: one of our patches adds get_memory_info to torch 2.9."""
    names = sorted({migration.replacement for migration in REPLACED if migration.replacement})
    code = (
        "import json, operator, sys, torch\n"
        "def has(name):\n"
        "    try:\n"
        "        return bool(operator.attrgetter(name.removeprefix('torch.'))(torch))\n"
        "    except AttributeError:\n"
        "        return False\n"
        "print(json.dumps([name for name in json.load(sys.stdin) if has(name)]))\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", code],
        input=json.dumps(names),
        env={**os.environ, "COMPAT_PATCHES": "off"},
        capture_output=True,
        text=True,
        check=True,
    )
    return frozenset(json.loads(result.stdout))


@pytest.mark.parametrize("migration", REPLACED, ids=_ids)
def test_a_replacement_is_there_from_its_release_on_and_not_before(
    migration: Migration, torch: ModuleType, unpatched: frozenset[str]
) -> None:
    found = Version(torch.__version__)
    is_there = migration.replacement in unpatched
    assert is_there == ((found.major, found.minor) >= migration.since)


@pytest.mark.parametrize("migration", REPLACED, ids=_ids)
def test_a_replacement_is_callable_like_the_original(migration: Migration, torch: ModuleType) -> None:
    assert migration.replacement is not None
    replacement = _find(torch, migration.replacement)
    if migration.rewrite not in ("name", "call", "statistics") or replacement is None:
        pytest.skip("its arguments are decided on by rules of their own, or this torch does not have it")
    original = _find(torch, migration.name)
    if original is None or isinstance(original, type) or inspect.isbuiltin(original):
        assert migration.rewrite == "name"
        return
    taken = inspect.signature(replacement).parameters  # type: ignore[arg-type]
    given = inspect.signature(original).parameters  # type: ignore[arg-type]
    assert len(taken) == len(given)
    if migration.rewrite == "name":
        assert not taken
        return
    # fix leaves the keyword of the one argument out, and knows it by this name only.
    assert list(given) == ["device"]
    (parameter,) = taken.values()
    assert parameter.kind is not inspect.Parameter.KEYWORD_ONLY
    needs_one = given["device"].default is inspect.Parameter.empty
    assert (parameter.default is inspect.Parameter.empty) == needs_one


def test_the_names_are_names_of_torch(torch: ModuleType) -> None:
    importlib.import_module("torch.cuda.graphs")
    # A build without CUDA lacks some functions of torch._C.
    missing = [name for name in load_table().by_name if _find(torch, name) is None and not name.startswith("torch._C.")]
    assert not missing


def test_what_fix_takes_for_granted_of_events(torch: ModuleType) -> None:
    parameters = list(inspect.signature(torch.cuda.Event.__new__).parameters)[1:]
    assert parameters == ["enable_timing", "blocking", "interprocess", "external"]
    with pytest.raises(TypeError, match="device"):
        torch.Event(True)
    with pytest.raises(TypeError, match="external"):
        torch.Event("cpu", external=True)
    # Without enable_timing, neither kind measures time: the flag of torch.Event that says so is 0.
    assert "event_flag=0" in repr(torch.Event("cpu"))
    assert "event_flag=1" in repr(torch.Event("cpu", enable_timing=True))
    # What torch.Event ignores leaves no trace: that is why fix does not write it.
    assert repr(torch.Event("cpu", blocking=True, interprocess=True)) == repr(torch.Event("cpu"))
    assert not hasattr(torch.Event("cpu"), "cuda_event")
    with pytest.raises(NotImplementedError):
        torch.Event("cpu").ipc_handle()


def test_what_fix_takes_for_granted_of_streams_and_errors(torch: ModuleType) -> None:
    assert torch.cuda.OutOfMemoryError is torch.OutOfMemoryError
    assert not hasattr(torch.Stream, "cuda_stream")
    for method in ("synchronize", "query", "wait_stream", "wait_event", "record_event", "__enter__"):
        assert hasattr(torch.Stream, method)
    if torch.version.cuda is not None or torch.version.hip is not None:
        assert issubclass(torch.cuda.Event, torch.Event)
        assert issubclass(torch.cuda.Stream, torch.Stream)


def test_the_device_guard_takes_an_index_or_none(torch: ModuleType) -> None:
    (parameter,) = inspect.signature(torch.accelerator.device_index).parameters.values()
    assert parameter.annotation in ("int | None", "Optional[int]") or str(parameter.annotation).endswith(
        ("int | None", "Optional[int]")
    )
    assert parameter.kind is inspect.Parameter.POSITIONAL_ONLY


def test_what_has_no_equivalent_is_never_sent_anywhere() -> None:
    table = load_table()
    for name in (
        "torch.cuda.manual_seed",
        "torch.cuda.get_device_properties",
        "torch.cuda.get_device_capability",
        "torch.cuda.nvtx",
        "torch.cuda.is_available",
    ):
        assert table.by_name[name].replacement is None
        assert table.by_name[name].level == "silent"


def test_each_entry_that_is_not_rewritten_blindly_says_what_differs() -> None:
    for migration in MIGRATIONS:
        assert migration.differs or migration.rewrite == "name"


# -- files of the user's -------------------------------------------------------------------------------------


def _table(path: Path, text: str) -> Path:
    path.write_text(f"[table]\nschema = 1\n{text}", encoding="utf-8")
    return path


def test_a_file_of_the_users_adds_and_overrides(tmp_path: Path) -> None:
    path = _table(
        tmp_path / "more.toml",
        """
        [[migration]]
        name = "vllm.platforms.current_platform.mem_get_info"
        rule = "vllm-memory"
        replacement = "torch.accelerator.get_memory_info"
        since = "2.10"
        rewrite = "call"

        [[migration]]
        name = "torch.cuda.synchronize"
        rule = "torch-cuda-synchronize"
        replacement = "torch.accelerator.synchronize"
        level = "note"
        """,
    )
    table = load_table([path])
    assert table.by_name["vllm.platforms.current_platform.mem_get_info"].since == (2, 10)
    assert table.by_name["torch.cuda.synchronize"].level == "note"
    assert table.by_name["torch.cuda.empty_cache"].level == "finding"
    assert frozenset({"current_platform", "mem_get_info"}) in table.words
    assert "vllm-memory" in table.rules


def test_all_that_is_wrong_is_said_at_once(tmp_path: Path) -> None:
    path = _table(
        tmp_path / "wrong.toml",
        """
        [[migration]]
        name = "synchronize"
        rule = "Torch Cuda"
        replacment = "torch.accelerator.synchronize"
        since = 2.8
        rewrite = "event"
        level = "error"

        [[no_equivalent]]
        names = "torch.cuda.x"
        rule = "torch-cuda-x"
        """,
    )
    with pytest.raises(LintError) as caught:
        load_table([path])
    text = str(caught.value)
    for expected in (
        "name: expected a dotted name, found 'synchronize'",
        "rule: expected a rule",
        "unknown key 'replacment'; did you mean 'replacement'?",
        "replacement: expected a dotted name, found nothing",
        "since: expected a torch release",
        "rewrite: expected one of name, call, never, found 'event'",
        "level: expected one of finding, note, silent, found 'error'",
        "names: expected a list of dotted names, found 'torch.cuda.x'",
        "why: expected a text, found nothing",
    ):
        assert expected in text
    assert all(line.startswith(str(path)) for line in text.splitlines())


@pytest.mark.parametrize("content", [b"[table]\nschema = 2\n", b"", b"[[migration\n", b"\xff\xfe", b"[[migrations]]\n"])
def test_a_file_that_is_no_table_is_refused(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "table.toml"
    path.write_bytes(content)
    with pytest.raises(LintError, match=r"table\.toml"):
        load_table([path])
    with pytest.raises(LintError, match="cannot be read"):
        load_table([tmp_path])


def test_a_byte_order_mark_is_read_over(tmp_path: Path) -> None:
    path = tmp_path / "table.toml"
    path.write_bytes(b"\xef\xbb\xbf[table]\nschema = 1\n")
    assert load_table([path]) == load_table()


@pytest.mark.parametrize("text", ["2", "2.10.0", "two.ten", "", ">=2.10"])
def test_a_version_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"2\.10"):
        parse_version(text)
