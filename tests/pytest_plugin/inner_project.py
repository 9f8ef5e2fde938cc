"""An inner run of pytest in a project of its own, with the plugin installed as an entry point would install it."""

from __future__ import annotations

import importlib.metadata
import os
from pathlib import Path

import pytest
from _pytest.pytester import Pytester

ROOT = Path(__file__).resolve().parents[2]

VICTIM = """
def answer(x=0):
    return 1

def other():
    return 2

class Base:
    def inherited(self):
        return "base"

class Derived(Base):
    pass

class Old:
    pass

options = {"level": 1}
names = ["a", "b", "c"]
"""

REMEDIES = """
import functools

def add_ten(original):
    @functools.wraps(original)
    def answer(*args, **kwargs):
        return original(*args, **kwargs) + 10
    return answer

def add_hundred(original):
    @functools.wraps(original)
    def answer(*args, **kwargs):
        return original(*args, **kwargs) + 100
    return answer

def explode(original):
    raise ValueError("no good")
"""

HEADER = '[manifest]\nname = "test"\nschema = 1\n'


def patch(name: str, **fields: object) -> str:
    """The text of a patch in a manifest; it makes `victim.answer()` greater by ten, unless other fields are given."""
    given = {
        "summary": "a patch of a test",
        "why": "a test needs one",
        "upstream": ["https://example.invalid/1"],
        "remove_when": "the test is over",
        "target": "victim:answer",
        "action": "wrap",
        **({} if {"using", "value", "key"} & fields.keys() else {"using": "remedies:add_ten"}),
        **fields,
    }
    return f'\n[[patch]]\nid = "{name}"\n' + "".join(f"{key} = {_toml(value)}\n" for key, value in given.items())


def _toml(value: object) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {_toml(inner)}" for key, inner in value.items()) + " }"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return f'"{value}"' if isinstance(value, str) else repr(value)


class Project(Pytester):
    """A project with `victim`, which patches are made for, and `remedies`, which implements them.

    Its manifest declares `ten` (applied by activation), `hundred` (opt-in) and `never` (outside of its window).
    """

    def set_up(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.makepyfile(victim=VICTIM, remedies=REMEDIES)
        self.manifest(
            patch("ten", groups=["all"]),
            patch("hundred", using="remedies:add_hundred", enabled=False, groups=["all"]),
            patch("never", requires=["pytest<1"]),
        )
        monkeypatch.setenv("COMPAT_PATCHES_MANIFEST", str(self.path / "manifest.toml"))
        paths = [str(ROOT), str(self.path)]
        if not importlib.metadata.entry_points(group="pytest11", name="compat_patches"):
            paths.append(str(self.install_entry_point()))
        if "PYTHONPATH" in os.environ:
            paths.append(os.environ["PYTHONPATH"])
        monkeypatch.setenv("PYTHONPATH", os.pathsep.join(paths))

    def install_entry_point(self) -> Path:
        """What pip would write for the entry point, in a folder of its own."""
        folder = self.path.joinpath("installed")
        metadata = folder.joinpath("compat_patches_pytest-0.dist-info")
        metadata.mkdir(parents=True)
        metadata.joinpath("METADATA").write_text("Metadata-Version: 2.1\nName: compat-patches-pytest\nVersion: 0\n")
        metadata.joinpath("entry_points.txt").write_text("[pytest11]\ncompat_patches = _compat_patches_pytest\n")
        return folder

    def manifest(self, *patches: str) -> None:
        """Write the project's manifest."""
        self.path.joinpath("manifest.toml").write_text(HEADER + "".join(patches))

    def tests(self, text: str) -> None:
        """Write the module of tests."""
        self.makepyfile(test_it=text)

    def run_tests(self, *arguments: str) -> pytest.RunResult:
        """Run the project's tests in a fresh process, in their order unless `arguments` say otherwise."""
        order = () if any("randomly" in argument for argument in arguments) else ("-p", "no:randomly")
        return self.runpytest_subprocess("-p", "no:cacheprovider", *order, *arguments, timeout=240)
