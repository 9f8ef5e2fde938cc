"""Manifests: TOML text in, checked and frozen records out.

A manifest is loaded whole or not at all, and all of its faults are reported in one pass. What may stand in one is
declared in :mod:`compat_patches.fields`.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from .errors import ManifestError
from .frozen import Frozen

LARGEST_MANIFEST = 16 * 1024 * 1024
"""Bytes. Far above any real manifest (10,000 patches are about 6 MB); a larger file is somebody's mistake."""

MOST_KEY_PARTS = 16
"""A dotted key of a manifest has three parts or so; tomllib takes minutes for one of 50,000."""

_KEY_PART = r"""(?:[\w-]+|"[^"\n]*"|'[^'\n]*')"""
_LONG_KEY = rf"(?m)(?:^|[\[{{,])[ \t]*{_KEY_PART}(?:[ \t]*\.[ \t]*{_KEY_PART}){{{MOST_KEY_PARTS}}}".encode()


_NONE: Mapping[str, Any] = {}


class Target(Frozen):
    """What a patch changes: ``package.module:Qualified.name``, the left side always an importable module."""

    module: str
    qualname: str

    @classmethod
    def parse(cls, text: str) -> Target:
        module, _, qualname = text.partition(":")
        return cls(module, qualname)

    @property
    def root(self) -> str:
        """The top-level package that has to be imported first."""
        return self.module.partition(".")[0]

    @property
    def name(self) -> str:
        return self.qualname.rpartition(".")[2]

    def __str__(self) -> str:
        return f"{self.module}:{self.qualname}"


class Step(Frozen):
    """One change to one target; a patch has one or more, applied together or not at all."""

    target: Target
    action: str
    also_bind: tuple[Target, ...] = ()
    using: str | None = None
    key: Any = None
    key_object: str | None = None
    value: Any = None
    mode: str = "setdefault"
    rebind: bool = False
    requires: tuple[str, ...] = ()
    pins: Mapping[str, tuple[str, ...]] = _NONE
    sample: str | None = None

    @property
    def targets(self) -> tuple[Target, ...]:
        return (self.target, *self.also_bind)


class Patch(Frozen):
    """One declared patch. ``manifest`` is the name of the manifest that declares it."""

    manifest: str
    id: str
    summary: str
    why: str
    upstream: tuple[str, ...]
    remove_when: str
    steps: tuple[Step, ...]
    groups: tuple[str, ...] = ()
    requires: tuple[str, ...] = ()
    marker: str | None = None
    build: tuple[str, ...] = ()
    needed_if: Mapping[str, Any] = _NONE
    skip_if_marked: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    before: tuple[str, ...] = ()
    conflicts: tuple[str, ...] = ()
    scope: str = "process"
    enabled: bool = True
    irreversible: bool = False
    affects_compile: bool = False

    @property
    def qualified_id(self) -> str:
        return f"{self.manifest}/{self.id}"

    @property
    def target(self) -> Target:
        """The first target; the evidence is about this one."""
        return self.steps[0].target

    @property
    def roots(self) -> frozenset[str]:
        return frozenset(step.target.root for step in self.steps)


class Manifest(Frozen):
    """A checked manifest. ``digest`` is the SHA-256 of its bytes, in hexadecimal digits."""

    name: str
    source: str
    digest: str
    patches: tuple[Patch, ...]


# --- loading -------------------------------------------------------------------------------------------------------


def load(path: str | os.PathLike[str]) -> Manifest:
    """Read and check a manifest file.

    Args:
        path: the file.

    Returns:
        The checked manifest.

    Raises:
        ManifestError: the file cannot be read, is no TOML, or has faults; all of them are listed.
    """
    return parse(read(path), os.fsdecode(path))


def read(path: str | os.PathLike[str]) -> bytes:
    """Read the bytes of a manifest, refusing whatever cannot be one (a folder, a device, 100 MB).

    Raises:
        ManifestError: with the reason.
    """
    source = os.fsdecode(path)
    try:
        # Not blocking: a FIFO that somebody named would otherwise hold up the interpreter's start.
        descriptor = os.open(source, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0))
        try:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                what = "a directory" if stat.S_ISDIR(status.st_mode) else "not a regular file"
                raise ManifestError(source, [f"is {what}; expected a TOML file"])
            # Before an open file is made of it, since that refuses a directory in words of its own.
            with open(descriptor, "rb", closefd=False) as file:
                data = file.read(LARGEST_MANIFEST + 1)
        finally:
            os.close(descriptor)
    except (OSError, ValueError) as error:
        raise ManifestError(source, [f"cannot be read: {getattr(error, 'strerror', None) or error}"]) from None
    if len(data) > LARGEST_MANIFEST:
        size = max(status.st_size, len(data))
        raise ManifestError(source, [f"has {size} bytes; a manifest has at most {LARGEST_MANIFEST}"])
    return data


def parse(data: bytes, source: str) -> Manifest:
    """Check the bytes of a manifest.

    Args:
        data: UTF-8 encoded TOML.
        source: what the errors call it, usually a path.

    Raises:
        ManifestError: with every fault that was found.
    """
    return build(check(data, source), source, digest_of(data))


def digest_of(data: bytes) -> str:
    """The SHA-256 of a manifest's bytes, in hexadecimal digits."""
    import hashlib

    return hashlib.sha256(data).hexdigest()


def check(data: bytes, source: str) -> dict[str, Any]:
    """Read the TOML document in the bytes of a manifest, and check it.

    Raises:
        ManifestError: with every fault that was found.
    """
    from .fields import problems_of

    document = _parse_toml(data, source)
    problems = problems_of(document)
    if problems:
        raise ManifestError(source, problems)
    return document


def build(document: Mapping[str, Any], source: str, digest: str) -> Manifest:
    """Make records of a document that has been checked already (straight from :func:`check`, or from the store)."""
    name = document["manifest"]["name"]
    patches = tuple(_build_patch(name, table) for table in document.get("patch", []))
    return Manifest(name, source, digest, patches)


def _parse_toml(data: bytes, source: str) -> dict[str, Any]:
    try:
        import tomllib
    except ModuleNotFoundError:  # Python 3.10
        import tomli as tomllib  # type: ignore[no-redef]  # one of the two

    if data.startswith(b"\xef\xbb\xbf"):
        raise ManifestError(source, ["starts with a byte-order mark; save it as UTF-8 without one"])
    if not data.strip():
        raise ManifestError(source, ["is empty; expected [manifest] and [[patch]] tables"])
    long_key = re.search(_LONG_KEY, data)
    if long_key is not None:
        line = data.count(b"\n", 0, long_key.start(0) + 1) + 1
        raise ManifestError(source, [f"line {line}: a key of more than {MOST_KEY_PARTS} parts; expected three at most"])
    try:
        return tomllib.loads(data.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise ManifestError(source, [f"is not UTF-8: byte {error.start} is {data[error.start]:#04x}"]) from None
    except (tomllib.TOMLDecodeError, RecursionError, ValueError) as error:
        raise ManifestError(source, [f"is not valid TOML: {error}"]) from None


def _build_patch(manifest: str, table: Mapping[str, Any]) -> Patch:
    # The defaults are those of the records, so that nobody needs the declarations of fields.py to read a checked table.
    given: dict[str, Any] = {
        key: tuple(value) if isinstance(value, list) else value for key, value in table.items() if key in _OWN_KEYS
    }
    marks = given.get("skip_if_marked", ())
    if isinstance(marks, str):
        given["skip_if_marked"] = (marks,)
    steps = table.get("step")
    return Patch(
        manifest=manifest,
        steps=tuple(map(_build_step, steps)) if steps else (_build_step({**table, "requires": []}),),
        **given,
    )


_OWN_KEYS = frozenset(Patch.fields) - {"manifest", "steps"}


def _build_step(table: Mapping[str, Any]) -> Step:
    given = {
        key: _CONVERTED[key](value) if key in _CONVERTED else value for key, value in table.items() if key in _STEP_KEYS
    }
    given.setdefault("target", _ENVIRONMENT)
    return Step(**given)


def _targets(texts: Iterable[str]) -> tuple[Target, ...]:
    return tuple(map(Target.parse, texts))


def _pins(table: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    return {release: tuple(hashes) if isinstance(hashes, list) else (hashes,) for release, hashes in table.items()}


_STEP_KEYS = frozenset(Step.fields)
_CONVERTED: dict[str, Callable[[Any], Any]] = {
    "target": Target.parse,
    "also_bind": _targets,
    "requires": tuple,
    "pins": _pins,
}
_ENVIRONMENT = Target("os", "environ")  # fields.ENVIRONMENT
