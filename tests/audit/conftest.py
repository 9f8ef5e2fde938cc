"""Small torches, as folders and as wheels, for tests that need no real one."""

from __future__ import annotations

import textwrap
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

Files = Mapping[str, str]

VERSION_FILE = "__version__ = '{version}'\ncuda = None\nhip = None\nxpu = None\n"


def torch_files(version: str, files: Files) -> dict[str, str]:
    """The files of a torch: those that every one has, and the given ones."""
    return {
        "torch/__init__.py": "",
        "torch/version.py": VERSION_FILE.format(version=version),
        **{path: textwrap.dedent(text) for path, text in files.items()},
    }


@pytest.fixture(autouse=True)
def cache_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No test sees the user's cache, nor what another test left."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "compat-patches" / "audit"


@pytest.fixture
def make_folder(tmp_path: Path) -> Callable[..., Path]:
    """Makes a site-packages with a torch in it."""

    def make(version: str, files: Files, name: str = "site-packages") -> Path:
        root = tmp_path / name
        for path, text in torch_files(version, files).items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(text, encoding="utf-8")
        return root

    return make


@pytest.fixture
def make_wheel(tmp_path: Path) -> Callable[..., Path]:
    """Makes a wheel of torch."""

    def make(version: str, files: Files, tag: str = "cp312-none-macosx_11_0_arm64") -> Path:
        path = tmp_path / f"torch-{version}-{tag}.whl"
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, text in torch_files(version, files).items():
                archive.writestr(name, text)
            info = f"torch-{version}.dist-info"
            archive.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: torch\nVersion: {version}\n")
            archive.writestr(f"{info}/WHEEL", f"Wheel-Version: 1.0\nRoot-Is-Purelib: false\nTag: {tag}\n")
            archive.writestr(f"{info}/RECORD", "")
        return path

    return make


@pytest.fixture
def make_manifest(tmp_path: Path) -> Callable[..., Path]:
    """Makes a manifest of one patch a table, with the fields that nobody cares for here filled in."""

    def make(*tables: str, name: str = "m") -> Path:
        text = f'[manifest]\nname = "{name}"\nschema = 1\n'
        for number, table in enumerate(tables):
            table = textwrap.dedent(table).strip()
            declared = {line.partition("=")[0].strip() for line in table.splitlines()}
            defaults = {
                "id": f'"p{number}"',
                "summary": '"s"',
                "why": '"w"',
                "upstream": '["https://example.org/1"]',
                "remove_when": '"never"',
            }
            lines = [f"{key} = {value}" for key, value in defaults.items() if key not in declared]
            if not {"action", "[[patch.step]]"} & declared:
                lines += ['action = "wrap"', 'using = "impl:make"']
            text += "\n[[patch]]\n" + "\n".join(lines) + "\n" + table + "\n"
        path = tmp_path / f"{name}.toml"
        path.write_text(text, encoding="utf-8")
        return path

    return make
