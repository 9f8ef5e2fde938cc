"""The build backend: what lies in a wheel, an editable wheel and a source distribution."""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
from environments import CHECKOUT, Environment

sys.path.insert(0, str(CHECKOUT / "_build"))
try:
    import backend
finally:
    sys.path.remove(str(CHECKOUT / "_build"))


def test_the_wheel_carries_the_manifest_and_the_startup_files(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        assert archive.read("compat_patches/patches.toml") == (CHECKOUT / "patches.toml").read_bytes()
        for name in ("compat_patches.pth", "compat_patches.start"):
            assert archive.read(name) == (CHECKOUT / "_build" / name).read_bytes()
        assert "_compat_patches_startup.py" in archive.namelist()
        assert "compat_patches/_sitecustomize/sitecustomize.py" in archive.namelist()


def test_record_names_each_file_of_the_wheel_once_with_its_hash_and_size(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        (record,) = [name for name in archive.namelist() if name.endswith(".dist-info/RECORD")]
        assert archive.namelist()[-1] == record
        rows = list(csv.reader(io.StringIO(archive.read(record).decode("utf-8"))))
        assert sorted(row[0] for row in rows) == sorted(archive.namelist())
        assert rows[-1] == [record, "", ""]
        for name, digest, size in rows[:-1]:
            data = archive.read(name)
            assert size == str(len(data))
            encoded = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            assert digest == f"sha256={encoded}"


def test_a_wheel_is_reproducible(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    wheels = []
    for name in ("first", "second"):
        command = [sys.executable, "-m", "pip", "--quiet", "wheel", "--no-deps", "--no-index", "--no-build-isolation"]
        subprocess.run([*command, "--wheel-dir", tmp_path / name, CHECKOUT], check=True, capture_output=True)
        wheels += [path.read_bytes() for path in (tmp_path / name).glob("*.whl")]
    assert len(wheels) == 2
    assert wheels[0] == wheels[1]


def test_what_an_earlier_build_left_is_not_shipped(tmp_path: Path) -> None:
    checkout = tmp_path / "checkout"
    ignored = shutil.ignore_patterns(".*", "build", "dist", "tests", "docs", "*.egg-info", "__pycache__")
    shutil.copytree(CHECKOUT, checkout, ignore=ignored)
    stale = checkout / "build" / "lib" / "compat_patches" / "gone.py"
    stale.parent.mkdir(parents=True)
    stale.write_text("")
    command = [sys.executable, "-m", "pip", "--quiet", "wheel", "--no-deps", "--no-index", "--no-build-isolation"]
    subprocess.run([*command, "--wheel-dir", tmp_path / "wheel", checkout], check=True, capture_output=True)
    (built,) = (tmp_path / "wheel").glob("*.whl")
    with zipfile.ZipFile(built) as archive:
        assert "compat_patches/engine.py" in archive.namelist()
        assert "compat_patches/gone.py" not in archive.namelist()


def test_a_file_that_the_wheel_has_already_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "some.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("compat_patches.pth", "")
        archive.writestr("some-1.dist-info/RECORD", "")
    before = path.read_bytes()
    with pytest.raises(ValueError, match=r"has compat_patches\.pth already"):
        backend.add_files(str(path), {"compat_patches.pth": str(CHECKOUT / "LICENSE")})
    assert path.read_bytes() == before


def test_an_installed_wheel_reads_its_own_manifest(installed: Environment) -> None:
    code = "import json, compat_patches.discovery as d; print(json.dumps(d.builtin_manifest()))"
    assert installed.ask(code) == str(installed.site_packages / "compat_patches" / "patches.toml")


def test_an_editable_install_reads_the_manifest_of_the_checkout(editable: Environment) -> None:
    code = "import json, compat_patches.discovery as d; print(json.dumps(d.builtin_manifest()))"
    assert editable.ask(code) == str(CHECKOUT / "patches.toml")


def test_uninstalling_leaves_nothing_behind(disposable: Environment) -> None:
    def files() -> set[str]:
        return {path.name for path in disposable.site_packages.iterdir() if path.name != "__pycache__"}

    assert "compat_patches.pth" in files()
    disposable.pip("uninstall", "--yes", "compat-patches")
    assert files() == {"zz_tests.pth"}


def test_a_wheel_can_be_built_from_the_source_distribution(tmp_path: Path, wheel: Path) -> None:
    code = f"import backend; print(backend.build_sdist({str(tmp_path)!r}))"
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=CHECKOUT,
        env={"PYTHONPATH": "_build", "PATH": ""},
        check=True,
        capture_output=True,
        text=True,
    )
    with tarfile.open(tmp_path / done.stdout.splitlines()[-1]) as archive:
        archive.extractall(tmp_path / "unpacked", filter="data")
    (folder,) = (tmp_path / "unpacked").iterdir()
    command = [sys.executable, "-m", "pip", "--quiet", "wheel", "--no-deps", "--no-index", "--no-build-isolation"]
    subprocess.run([*command, "--wheel-dir", tmp_path / "wheel", folder], check=True, capture_output=True)
    (built,) = (tmp_path / "wheel").glob("*.whl")
    with zipfile.ZipFile(wheel) as expected, zipfile.ZipFile(built) as found:
        assert sorted(found.namelist()) == sorted(expected.namelist())
