"""What was found out before, in the user's cache folder: checked manifests and the answers of predicates.

Both follow from what they are made of alone, so each file bears a hash of all of that in its name: nothing is ever out
of date, and losing a file costs some milliseconds. It spares a process that imports torch the import of packaging and
of a TOML parser, which torch does not import itself.

A file is read only where nobody else can have written it, and holds JSON, which can do nothing. It is written whole
under another name and then renamed. Whatever goes wrong here means that the answer is found out anew.
"""

from __future__ import annotations

import functools
import os
import stat
import sys
from typing import Any

LARGEST_FILE = 32 * 1024 * 1024
"""Bytes. Twice the largest manifest; anything larger is not ours."""

MOST_FILES = 64
"""How many files are kept. Each manifest and each torch has one."""

_SOURCES = ("answers.py", "fields.py", "manifest.py", "predicates.py")
"""The code that the answers follow from; it changes without a new version in a checkout."""


def folder() -> str:
    """The folder of the files, whether it exists or not."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    # A relative one is to be ignored, as the XDG specification says; it would depend on the working directory.
    if not os.path.isabs(base):
        base = os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(base, "compat_patches")


def key(kind: str, *parts: Any) -> str:
    """Name an answer after all that it follows from, with our own code and this Python.

    Args:
        kind: what sort of answer it is; the name starts with it.
        parts: what else it follows from, anything that JSON can hold.
    """
    import hashlib
    import json

    from . import __version__

    made_of = [__version__, _own_code(), sys.version, *parts]
    return f"{kind}-{hashlib.sha256(json.dumps(made_of, sort_keys=True).encode()).hexdigest()}.json"


def read(name: str) -> Any:
    """What is kept under a name of :func:`key`; None where there is nothing, or nothing that can be trusted."""
    import json

    directory = folder()
    try:
        if not _is_ours_alone(os.lstat(directory), stat.S_IFDIR):
            return None
        descriptor = os.open(os.path.join(directory, name), os.O_RDONLY | _NO_LINKS)
        with open(descriptor, "rb") as file:
            status = os.fstat(descriptor)
            if not _is_ours_alone(status, stat.S_IFREG) or status.st_size > LARGEST_FILE:
                return None
            return json.loads(file.read())
    except (OSError, ValueError, RecursionError):
        return None


def write(name: str, answer: Any) -> None:
    """Keep an answer, where there is a place for it. One that JSON cannot hold exactly is not kept."""
    import json

    try:
        data = json.dumps(answer).encode()
        if json.loads(data) != answer or len(data) > LARGEST_FILE:
            return
        directory = folder()
        os.makedirs(directory, mode=0o700, exist_ok=True)
        if not _is_ours_alone(os.lstat(directory), stat.S_IFDIR):
            return
        _write_whole(os.path.join(directory, name), data)
        _drop_the_oldest(directory)
    except (OSError, TypeError, ValueError, RecursionError):
        return


_NO_LINKS = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NONBLOCK", 0)


def _is_ours_alone(status: os.stat_result, kind: int) -> bool:
    if stat.S_IFMT(status.st_mode) != kind or status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return False
    return not hasattr(os, "geteuid") or status.st_uid == os.geteuid()


def _write_whole(path: str, data: bytes) -> None:
    unfinished = f"{path}.{os.urandom(8).hex()}"
    descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NO_LINKS, 0o600)
    try:
        with open(descriptor, "wb") as file:
            file.write(data)
        os.replace(unfinished, path)
    except BaseException:
        os.unlink(unfinished)
        raise


def _drop_the_oldest(directory: str) -> None:
    with os.scandir(directory) as entries:
        ages = sorted((entry.stat(follow_symlinks=False).st_mtime, entry.path) for entry in entries)
    for _, path in ages[:-MOST_FILES]:
        os.unlink(path)


@functools.lru_cache(maxsize=1)
def _own_code() -> list[list[int]]:
    package = os.path.dirname(os.path.abspath(__file__))
    try:
        found = [os.stat(os.path.join(package, name)) for name in _SOURCES]
    except OSError:
        # Without source files (in a zip file, say) nobody edits them, and the version tells.
        return []
    return [[status.st_size, status.st_mtime_ns] for status in found]
