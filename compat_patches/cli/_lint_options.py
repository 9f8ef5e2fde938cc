"""The arguments and options that `lint` and `fix` share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

FILE = click.Path(dir_okay=False, path_type=Path)
SETTINGS = {"help_option_names": ["-h", "--help"]}

_Command = TypeVar("_Command", bound=Callable[..., Any])


def _version(context: click.Context, parameter: click.Parameter, value: str | None) -> tuple[int, int] | None:
    if value is None:
        return None
    from compat_patches.lint.table import parse_version

    try:
        return parse_version(value)
    except ValueError as error:
        raise click.BadParameter(str(error)) from error


def shared_options(command: _Command) -> _Command:
    """Give a command PATHS, --min-torch, --config and --table."""
    for decorate in (
        click.option(
            "--table",
            "tables",
            multiple=True,
            type=FILE,
            help="A file of further migrations; may be repeated.",
        ),
        click.option("--config", type=FILE, help="Read this pyproject.toml or setup.cfg, not the nearest one."),
        click.option(
            "--min-torch",
            callback=_version,
            metavar="VERSION",
            help="The oldest torch that the code has to run with, as in 2.10: nothing newer is suggested. "
            "Default: what the configuration or the project's own requirements say.",
        ),
        click.argument("paths", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path)),
    ):
        command = decorate(command)
    return command
