"""Which files are looked at: walking the paths, reading, and passing over what cannot hold a finding.

Most files of a large tree never name torch.cuda. They are told apart by their bytes, before anything parses
them.
"""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from compat_patches.lint.table import Table

# Folders of tools and environments; none is a project's own source.
SKIPPED_FOLDERS = frozenset(
    [
        ".git",
        ".hg",
        ".svn",
        ".tox",
        ".nox",
        ".venv",
        "venv",
        ".eggs",
        ".mypy_cache",
        ".pytest_cache",
        ".ruff_cache",
        "__pycache__",
        "node_modules",
        "site-packages",
    ]
)


@dataclass(frozen=True)
class Problem:
    """A file that was passed over, and why."""

    path: str
    reason: str


@dataclass(frozen=True)
class Source:
    """A file that may hold a finding: its path as the user would write it, and its text."""

    path: str
    text: str

    @property
    def package(self) -> str:
        """The dotted name of the package that the file is in; empty if it is in none."""
        return _package(os.path.dirname(os.path.abspath(self.path)))


@functools.cache
def _package(folder: str) -> str:
    if not os.path.isfile(os.path.join(folder, "__init__.py")):
        return ""
    parent, name = os.path.split(folder)
    outer = _package(parent)
    return f"{outer}.{name}" if outer else name


# ruff is told its files line by line, and names them in JSON: no line ends, and nothing that is not Unicode.
_NAMEABLE = re.compile("[^\\r\\n\\ud800-\\udfff]+")


class Filter:
    """Tells from the bytes of a file whether it may hold a use of a name of the table."""

    # The word as an identifier that is not called itself: `tensor.cuda()` is no use of torch.cuda.
    _WORD = re.compile(rb"""cuda\b(?![(:"'])""")
    _GETATTR = re.compile(rb"""["']cuda["']""")
    _BEFORE_A_NAME = frozenset(b" \t\r\n\f.,;()[]{}=:\\")

    def __init__(self, table: Table) -> None:
        self._word_sets = [tuple(sorted(word.encode() for word in words)) for words in table.words]

    def __call__(self, content: bytes) -> bool:
        return any(
            all(word in content for word in words) and (words != (b"cuda", b"torch") or self._names_module(content))
            for words in self._word_sets
        )

    def _names_module(self, content: bytes) -> bool:
        if b"torch.cuda" in content:
            return True
        for match in self._WORD.finditer(content):
            if content[match.start() - 1] in self._BEFORE_A_NAME:
                return True
        return b"getattr" in content and self._GETATTR.search(content) is not None


def walk(paths: Iterable[Path], excluded: Callable[[str], bool], problems: list[Problem]) -> Iterator[str]:
    """Yield each Python file under `paths` once, in order, and report what is passed over.

    A folder is searched for `*.py` and `*.pyi`, a file that is named is taken whatever it is called. Links
    inside a folder are reported and not followed, since what they lead to would be found twice, or lies
    outside.
    """
    seen: set[str] = set()
    for path in paths:
        start = os.fspath(path)
        if not os.path.isdir(start):
            if start not in seen:
                seen.add(start)
                yield start
            continue
        for file in _walk_folder(start, excluded, problems):
            if file not in seen:
                seen.add(file)
                yield file


def _walk_folder(folder: str, excluded: Callable[[str], bool], problems: list[Problem]) -> Iterator[str]:
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError as error:
        problems.append(Problem(folder, f"cannot be listed: {error.strerror}"))
        return
    folders = []
    for entry in entries:
        path = entry.path[2:] if entry.path.startswith("./") else entry.path
        is_python = entry.name.endswith((".py", ".pyi"))
        if entry.is_symlink():
            if is_python and not excluded(path):
                problems.append(Problem(path, "is a link, which is not followed"))
        elif entry.is_dir(follow_symlinks=False):
            if entry.name not in SKIPPED_FOLDERS and not excluded(path):
                folders.append(path)
        elif is_python and not excluded(path):
            yield path
    for path in folders:
        yield from _walk_folder(path, excluded, problems)


def read(path: str) -> bytes | Problem:
    """Return the content of a file, or why it cannot be had; it may have gone since it was listed."""
    try:
        with open(path, "rb") as file:
            return file.read()
    except FileNotFoundError:
        return Problem(path, "vanished before it could be read")
    except OSError as error:
        return Problem(path, f"cannot be read: {error.strerror}")


def decode(path: str, content: bytes) -> Source | Problem:
    """Return the text of a file, or why it is none. A byte-order mark is not part of the text."""
    try:
        return Source(path, content.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        return Problem(path, f"is not UTF-8: byte 0x{content[error.start]:02x} at offset {error.start}")


def candidates(paths: Iterable[str], table: Table) -> tuple[list[Source], list[Problem]]:
    """Read `paths` and return those that may hold a finding, and what could not be read as text."""
    may_hold = Filter(table)
    sources: list[Source] = []
    problems: list[Problem] = []
    for path in paths:
        if not _NAMEABLE.fullmatch(path):
            problems.append(Problem(ascii(path)[1:-1], "has a name that cannot be handed on to ruff"))
            continue
        content = read(path)
        if isinstance(content, Problem):
            problems.append(content)
        elif may_hold(content):
            source = decode(path, content)
            (problems if isinstance(source, Problem) else sources).append(source)  # type: ignore[arg-type]
    return sources, problems
