"""Places: what a user may name, and what is said where there is no release."""

from __future__ import annotations

import os
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from compat_patches.audit import fetching, places
from compat_patches.audit.trees import PlaceError, UnreadableSource, Wheel
from compat_patches.manifest import Target

Make = Callable[..., Path]
SOURCE = {"torch/a.py": "def f(x): pass\n"}
TARGET = Target("torch.a", "f")


def test_a_site_packages(make_folder: Make) -> None:
    release = places.open_release(str(make_folder("2.10.0+cu128", SOURCE)))
    assert release.version == "2.10.0+cu128"
    assert release.facts.parameters(TARGET) == ("x",)


def test_an_environment_and_its_python(make_folder: Make, tmp_path: Path) -> None:
    make_folder("2.10.0", SOURCE, name="env/lib/python3.12/site-packages")
    (tmp_path / "env/bin").mkdir()
    (tmp_path / "env/pyvenv.cfg").write_text("")
    (tmp_path / "env/bin/python").symlink_to(sys.executable)
    for where in ("env", "env/bin/python", "env/lib/python3.12/site-packages"):
        release = places.open_release(str(tmp_path / where))
        assert release.version == "2.10.0"
        assert release.python == str(tmp_path / "env/bin/python")


def test_a_wheel(make_wheel: Make) -> None:
    release = places.open_release(str(make_wheel("2.10.0", SOURCE)))
    assert release.version == "2.10.0"
    assert release.python is None
    assert release.facts.parameters(TARGET) == ("x",)


def test_the_build_is_read(make_folder: Make) -> None:
    root = make_folder("2.10.0+rocm6.4", SOURCE)
    (root / "torch/version.py").write_text("__version__ = '2.10.0'\nhip: 'str | None' = '6.4'\ncuda = None\n")
    assert places.open_release(str(root)).build == "rocm"


def nothing_there(tmp_path: Path) -> str:
    return str(tmp_path / "nowhere")


def empty_folder(tmp_path: Path) -> str:
    (tmp_path / "empty").mkdir()
    return str(tmp_path / "empty")


def source_distribution(tmp_path: Path) -> str:
    (tmp_path / "torch-2.10.0.tar.gz").write_bytes(b"\x1f\x8b")
    return str(tmp_path / "torch-2.10.0.tar.gz")


def other_file(tmp_path: Path) -> str:
    (tmp_path / "notes.txt").write_text("torch")
    return str(tmp_path / "notes.txt")


def no_archive(tmp_path: Path) -> str:
    (tmp_path / "torch-2.10.0-cp312-none-any.whl").write_text("<html>404</html>")
    return str(tmp_path / "torch-2.10.0-cp312-none-any.whl")


def empty_file(tmp_path: Path) -> str:
    (tmp_path / "torch-2.10.0-cp312-none-any.whl").write_text("")
    return str(tmp_path / "torch-2.10.0-cp312-none-any.whl")


def other_project(tmp_path: Path) -> str:
    path = tmp_path / "torchvision-0.25.0-cp312-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("torchvision/__init__.py", "")
        archive.writestr("torchvision-0.25.0.dist-info/METADATA", "Name: torchvision\n")
    return str(path)


def editable(tmp_path: Path) -> str:
    (tmp_path / "site-packages").mkdir()
    (tmp_path / "site-packages/__editable___torch_2_10_0_finder.py").write_text("")
    return str(tmp_path / "site-packages")


@pytest.mark.parametrize(
    "place, said",
    [
        (nothing_there, r"there is no .*nowhere, and it is no version number; expected an environment"),
        (empty_folder, r"there is no torch in .*empty \(looked into no site-packages there\); install torch there"),
        (source_distribution, r"torch-2\.10\.0\.tar\.gz is a source distribution; expected a wheel"),
        (other_file, r"notes\.txt is not a wheel; expected a file that ends in \.whl"),
        (no_archive, r"is damaged: .*; expected a wheel, which is a zip file\. Fetch it again"),
        (empty_file, r"is damaged: .*; expected a wheel"),
        (other_project, r"is not a release of torch: there is no torch/version\.py in it; it holds torchvision"),
        (editable, r"installed in .* as an editable checkout .*; name the folder that has its torch/ in it"),
    ],
    ids=lambda value: value.__name__ if callable(value) else "",
)
def test_what_is_no_release_is_named(place: Callable[[Path], str], said: str, tmp_path: Path) -> None:
    with pytest.raises(PlaceError, match=said):
        places.open_release(place(tmp_path))


def test_a_wheel_that_was_cut_off(make_wheel: Make) -> None:
    wheel = make_wheel("2.10.0", SOURCE)
    wheel.write_bytes(wheel.read_bytes()[:-300])
    with pytest.raises(PlaceError, match="is damaged"):
        places.open_release(str(wheel))


def test_a_wheel_with_a_damaged_file(make_wheel: Make) -> None:
    wheel = make_wheel("2.10.0", {"torch/a.py": "def f(x): pass\n" + "# padding\n" * 50})
    content = bytearray(wheel.read_bytes())
    at = content.find(b"torch/a.py") + len("torch/a.py") + 4
    content[at : at + 8] = b"\xff" * 8
    wheel.write_bytes(content)
    release = places.open_release(str(wheel))
    with pytest.raises(UnreadableSource, match=r"torch/a\.py in .* is damaged: .*\. Fetch the wheel again"):
        release.facts.look(TARGET)


def test_a_file_that_claims_to_be_huge_is_not_unpacked(make_wheel: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("compat_patches.audit.trees.LARGEST_SOURCE", 1000)
    release = places.open_release(str(make_wheel("2.10.0", {"torch/a.py": "#" * 2000})))
    with pytest.raises(UnreadableSource, match="has more than 1000 bytes; expected a source file"):
        release.facts.look(TARGET)


def test_a_wheels_identity_is_its_content(make_wheel: Make, tmp_path: Path) -> None:
    wheel = make_wheel("2.10.0", SOURCE)
    first = Wheel(str(wheel)).identity
    assert Wheel(str(wheel.rename(tmp_path / "other.whl"))).identity == first
    assert Wheel(str(make_wheel("2.10.0", {"torch/a.py": "def f(y): pass\n"}))).identity != first


def test_a_zip_that_is_not_laid_out_plainly_has_an_identity_too(make_wheel: Make) -> None:
    wheel = make_wheel("2.10.0", SOURCE)
    wheel.write_bytes(b"#!/bin/sh\n" + wheel.read_bytes())
    assert places.open_release(str(wheel)).facts.parameters(TARGET) == ("x",)


# --- versions ------------------------------------------------------------------------------------------------------


@pytest.fixture
def index(make_wheel: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of wheels that pip takes for its only index."""
    folder = tmp_path / "index"
    folder.mkdir()
    large = make_wheel(
        "2.10.0", {**SOURCE, "torch/large.py": os.urandom(4000).hex()}, "cp312-cp312-manylinux_2_28_x86_64"
    )
    for wheel in (make_wheel("2.10.0", SOURCE), large):
        wheel.rename(folder / wheel.name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    return folder


def test_a_version_is_fetched_once_and_as_the_smallest_wheel(index: Path) -> None:
    release = places.open_release("2.10.0")
    assert "macosx" in release.tree.place
    assert os.listdir(fetching.folder()) == [os.path.basename(release.tree.place)]
    for wheel in index.iterdir():
        wheel.unlink()
    assert places.open_release("2.10.0", offline=True).version == "2.10.0"


def test_a_version_that_does_not_exist(index: Path) -> None:
    with pytest.raises(
        PlaceError, match=r"torch 2\.99\.0 cannot be fetched: pip says: .*No matching distribution found"
    ):
        places.open_release("2.99.0")
    assert os.listdir(fetching.folder()) == []


def test_a_constraint_of_the_users_pip_is_named(index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "constraints.txt").write_text("torch<=2.9.1\n")
    monkeypatch.setenv("PIP_CONSTRAINT", str(tmp_path / "constraints.txt"))
    with pytest.raises(PlaceError, match=r"configured with the constraint torch<=2\.9\.1; lift it, or download"):
        places.open_release("2.10.0")


def test_offline_fetches_nothing(index: Path) -> None:
    with pytest.raises(PlaceError, match="has not been fetched before, and --offline forbids"):
        places.open_release("2.10.0", offline=True)


def test_a_python_without_pip(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "python").write_text("#!/bin/sh\necho 'python: No module named pip' >&2\nexit 1\n")
    (tmp_path / "python").chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    with pytest.raises(PlaceError, match="has no pip; install it, or download the wheel and name its path"):
        places.open_release("2.10.0")


# --- labels --------------------------------------------------------------------------------------------------------


def test_releases_are_sorted_and_told_apart(make_folder: Make) -> None:
    versions = {"a": "2.10.0", "b": "2.9.1+cu128", "c": "2.9.1+cpu", "d": "2.9.1+cpu", "e": "parrots"}
    found: list[places.Release | places.Unread] = [
        places.open_release(str(make_folder(version, SOURCE, name=name))) for name, version in versions.items()
    ]
    found.insert(0, places.Unread("/nowhere/torch.whl", "why"))
    found = places.by_version(found)
    places.label(found)
    labels = [release.label for release in found]
    assert labels[0].startswith("2.9.1+cpu in ") and labels[1].startswith("2.9.1+cpu in ")
    assert labels[2:] == ["2.9.1+cu128", "2.10.0", "parrots", "torch.whl"]
