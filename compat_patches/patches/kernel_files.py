"""Reading the small text files of Linux's /proc, /sys and cgroup file systems, often and without raising.

Only os is imported here, so that a module which needs these files costs nothing to import.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["KeptFiles", "number", "read_whole", "text_after"]

# One read of this size gets all of a kernel file that is a single record, as those of KeptFiles are.
_READ_SIZE = 1 << 16


class KeptFiles:
    """Kernel files that stay open between reads, since to open one takes several times as long as to read it.

    Read from its start, an open file of /proc, /sys or a cgroup says what holds now, not what held when it
    was opened. Two things can go wrong with it, and both are noticed: the group is deleted (the kernel then
    refuses to read, also when another group has taken the name), or somebody closed a descriptor that was not
    theirs, as daemons do with all that they find open, and its number was given to another file. Then
    `outdated` becomes true, and the owner starts again with new files.

    Not for a forked child: the parent's /proc/self stays the parent's.
    """

    def __init__(self) -> None:
        self.outdated = False
        self._files: dict[str, _KeptFile] = {}

    def read(self, path: str) -> bytes | None:
        """Return the text of a file, or None if it cannot be read; what cannot be read is not kept."""
        file = self._files.get(path)
        if file is None:
            return self._open(path)
        try:
            file.check()
            return file.read()
        except OSError:
            self.outdated = True
            return None

    def reread(self, path: str) -> bytes | None:
        """Return the same as read(), faster for a file that seldom changes.

        A text equal to the last one is taken for proof that the descriptor still is our file's: where its
        number was given to another file, that file is not likely to hold the very same text and no more.
        """
        file = self._files.get(path)
        if file is None:
            return self._open(path)
        try:
            text = file.read()
            if text != file.text:
                file.check()
                file.text = text
            return text
        except OSError:
            self.outdated = True
            return None

    def _open(self, path: str) -> bytes | None:
        try:
            file = _KeptFile(os.open(path, os.O_RDONLY))
            file.text = file.read()
        except (OSError, ValueError):
            return None
        self._files[path] = file
        return file.text


class _KeptFile:
    """A descriptor of our own, closed with the last reference to it: never while another thread reads."""

    __slots__ = ("_descriptor", "_device", "_inode", "text")

    def __init__(self, descriptor: int) -> None:
        status = os.fstat(descriptor)
        self._descriptor = descriptor
        self._device = status.st_dev
        self._inode = status.st_ino
        self.text = b""

    def read(self) -> bytes:
        return os.pread(self._descriptor, _READ_SIZE, 0)

    def check(self) -> None:
        """Raise OSError unless the descriptor still is our file's and the file still has a name."""
        status = os.fstat(self._descriptor)
        if status.st_ino != self._inode or status.st_dev != self._device or not status.st_nlink:
            raise FileNotFoundError(f"descriptor {self._descriptor} is no longer that of the file opened")

    # The functions are bound early, because at exit the module may be torn down before its last object.
    def __del__(
        self, fstat: Callable[[int], os.stat_result] = os.fstat, close: Callable[[int], None] = os.close
    ) -> None:
        try:
            status = fstat(self._descriptor)
            if status.st_ino == self._inode and status.st_dev == self._device:
                close(self._descriptor)
        except OSError:
            pass


def read_whole(path: str) -> bytes:
    """Return all of a file, however many records it has, or nothing if it cannot be read."""
    parts = []
    try:
        descriptor = os.open(path, os.O_RDONLY)
        try:
            while part := os.read(descriptor, _READ_SIZE):
                parts.append(part)
        finally:
            os.close(descriptor)
    except (OSError, ValueError):
        return b""
    return b"".join(parts)


def number(text: bytes | None) -> int | None:
    """Return the whole number that the text starts with; None for `max`, a negative one and anything else."""
    words = (text or b"").split(None, 1)
    # The kernel's numbers fit into 64 bits, and int() refuses one of thousands of digits.
    return int(words[0]) if words and words[0].isdigit() and len(words[0]) <= 20 else None


def text_after(label: bytes, text: bytes | None) -> bytes:
    """Return the rest of the line behind the label, or nothing; the label may begin with a newline."""
    _, found, rest = (b"\n" + (text or b"")).partition(label)
    return rest.partition(b"\n")[0] if found else b""
