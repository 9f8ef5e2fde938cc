"""What ruff resolves: the attributes and imports that mean a name of the table, whatever their local name.

ruff runs as a process of its own, on a configuration of ours alone: the user's `ruff.toml`, `# noqa` comments
and RUFF_ variables are about the user's own rules. Its rule TID251 (flake8-tidy-imports, banned-api) follows
imports, scopes and quoted annotations; what it does not follow is `analysis`'s.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from compat_patches.lint.errors import LintError, missing_extra
from compat_patches.lint.table import Table

# The module itself, so that what is handed on as a whole (`cuda = torch.cuda`) comes to light as well.
MODULE = "torch.cuda"

_BANNED = "TID251"


@dataclass(frozen=True)
class Resolved:
    """One place that means `name`: rows from 1, columns from 0 in characters, the end exclusive."""

    name: str
    row: int
    column: int
    end_row: int
    end_column: int


@dataclass(frozen=True)
class RuffResult:
    """What ruff found in each file, and which files it could not parse, by path.

    Attributes:
        crashed: a signal ended ruff, as when code is nested so deeply that its stack overflows. Nothing is
            known of any file then.
    """

    resolved: dict[str, list[Resolved]]
    unparsable: dict[str, str]
    crashed: bool = False


class Ruff:
    """A running ruff process; the caller does other work until it asks for the result."""

    def __init__(self, paths: Iterable[str], table: Table) -> None:
        """Start ruff on `paths`.

        Raises:
            LintError: ruff is not installed, or cannot be started.
        """
        self._folder = tempfile.TemporaryDirectory(prefix="compat-patches-lint-")
        self._spellings = {os.path.abspath(path): path for path in paths}
        self._process: subprocess.Popen[bytes] | None = None
        if not self._spellings:
            return
        folder = Path(self._folder.name)
        config, arguments = folder / "ruff.toml", folder / "arguments"
        config.write_text(configuration(table), encoding="utf-8")
        # A large tree makes a command line that is too long for the system; ruff reads it from a file.
        arguments.write_text("\n".join(self._spellings), encoding="utf-8", errors="surrogateescape")
        command = [
            find_ruff(),
            "check",
            f"--config={config}",
            "--output-format=json",
            "--no-cache",
            "--no-fix",
            "--no-force-exclude",
            "--ignore-noqa",
            "--exit-zero",
            "--quiet",
            f"@{arguments}",
        ]
        environment = {key: value for key, value in os.environ.items() if not key.startswith("RUFF_")}
        try:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=environment,
            )
        except OSError as error:
            self._folder.cleanup()
            raise LintError(f"ruff cannot be started: {command[0]}: {error.strerror}") from error

    def __enter__(self) -> Ruff:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
            self._process.communicate()
        self._folder.cleanup()

    def result(self) -> RuffResult:
        """Wait for ruff and return what it found.

        Raises:
            LintError: ruff failed, with what it said.
        """
        if self._process is None:
            return RuffResult({}, {})
        output, errors = self._process.communicate()
        if self._process.returncode < 0:
            return RuffResult({}, {}, crashed=True)
        if self._process.returncode != 0:
            raise LintError(f"ruff ended with {self._process.returncode}: {errors.decode(errors='replace').strip()}")
        return self._read(output)

    def _read(self, output: bytes) -> RuffResult:
        resolved: dict[str, list[Resolved]] = {}
        unparsable: dict[str, str] = {}
        for entry in json.loads(output):
            path = self._spellings.get(entry["filename"], entry["filename"])
            start, end = entry["location"], entry["end_location"]
            if entry["code"] != _BANNED:
                # E902 says that it could not be read: it has gone since we read it.
                what = "cannot be read" if entry["code"] == "E902" else f"does not parse: line {start['row']}"
                unparsable.setdefault(path, f"{what}: {entry['message']}")
                continue
            # "`torch.cuda.Event` is banned: ..." is the only place where ruff says what the code means.
            name = entry["message"].split("`", 2)[1]
            resolved.setdefault(path, []).append(
                Resolved(name, start["row"], start["column"] - 1, end["row"], end["column"] - 1)
            )
        return RuffResult(resolved, unparsable)


def find_ruff() -> str:
    """Return the path of the ruff executable that belongs to this interpreter.

    Raises:
        LintError: ruff is not installed; the text names the extra.
    """
    try:
        from ruff.__main__ import find_ruff_bin
    except ImportError as error:
        raise missing_extra("ruff") from error
    try:
        return os.fsdecode(find_ruff_bin())
    except FileNotFoundError as error:
        raise missing_extra("ruff") from error


def configuration(table: Table) -> str:
    lines = [
        # The newest syntax there is, so that no file is refused for its age.
        'target-version = "py314"',
        "[lint]",
        f'select = ["{_BANNED}"]',
        "[lint.flake8-tidy-imports.banned-api]",
    ]
    lines += [f'"{name}".msg = ""' for name in sorted({MODULE, *table.by_name})]
    return "\n".join(lines) + "\n"
