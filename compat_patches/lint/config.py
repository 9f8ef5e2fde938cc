"""What a project says about linting, in `pyproject.toml` or `setup.cfg`.

    [tool.compat-patches.lint]                      [compat-patches:lint]
    min-torch = "2.10"                              min-torch = 2.10
    allow = ["vllm/platforms/cuda.py",              allow =
             "tests/*: torch-cuda-event"]               vllm/platforms/cuda.py
    extend = ["tools/migrations.toml"]                  tests/*: torch-cuda-event
                                                    extend = tools/migrations.toml

Paths are relative to the folder of the file. In a glob `*` crosses folders, and a folder's name means all
below it.
"""

from __future__ import annotations

import configparser
import difflib
import fnmatch
import os
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from compat_patches.lint.errors import LintError
from compat_patches.lint.table import parse_version

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

# The first release that the table knows of: with nothing said, nothing newer is suggested.
DEFAULT_MIN_TORCH = (2, 8)

_KEYS = ("allow", "baseline", "exclude", "extend", "min-torch")
_LISTS = ("allow", "exclude", "extend")
_SECTION = "compat-patches:lint"


@dataclass(frozen=True)
class Allowance:
    """A glob of paths, and the rules that are allowed there; every rule if there are none."""

    glob: str
    rules: frozenset[str]


@dataclass(frozen=True)
class Configuration:
    """What holds for a run.

    Attributes:
        root: the folder that globs are relative to.
        min_torch_from: where min_torch comes from, for a reader.
    """

    root: Path
    min_torch: tuple[int, int] = DEFAULT_MIN_TORCH
    min_torch_from: str = "the default"
    allow: tuple[Allowance, ...] = ()
    exclude: tuple[str, ...] = ()
    extend: tuple[Path, ...] = ()
    baseline: Path | None = None

    def excludes(self, path: str) -> bool:
        """Return whether a file or folder is not looked at."""
        return bool(self.exclude) and any(_matches(self._relative(path), glob) for glob in self.exclude)

    def allows(self, path: str, rule: str) -> bool:
        """Return whether `rule` is allowed anywhere in the file `path`."""
        if not self.allow:
            return False
        relative = self._relative(path)
        return any(
            (not allowance.rules or rule in allowance.rules) and _matches(relative, allowance.glob)
            for allowance in self.allow
        )

    def _relative(self, path: str) -> str:
        return os.path.relpath(os.path.abspath(path), self.root).replace(os.sep, "/")


def load(paths: Iterable[Path], file: Path | None = None, min_torch: tuple[int, int] | None = None) -> Configuration:
    """Return the configuration for `paths`.

    Args:
        file: the configuration file; by default, the first of pyproject.toml and setup.cfg that is found in
            the folder that `paths` share, or above it.
        min_torch: what the command line says, before which everything else gives way.

    Raises:
        LintError: a file cannot be read, a key is unknown or of the wrong kind, or both files have a section.
    """
    root = file.resolve().parent if file is not None else _project_folder(paths)
    documents = [file] if file is not None else [root / "pyproject.toml", root / "setup.cfg"]
    sections: list[tuple[Path, dict[str, Any]]] = []
    needed: tuple[tuple[int, int], str] | None = None
    for path in documents:
        if not path.is_file():
            if path is file:
                raise LintError(f"{path}: there is no such configuration file")
            continue
        section, requirements = _read(path)
        if section is not None:
            sections.append((path, section))
        needed = needed or _needed_torch(requirements, path)
    if len(sections) > 1:
        raise LintError(f"{sections[0][0]} and {sections[1][0]} both configure lint; keep one of the two sections")
    path, section = sections[0] if sections else (root, {})
    values = _validated(path, section)
    if min_torch is not None:
        chosen = (min_torch, "--min-torch")
    elif "min-torch" in values:
        chosen = (_version(path, values["min-torch"]), str(path))
    else:
        chosen = needed or (DEFAULT_MIN_TORCH, "the default, for want of --min-torch")
    baseline = values.get("baseline")
    return Configuration(
        root=root,
        min_torch=chosen[0],
        min_torch_from=chosen[1],
        allow=tuple(_allowance(line) for line in values.get("allow", ())),
        exclude=tuple(values.get("exclude", ())),
        extend=tuple(root / name for name in values.get("extend", ())),
        baseline=root / baseline if baseline is not None else None,
    )


def _project_folder(paths: Iterable[Path]) -> Path:
    resolved = [os.path.abspath(path) for path in paths] or [os.getcwd()]
    start = Path(os.path.commonpath(resolved))
    if not start.is_dir():
        start = start.parent
    for folder in (start, *start.parents):
        if (folder / "pyproject.toml").is_file() or (folder / "setup.cfg").is_file():
            return folder
    return start


def _read(path: Path) -> tuple[dict[str, Any] | None, list[list[str]]]:
    """Return a file's section on lint, and its groups of requirements, the ones that count most first."""
    try:
        if path.suffix == ".toml":
            return _read_toml(tomllib.loads(path.read_text(encoding="utf-8-sig")))
        parser = configparser.ConfigParser(interpolation=None)
        parser.read_string(path.read_text(encoding="utf-8-sig"), str(path))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, configparser.Error) as error:
        raise LintError(f"{path}: the configuration cannot be read: {error}") from error
    section: dict[str, Any] | None = None
    if parser.has_section(_SECTION):
        section = {key: _lines(value) if key in _LISTS else value for key, value in parser.items(_SECTION)}
    extras = parser["options.extras_require"] if parser.has_section("options.extras_require") else {}
    return section, [
        _lines(parser.get("options", "install_requires", fallback="")),
        [line for value in extras.values() for line in _lines(value)],
    ]


def _read_toml(document: dict[str, Any]) -> tuple[dict[str, Any] | None, list[list[str]]]:
    section = _table(document, "tool", "compat-patches", "lint")
    project, build = _table(document, "project") or {}, _table(document, "build-system") or {}
    optional = project.get("optional-dependencies")
    groups = list(optional.values()) if isinstance(optional, dict) else []
    requirements = [
        project.get("dependencies"),
        [line for group in groups if isinstance(group, list) for line in group],
        build.get("requires"),
    ]
    return section, [
        [line for line in group if isinstance(line, str)] for group in requirements if isinstance(group, list)
    ]


def _table(document: dict[str, Any], *keys: str) -> dict[str, Any] | None:
    current: Any = document
    for key in keys:
        current = current.get(key) if isinstance(current, dict) else None
    return current if isinstance(current, dict) else None


def _lines(value: str) -> list[str]:
    return [line.strip() for line in value.splitlines() if line.strip() and not line.strip().startswith("#")]


def _needed_torch(groups: list[list[str]], path: Path) -> tuple[tuple[int, int], str] | None:
    """Return the oldest torch that a project's own requirements let through, and where they say so."""
    for group in groups:
        lines = [line for line in group if line.startswith("torch")]
        if not lines:
            continue
        # Only now, since it is a costly import and most projects name their torch in a handful of lines.
        from packaging.requirements import InvalidRequirement, Requirement
        from packaging.version import Version

        lowest: list[tuple[int, int]] = []
        for line in lines:
            try:
                requirement = Requirement(line)
            except InvalidRequirement:
                continue
            if requirement.name.lower() != "torch":
                continue
            bounds = [
                Version(specifier.version.removesuffix(".*"))
                for specifier in requirement.specifier
                if specifier.operator in (">=", "==", "~=", ">")
            ]
            if bounds:
                oldest = max(bounds)
                lowest.append((oldest.major, oldest.minor))
        if lowest:
            return min(lowest), f"the requirements in {path.name}"
    return None


def _validated(path: Path, section: dict[str, Any]) -> dict[str, Any]:
    problems = []
    for key, value in section.items():
        if key not in _KEYS:
            near = difflib.get_close_matches(key, _KEYS, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"expected one of {', '.join(_KEYS)}"
            problems.append(f"{path}: lint: unknown key {key!r}; {hint}")
        elif key in _LISTS:
            if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
                problems.append(f"{path}: lint: {key}: expected a list of texts, found {value!r}")
        elif not isinstance(value, str):
            problems.append(f"{path}: lint: {key}: expected a text, found {value!r}")
    if problems:
        raise LintError("\n".join(problems))
    return section


def _version(path: Path, text: str) -> tuple[int, int]:
    try:
        return parse_version(text)
    except ValueError as error:
        raise LintError(f"{path}: lint: min-torch: {error}") from error


def _allowance(line: str) -> Allowance:
    glob, _, rules = line.partition(": ")
    return Allowance(glob.strip().rstrip(":"), frozenset(rule.strip() for rule in rules.split(",") if rule.strip()))


def _matches(path: str, glob: str) -> bool:
    glob = glob.removeprefix("./").rstrip("/")
    return fnmatch.fnmatchcase(path, glob) or fnmatch.fnmatchcase(path, f"{glob}/*")
