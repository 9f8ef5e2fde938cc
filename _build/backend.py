"""The build backend: setuptools, plus the files of the wheel that setuptools cannot place.

Those are ``compat_patches.pth`` and ``compat_patches.start``, which Python reads only at the top of ``site-packages``,
and ``patches.toml``, whose one source is the root of the checkout and whose place in a wheel is inside the package.
An editable wheel gets the startup files alone: there the manifest is read from the checkout.

What the metadata says stands in ``setup.cfg``.
"""

from __future__ import annotations

import base64
import contextlib
import csv
import hashlib
import io
import os
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from typing import Any

from setuptools import build_meta
from setuptools.build_meta import (
    build_sdist,
    get_requires_for_build_editable,
    get_requires_for_build_sdist,
    get_requires_for_build_wheel,
    prepare_metadata_for_build_editable,
    prepare_metadata_for_build_wheel,
)

__all__ = [
    "build_editable",
    "build_sdist",
    "build_wheel",
    "get_requires_for_build_editable",
    "get_requires_for_build_sdist",
    "get_requires_for_build_wheel",
    "prepare_metadata_for_build_editable",
    "prepare_metadata_for_build_wheel",
]

STARTUP_FILES = {
    "compat_patches.pth": "_build/compat_patches.pth",
    "compat_patches.start": "_build/compat_patches.start",
}
"""Where a file goes in the wheel, and where it comes from, seen from the root of the checkout."""

MANIFEST = {"compat_patches/patches.toml": "patches.toml"}


def build_wheel(
    wheel_directory: str, config_settings: Mapping[str, Any] | None = None, metadata_directory: str | None = None
) -> str:
    """Build a wheel (PEP 517)."""
    with _build_folder_of_its_own():
        name = build_meta.build_wheel(wheel_directory, config_settings, metadata_directory)
    add_files(os.path.join(wheel_directory, name), STARTUP_FILES | MANIFEST)
    return name


def build_editable(
    wheel_directory: str, config_settings: Mapping[str, Any] | None = None, metadata_directory: str | None = None
) -> str:
    """Build an editable wheel (PEP 660)."""
    name = build_meta.build_editable(wheel_directory, config_settings, metadata_directory)
    add_files(os.path.join(wheel_directory, name), STARTUP_FILES)
    return name


@contextlib.contextmanager
def _build_folder_of_its_own() -> Iterator[None]:
    """setuptools would use ``build/`` of the checkout, and ship what a module that is gone by now has left there."""
    variable = "DIST_EXTRA_CONFIG"
    if variable in os.environ:
        yield
        return
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "extra.cfg"), "w", encoding="utf-8") as file:
            file.write(f"[build]\nbuild_base = {os.path.join(folder, 'build')}\n")
        os.environ[variable] = file.name
        try:
            yield
        finally:
            del os.environ[variable]


def add_files(wheel: str, files: Mapping[str, str]) -> None:
    """Add files to a wheel, and to its RECORD.

    Args:
        wheel: the path of the wheel; it is written anew.
        files: the path of each file in the wheel, and the path that it is read from.

    Raises:
        ValueError: the wheel has a file of that name already, or no RECORD.
        OSError: a file cannot be read or written.
    """
    unfinished = f"{wheel}.unfinished"
    with zipfile.ZipFile(wheel) as source, zipfile.ZipFile(unfinished, "w", zipfile.ZIP_DEFLATED) as result:
        records = [entry for entry in source.infolist() if entry.filename.endswith(".dist-info/RECORD")]
        if len(records) != 1:
            raise ValueError(f"{wheel} has {len(records)} RECORD files; expected one")
        taken = sorted(files.keys() & set(source.namelist()))
        if taken:
            raise ValueError(f"{wheel} has {', '.join(taken)} already; expected to add it")
        for entry in source.infolist():
            if entry is not records[0]:
                result.writestr(entry, source.read(entry))
        rows = list(csv.reader(io.StringIO(source.read(records[0]).decode("utf-8"))))
        for name, path in files.items():
            with open(path, "rb") as file:
                data = file.read()
            # With RECORD's time, which honours SOURCE_DATE_EPOCH, the wheel stays reproducible.
            result.writestr(_entry_like(records[0], name), data)
            rows.append([name, _digest(data), str(len(data))])
        # RECORD names itself in its last row, as PEP 427 recommends that it be the last entry.
        rows.sort(key=lambda row: row[0] == records[0].filename)
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows(rows)
        result.writestr(_entry_like(records[0], records[0].filename), text.getvalue().encode("utf-8"))
    os.replace(unfinished, wheel)


def _entry_like(model: zipfile.ZipInfo, name: str) -> zipfile.ZipInfo:
    entry = zipfile.ZipInfo(name, model.date_time)
    entry.external_attr, entry.compress_type = model.external_attr, zipfile.ZIP_DEFLATED
    return entry


def _digest(data: bytes) -> str:
    """The hash as RECORD spells it: URL-safe base64 without padding."""
    return "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode("ascii")
