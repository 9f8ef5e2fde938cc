"""The store of checked manifests and of answers: it spares work, and is never believed where it may be wrong."""

from __future__ import annotations

import json
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from environments import CHECKOUT, Environment

from compat_patches import answers, discovery, manifest, predicates, store
from compat_patches.fields import PATCH_FIELDS
from compat_patches.manifest import Manifest, Patch
from compat_patches.predicates import Circumstances
from compat_patches.settings import Settings

NOW = Circumstances("2.13.0+cpu", "cpu")
PATCH = """
[manifest]
name = "other"
schema = 1

[[patch]]
id = "some-patch"
summary = "{summary}"
why = "w"
upstream = ["u"]
remove_when = "r"
requires = ["torch>=2.10"]
target = "torch:no_such_name"
action = "noop"
"""


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache folder, and a process that knows no answers yet."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(answers, "_known", None)
    return tmp_path / "cache" / "compat_patches"


def load(path: Path) -> Manifest:
    found = discovery._loaded(str(path))
    assert isinstance(found, Manifest)
    return found


def forbid(monkeypatch: pytest.MonkeyPatch, module: Any, name: str) -> None:
    def called(*args: Any) -> None:
        raise AssertionError(f"{name} was called")

    monkeypatch.setattr(module, name, called)


# --- files ---------------------------------------------------------------------------------------------------------


def test_what_is_written_is_read(cache: Path) -> None:
    store.write("some.json", {"a": [1, 2.5, "ä", None, True]})
    assert store.read("some.json") == {"a": [1, 2.5, "ä", None, True]}
    assert [path.name for path in cache.iterdir()] == ["some.json"]
    assert (cache / "some.json").stat().st_mode & 0o777 == 0o600
    assert cache.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("content", [b"", b"{", b"\xff\xfe", b"[" * 100_000, b"null"])
def test_a_damaged_file_is_no_answer(cache: Path, content: bytes) -> None:
    store.write("some.json", 1)
    (cache / "some.json").write_bytes(content)
    assert store.read("some.json") is None


@pytest.mark.parametrize("mode", [0o620, 0o602])
def test_a_file_that_others_may_write_is_not_believed(cache: Path, mode: int) -> None:
    store.write("some.json", 1)
    (cache / "some.json").chmod(mode)
    assert store.read("some.json") is None


def test_a_folder_that_others_may_write_is_not_used(cache: Path) -> None:
    store.write("some.json", 1)
    cache.chmod(0o777)
    assert store.read("some.json") is None
    store.write("another.json", 2)
    assert not (cache / "another.json").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_a_file_of_another_user_is_not_believed(cache: Path) -> None:
    store.write("some.json", 1)
    os.chown(cache / "some.json", 65534, 65534)
    assert store.read("some.json") is None


def test_links_are_not_followed(cache: Path, tmp_path: Path) -> None:
    store.write("some.json", 1)
    (tmp_path / "elsewhere.json").write_text("2")
    (cache / "some.json").unlink()
    (cache / "some.json").symlink_to(tmp_path / "elsewhere.json")
    assert store.read("some.json") is None
    store.write("some.json", 3)
    assert (tmp_path / "elsewhere.json").read_text() == "2"
    assert store.read("some.json") == 3


def test_a_pipe_in_a_files_place_does_not_hold_anybody_up(cache: Path) -> None:
    store.write("some.json", 1)
    (cache / "some.json").unlink()
    os.mkfifo(cache / "some.json", 0o600)
    assert store.read("some.json") is None


@pytest.mark.parametrize("answer", [float("nan"), (1, 2), {1: 2}, object(), "\ud800"])
def test_what_json_would_change_is_not_kept(answer: object) -> None:
    store.write("some.json", answer)
    assert store.read("some.json") in (None, "\ud800")


def test_without_a_place_nothing_is_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    store.write("some.json", 1)
    assert store.read("some.json") is None


def test_a_relative_cache_home_is_ignored(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "cache")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert store.folder() == str(tmp_path / ".cache" / "compat_patches")


def test_a_write_that_is_interrupted_leaves_what_was_there(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store.write("some.json", 1)

    def interrupted(*args: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        store.write("some.json", 2)
    assert store.read("some.json") == 1
    assert [path.name for path in cache.iterdir()] == ["some.json"]


def test_the_oldest_files_are_dropped(cache: Path) -> None:
    for number in range(store.MOST_FILES + 5):
        store.write(f"{number}.json", number)
        os.utime(cache / f"{number}.json", (number, number))
    kept = {path.name for path in cache.iterdir()}
    assert len(kept) == store.MOST_FILES
    assert "0.json" not in kept
    assert f"{store.MOST_FILES + 4}.json" in kept


def test_a_key_follows_from_all_that_it_is_made_of(monkeypatch: pytest.MonkeyPatch) -> None:
    keys = [store.key("kind", "a"), store.key("kind", "b"), store.key("other", "a")]
    monkeypatch.setattr("compat_patches.__version__", "0.0.0")
    keys.append(store.key("kind", "a"))
    monkeypatch.setattr("sys.version", "3.99")
    keys.append(store.key("kind", "a"))
    monkeypatch.setattr(store, "_own_code", lambda: [[1, 2]])
    keys.append(store.key("kind", "a"))
    assert len(set(keys)) == len(keys)
    assert store.key("kind", "a") == keys[-1]


# --- manifests -----------------------------------------------------------------------------------------------------


def test_a_manifest_is_parsed_and_checked_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = CHECKOUT / "patches.toml"
    first = load(path)
    assert first == manifest.load(path)
    forbid(monkeypatch, manifest, "check")
    assert load(path) == first


def test_a_manifest_that_has_changed_is_read_anew(tmp_path: Path) -> None:
    path = tmp_path / "other.toml"
    for summary in ("first", "second", "first"):
        before = os.stat(path).st_mtime_ns if path.exists() else 1
        path.write_text(PATCH.format(summary=summary))
        os.utime(path, ns=(before, before))
        assert load(path).patches[0].summary == summary


def test_a_broken_manifest_is_not_kept(tmp_path: Path, cache: Path) -> None:
    path = tmp_path / "other.toml"
    path.write_text(PATCH.format(summary="s").replace("requires", "requries"))
    for _ in range(2):
        assert "requries" in str(discovery._loaded(str(path)))
    assert not cache.exists()


def test_a_manifest_with_what_json_cannot_hold_is_loaded_each_time(tmp_path: Path, cache: Path) -> None:
    path = tmp_path / "other.toml"
    path.write_text(PATCH.format(summary="s").replace('"noop"', '"set"\nvalue = 2026-01-01'))
    assert load(path) == load(path) == manifest.load(path)
    assert list(cache.iterdir() if cache.exists() else ()) == []


@pytest.mark.parametrize("kept", [[], {}, {"manifest": {}}, {"manifest": {"name": "x"}, "patch": [{}]}, "text", 7])
def test_what_is_no_manifest_is_not_believed(tmp_path: Path, cache: Path, kept: object) -> None:
    path = tmp_path / "other.toml"
    path.write_text(PATCH.format(summary="s"))
    expected = load(path)
    (file,) = cache.iterdir()
    file.write_text(json.dumps(kept))
    assert load(path) == expected
    assert load(path) == expected


def test_the_records_have_the_defaults_that_the_fields_declare() -> None:
    """A checked table is read without the declarations, so both have to say the same."""

    for key, field in PATCH_FIELDS.items():
        if key in Patch.fields and not field.required:
            declared = tuple(field.default) if isinstance(field.default, list) else field.default
            assert vars(Patch)[key] == declared, key


# --- answers -------------------------------------------------------------------------------------------------------


def forget(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers, "_known", None)


@pytest.mark.parametrize(
    "requirement",
    ["torch>=2.10", "torch<2.10", "no-such-project>=1", "pytest>=7", "torch>=2; sys_platform == 'nowhere'"],
)
def test_an_answer_is_found_once(monkeypatch: pytest.MonkeyPatch, requirement: str) -> None:
    first = predicates.requirement_verdict(requirement, NOW)
    answers.remember()
    forget(monkeypatch)
    forbid(monkeypatch, predicates, "_decide_requirement")
    assert predicates.requirement_verdict(requirement, NOW) == first


def test_a_markers_answer_is_found_once(monkeypatch: pytest.MonkeyPatch) -> None:
    first = predicates.marker_verdict("python_version >= '3'", NOW)
    answers.remember()
    forget(monkeypatch)
    forbid(monkeypatch, predicates, "_decide_marker")
    assert predicates.marker_verdict("python_version >= '3'", NOW) == first
    assert first.ok


def test_another_version_has_another_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the version of another project than torch has changed since."""
    installed = "1.0"
    monkeypatch.setattr(
        "importlib.metadata.distribution", lambda name: SimpleNamespace(metadata={"Version": installed})
    )
    assert not predicates.requirement_verdict("some-project>=2", NOW).ok
    answers.remember()
    forget(monkeypatch)
    installed = "2.0"
    verdict = predicates.requirement_verdict("some-project>=2", NOW)
    assert (verdict.ok, verdict.reason) == (True, "some-project is 2.0, wanted some-project>=2")


@pytest.mark.parametrize("torch", ["2.9.1", "2.10.0", "2.10.0a0+git", "unknown", None])
def test_answers_about_one_torch_are_not_taken_for_another(monkeypatch: pytest.MonkeyPatch, torch: str | None) -> None:
    predicates.requirement_verdict("torch>=2.10", NOW)
    answers.remember()
    forget(monkeypatch)
    circumstances = Circumstances(torch, "cpu")
    expected = predicates._decide_requirement("torch>=2.10", circumstances)
    assert predicates.requirement_verdict("torch>=2.10", circumstances) == expected
    assert predicates.requirement_verdict("torch>=2.10", NOW).ok


def test_a_simulated_platform_is_asked_about_each_time(cache: Path) -> None:
    simulated = Circumstances("2.13.0", "cpu", markers={"sys_platform": "nowhere"})
    assert predicates.marker_verdict("sys_platform == 'nowhere'", simulated).ok
    assert not predicates.marker_verdict("sys_platform == 'nowhere'", NOW).ok
    assert predicates.requirement_verdict("torch>=3; sys_platform != 'nowhere'", simulated).ok
    assert not predicates.requirement_verdict("torch>=3; sys_platform != 'nowhere'", NOW).ok


@pytest.mark.parametrize("kept", [[], {"projects": 1}, {"projects": {}, "requirements": [1], "markers": []}, "text"])
def test_what_are_no_answers_is_not_believed(cache: Path, monkeypatch: pytest.MonkeyPatch, kept: object) -> None:
    expected = predicates.requirement_verdict("torch>=2.10", NOW)
    answers.remember()
    (file,) = cache.iterdir()
    file.write_text(json.dumps(kept))
    forget(monkeypatch)
    assert predicates.requirement_verdict("torch>=2.10", NOW) == expected


# --- a whole process -----------------------------------------------------------------------------------------------


def test_a_warm_process_imports_neither_packaging_nor_a_toml_parser(installed: Environment, tmp_path: Path) -> None:
    code = """
import json, sys, torch, compat_patches
states = {status.id: (status.state, status.reason) for status in compat_patches.status()}
costly = sorted({"packaging", "tomllib", "tomli", "compat_patches.fields"} & set(sys.modules))
print(json.dumps([costly, states]))
"""
    variables = {"COMPAT_PATCHES": "on", "XDG_CACHE_HOME": str(tmp_path)}
    cold, warm = installed.ask(code, **variables), installed.ask(code, **variables)
    assert "packaging" in cold[0]
    assert warm == [[], cold[1]]


def test_the_difference_of_the_modules_is_ours_alone(installed: Environment, tmp_path: Path) -> None:
    code = "import json, sys, torch; print(json.dumps(sorted(sys.modules)))"
    off, _, on = (
        set(installed.ask(code, COMPAT_PATCHES=word, XDG_CACHE_HOME=str(tmp_path))) for word in ("off", "on", "on")
    )
    assert off <= on
    assert {name.partition(".")[0] for name in on - off} == {"compat_patches"}


def test_settings_do_not_get_into_the_cache(tmp_path: Path, cache: Path) -> None:
    list(discovery.manifests(Settings(disable=("cpu",), only=("xpu",))))
    (file,) = cache.glob("manifest-*")
    assert json.loads(file.read_text())["manifest"] == {"name": "compat-patches", "schema": 1}
