"""Which manifests a process has: the built-in one, those of installed projects, those that the environment names."""

import os
import sys
from pathlib import Path

import pytest
from declared import ROOT, document, table, toml

from compat_patches import discovery
from compat_patches.errors import ManifestError
from compat_patches.manifest import Manifest
from compat_patches.settings import Settings


def found(settings: Settings = Settings()) -> list[str]:  # noqa: B008  # frozen
    """Names of manifests, or the first problem of those that are broken; without the built-in one."""
    first, *others = discovery.manifests(settings)
    assert isinstance(first, Manifest)
    assert first.name == "compat-patches"
    return [one.name if isinstance(one, Manifest) else one.problems[0] for one in others]


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Makes a distribution on sys.path that names a manifest by an entry point."""
    monkeypatch.syspath_prepend(tmp_path)

    def install(value: str, *files: str, distribution: str = "project") -> None:
        folder = tmp_path / f"{distribution}-1.0.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.0\n")
        (folder / "entry_points.txt").write_text(f"[compat_patches.manifests]\n{distribution} = {value}\n")
        for file in files:
            write(tmp_path / file, Path(file).stem)

    return install


def write(path: Path, name: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(toml(document(table(), name=name)))


def test_the_built_in_manifest_lies_in_the_package_or_at_the_root_of_the_checkout(tmp_path, monkeypatch):
    assert discovery.builtin_manifest() == str(ROOT / "patches.toml")
    package = tmp_path / "compat_patches"
    write(package / "patches.toml", "installed")
    monkeypatch.setattr(discovery, "__file__", str(package / "discovery.py"))
    assert discovery.builtin_manifest() == str(package / "patches.toml")


def test_a_process_has_at_least_the_built_in_manifest():
    assert found() == []


def test_the_environment_names_more_in_its_order(tmp_path):
    write(tmp_path / "b.toml", "b")
    write(tmp_path / "a.toml", "a")
    assert found(Settings(manifests=(str(tmp_path / "b.toml"), str(tmp_path / "a.toml")))) == ["b", "a"]


def test_one_that_is_broken_does_not_touch_the_others(tmp_path):
    write(tmp_path / "a.toml", "a")
    (tmp_path / "broken.toml").write_text("nonsense")
    paths = [tmp_path / "missing.toml", tmp_path, tmp_path / "broken.toml", "/a\0b", tmp_path / "a.toml"]
    missing, folder, broken, nul, whole = found(Settings(manifests=tuple(map(str, paths))))
    assert missing == "cannot be read: No such file or directory"
    assert folder == "is a directory; expected a TOML file"
    assert broken.startswith("is not valid TOML")
    assert nul.startswith("cannot be read: ")
    assert whole == "a"


@pytest.mark.parametrize(
    ("value", "file"),
    [
        ("package:patches.toml", "package/patches.toml"),
        ("package : folder/patches.toml", "package/folder/patches.toml"),
        ("package.inner:patches.toml", "package/inner/patches.toml"),
    ],
)
def test_an_installed_project_names_a_manifest_inside_of_its_package(tmp_path, install, value, file):
    install(value, file)
    # A package that must not be imported for it.
    (tmp_path / "package" / "__init__.py").write_text("raise SystemExit('imported')")
    assert found() == ["patches"]


def test_a_package_may_lie_in_several_folders(tmp_path, monkeypatch, install):
    (tmp_path / "other" / "shared").mkdir(parents=True)
    install("shared:patches.toml", "shared/patches.toml")
    monkeypatch.syspath_prepend(tmp_path / "other")
    assert found() == ["patches"]


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ("package", "names no file; expected 'package:path/inside/the/package.toml'"),
        ("package:", "names no file; expected 'package:path/inside/the/package.toml'"),
        (":patches.toml", "names no file; expected 'package:path/inside/the/package.toml'"),
        ("no_such_package:patches.toml", "there is no package 'no_such_package'; expected one that is installed"),
        (".relative:patches.toml", "there is no package '.relative'; expected one that is installed"),
        ("os:patches.toml", "there is no package 'os'; expected one that is installed"),
        ("package:missing.toml", "cannot be read: No such file or directory"),
        ("package.missing:patches.toml", "cannot be read: No such file or directory"),
    ],
)
def test_an_entry_point_that_leads_nowhere_is_reported(install, value, problem):
    install(value, "package/patches.toml")
    install("package:patches.toml", distribution="another")
    assert sorted(found()) == sorted(["patches", problem])


def test_a_report_names_the_entry_point(install):
    install("nowhere:patches.toml")
    (error,) = (one for one in discovery.manifests(Settings()) if isinstance(one, ManifestError))
    assert error.source == "entry point 'project' of compat_patches.manifests (nowhere:patches.toml)"


@pytest.mark.parametrize("text", [b"no section\n", b"[compat_patches.manifests]\nnothing\n", b"\xff\xfe", b"[\n"])
def test_entry_points_that_cannot_be_read_are_reported_or_passed_over(tmp_path, install, text):
    install("package:patches.toml", "package/patches.toml")
    (tmp_path / "project-1.0.dist-info" / "entry_points.txt").write_bytes(text)
    write(tmp_path / "a.toml", "a")
    *reported, last = found(Settings(manifests=(str(tmp_path / "a.toml"),)))
    assert last == "a"
    assert all(problem.startswith(("cannot be read: ", "names no file")) for problem in reported)


def test_a_finder_that_raises_breaks_nothing(install, monkeypatch):
    class Raising:
        @staticmethod
        def find_spec(name, path=None, target=None):
            if name == "package":
                raise RuntimeError("a finder of somebody else's")

    install("package:patches.toml", "package/patches.toml")
    monkeypatch.setattr(sys, "meta_path", [Raising, *sys.meta_path])
    assert found() == ["there is no package 'package'; expected one that is installed"]


def test_looking_for_manifests_leaves_no_file_open(tmp_path):
    if not os.path.isdir("/proc/self/fd"):
        pytest.skip("needs /proc")
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(20):
        found(Settings(manifests=(str(tmp_path), "missing.toml")))
    assert len(os.listdir("/proc/self/fd")) == before


# --- many projects -------------------------------------------------------------------------------------------------


@pytest.fixture
def looked_at(tmp_path, monkeypatch):
    """60 installed projects that name no manifest; counts how many are read."""
    (tmp_path / "cache").mkdir()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    site_packages = tmp_path / "site-packages"
    for number in range(60):
        folder = site_packages / f"project{number}-1.0.dist-info"
        folder.mkdir(parents=True)
        (folder / "entry_points.txt").write_text("[console_scripts]\nsomething = some:thing\n")
        (folder / "RECORD").touch()
    read, original = [], discovery._read
    monkeypatch.setattr(discovery, "_read", lambda path: read.append(path) or original(path))

    def look() -> tuple[bool, int]:
        read.clear()
        return discovery._somebody_names_a_manifest([str(site_packages)]), len(read)

    look.folder = site_packages
    return look


def make_old(folder: Path) -> None:
    os.utime(folder, (1_700_000_000, 1_700_000_000))


def test_that_none_of_many_projects_names_a_manifest_is_remembered(looked_at):
    make_old(looked_at.folder)
    assert [looked_at(), looked_at()] == [(False, 60), (False, 0)]
    (looked_at.folder / "new-1.0.dist-info").mkdir()
    (looked_at.folder / "new-1.0.dist-info" / "entry_points.txt").write_text("[compat_patches.manifests]\nnew = p:m\n")
    assert looked_at()[0] is True
    # As in an image that is built with one time for all files.
    make_old(looked_at.folder)
    assert looked_at()[0] is True


def test_a_project_that_is_being_installed_is_looked_at_again(looked_at):
    project = looked_at.folder / "new-1.0.dist-info"
    project.mkdir()
    make_old(looked_at.folder)
    assert looked_at() == (False, 61)
    (project / "entry_points.txt").write_text("[compat_patches.manifests]\nnew = p:m\n")
    assert looked_at()[0] is True
    (project / "RECORD").touch()
    assert [looked_at()[0], looked_at()] == [True, (True, 0)]


def test_a_folder_that_was_changed_just_now_is_looked_at_again(looked_at):
    assert [looked_at(), looked_at()] == [(False, 60), (False, 60)]


def test_projects_that_are_worked_on_in_their_place_are_looked_at_again(looked_at):
    (looked_at.folder / "mine.egg-info").mkdir()
    make_old(looked_at.folder)
    assert [looked_at(), looked_at()] == [(False, 61), (False, 61)]


def test_a_store_that_is_broken_is_found_out_anew(looked_at, tmp_path):
    make_old(looked_at.folder)
    looked_at()
    (file,) = (tmp_path / "cache" / "compat_patches").glob("entry-points-*.json")
    for text in ("", "7", "null", "{"):
        file.write_text(text)
        assert looked_at() == (False, 60)
