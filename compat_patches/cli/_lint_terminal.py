"""What `lint` and `fix` share on a terminal: colour, progress, and how misuse ends."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable
from types import TracebackType
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from compat_patches.lint.sources import Problem

# A run that is shorter than this is over before anybody reads a bar.
_SECONDS_BEFORE_PROGRESS = 1.0


class Misuse(click.ClickException):
    """An error that ends the command with exit code 2."""

    exit_code = 2


def style(text: str, name: str) -> str:
    """Colour `text`; click takes the colour out again where the output is no terminal."""
    return click.style(text, bold=True) if name == "bold" else click.style(text, fg=name)


def report_problems(problems: Iterable[Problem]) -> None:
    """Say on stderr which files were passed over."""
    for problem in problems:
        click.echo(f"{problem.path}: passed over: {problem.reason}", err=True)


class Progress:
    """A bar on stderr, once the work has taken long enough to want one and if stderr is a terminal."""

    def __init__(self) -> None:
        self._started = time.monotonic()
        self._bar: Any = None
        self._task: Any = None

    def __enter__(self) -> Progress:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def __call__(self, what: str, done: int, total: int) -> None:
        """Say that `done` of `total` files have gone through the step called `what`."""
        if self._bar is None:
            if time.monotonic() - self._started < _SECONDS_BEFORE_PROGRESS or not sys.stderr.isatty():
                return
            from rich.console import Console
            from rich.progress import Progress as Bar

            # No thread that refreshes it: processes are forked off while it is there.
            self._bar = Bar(console=Console(stderr=True), transient=True, auto_refresh=False)
            self._task = self._bar.add_task(what, total=total)
            self._bar.start()
        self._bar.update(self._task, description=what, completed=done, total=total, refresh=True)
