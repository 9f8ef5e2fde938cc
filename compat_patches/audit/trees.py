"""Source trees: the files of one release, in a folder or inside of a wheel that stays packed.

One file at a time is in memory. Paths are relative and have slashes, as in a wheel.
"""

from __future__ import annotations

import hashlib
import os
import struct
import zipfile
import zlib
from collections.abc import Mapping
from typing import Protocol

from ..errors import CompatPatchesError

LARGEST_SOURCE = 16 * 1024 * 1024
"""Bytes. The largest source file of torch has 0.5 MB; what claims more than this is no source file."""


class PlaceError(CompatPatchesError):
    """There is no release to be read at a place; the text says what is there, and what to do."""


class UnreadableSource(CompatPatchesError):
    """A source file that is there and cannot be read."""


class Tree(Protocol):
    """The files of a release."""

    identity: str
    """Where answers about this tree are kept. For a wheel it is made of its content; for a folder, of its path."""

    place: str
    """The path, for people."""

    def read(self, path: str) -> bytes | None:
        """The content of a file, None where there is none. Raises :class:`UnreadableSource`."""

    def has_folder(self, path: str) -> bool:
        """Whether there is such a folder."""

    def names_in(self, folder: str) -> list[str]:
        """The names of the files that lie directly in a folder, sorted."""

    def sources(self, package: str) -> list[str]:
        """The paths of all Python files of a package, sorted."""

    def close(self) -> None:
        """Let go of what is open; reading opens it again."""

    def still_has(self, digests: Mapping[str, str | None]) -> bool:
        """Whether the content of these files is what it was (None: there was no such file)."""


def digest_of(content: bytes | None) -> str | None:
    return None if content is None else hashlib.sha256(content).hexdigest()


class Folder:
    """A ``site-packages``, or whatever else has packages in it."""

    def __init__(self, path: str) -> None:
        self.place = path
        self.identity = "folder-" + hashlib.sha256(os.fsencode(os.path.realpath(path))).hexdigest()[:32]

    def read(self, path: str) -> bytes | None:
        where = os.path.join(self.place, *path.split("/"))
        try:
            with open(where, "rb") as file:
                content = file.read(LARGEST_SOURCE + 1)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise UnreadableSource(f"{where} cannot be read: {error.strerror or error}") from None
        return _checked(content, where)

    def has_folder(self, path: str) -> bool:
        return os.path.isdir(os.path.join(self.place, *path.split("/")))

    def names_in(self, folder: str) -> list[str]:
        try:
            with os.scandir(os.path.join(self.place, *folder.split("/"))) as entries:
                return sorted(entry.name for entry in entries if entry.is_file())
        except OSError:
            return []

    def sources(self, package: str) -> list[str]:
        found = []
        for folder, folders, files in os.walk(os.path.join(self.place, package)):
            folders.sort()
            relative = os.path.relpath(folder, self.place).replace(os.sep, "/")
            found += [f"{relative}/{name}" for name in files if name.endswith(".py")]
        return sorted(found)

    def close(self) -> None:
        pass  # Nothing is kept open.

    def still_has(self, digests: Mapping[str, str | None]) -> bool:
        try:
            return all(digest_of(self.read(path)) == digest for path, digest in digests.items())
        except UnreadableSource:
            return False


class Wheel:
    """A wheel. Its directory is read when the first file is asked for, and not for an answer that is known."""

    def __init__(self, path: str) -> None:
        """Open a wheel.

        Raises:
            PlaceError: it is no archive, or its directory is damaged.
        """
        self.place = path
        self._archive: zipfile.ZipFile | None = None
        self._folders: dict[str, list[str]] | None = None
        try:
            directory = _packed_directory(path)
            if directory is None:
                directory = repr([(i.filename, i.CRC, i.file_size) for i in self._open().infolist()]).encode()
        except OSError as error:
            raise PlaceError(f"{path} cannot be read: {error.strerror or error}") from None
        self.identity = "wheel-" + hashlib.sha256(directory).hexdigest()[:32]

    def _open(self) -> zipfile.ZipFile:
        if self._archive is None:
            try:
                self._archive = zipfile.ZipFile(self.place)
            except OSError as error:
                raise PlaceError(f"{self.place} cannot be read: {error.strerror or error}") from None
            except (zipfile.BadZipFile, ValueError, NotImplementedError, OverflowError) as error:
                raise PlaceError(
                    f"{self.place} is damaged: {error}; expected a wheel, which is a zip file. Fetch it again"
                ) from None
        return self._archive

    def read(self, path: str) -> bytes | None:
        archive = self._open()
        try:
            with archive.open(path) as file:
                content = file.read(LARGEST_SOURCE + 1)
                return _checked(content, f"{self.place}/{path}")
        except KeyError:
            return None
        # The standard library's reader lets the errors of the data through as they come; encrypted is a RuntimeError.
        except (zipfile.BadZipFile, zlib.error, EOFError, OSError, RuntimeError, NotImplementedError) as error:
            raise UnreadableSource(f"{path} in {self.place} is damaged: {error}. Fetch the wheel again") from None

    def _files(self) -> dict[str, list[str]]:
        if self._folders is None:
            self._folders = {}
            for path in self._open().namelist():
                folder, _, name = path.rpartition("/")
                if name:
                    self._folders.setdefault(folder, []).append(name)
        return self._folders

    def has_folder(self, path: str) -> bool:
        return path in self._files() or any(folder.startswith(path + "/") for folder in self._files())

    def names_in(self, folder: str) -> list[str]:
        return sorted(self._files().get(folder, []))

    def sources(self, package: str) -> list[str]:
        names = self._open().namelist()
        return sorted(name for name in names if name.endswith(".py") and name.startswith(package + "/"))

    def top_level(self) -> list[str]:
        """The packages in it."""
        first = {path.partition("/")[0] for path in self._open().namelist()}
        return sorted(name for name in first if not name.endswith((".dist-info", ".data")))

    def close(self) -> None:
        if self._archive is not None:
            self._archive.close()
        self._archive = self._folders = None

    def still_has(self, digests: Mapping[str, str | None]) -> bool:
        return True  # The identity is the digest of the archive's directory, which has a checksum of each file.


def _checked(content: bytes, where: str) -> bytes:
    if len(content) > LARGEST_SOURCE:
        raise UnreadableSource(f"{where} has more than {LARGEST_SOURCE} bytes; expected a source file")
    return content


_END = struct.Struct("<4s4H2LH")  # The end record of a zip file, APPNOTE 4.3.16.
_LONGEST_COMMENT = 65535


def _packed_directory(path: str) -> bytes | None:
    """The bytes of a zip file's directory, without unpacking its 12,000 entries, which would take 0.1 to 0.4 seconds.

    Returns:
        None where they are not where the plain format has them (damaged, 64-bit, or something in front).
    """
    with open(path, "rb") as file:
        length = file.seek(0, os.SEEK_END)
        file.seek(max(0, length - _END.size - _LONGEST_COMMENT))
        tail = file.read()
        at = tail.rfind(b"PK\5\6")
        if at < 0 or len(tail) - at < _END.size:
            return None
        *_, size, offset, _ = _END.unpack_from(tail, at)
        if offset + size != length - len(tail) + at:
            return None
        file.seek(offset)
        return file.read(size) or None
