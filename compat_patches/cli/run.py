"""``run``: a program under the patches, as if there were nobody in between.

The interpreter is replaced, not nested: arguments, exit status, signals, ``__main__`` and tracebacks are Python's own.
The patches come with the environment, which the program's children inherit.
"""

from __future__ import annotations

import os
import subprocess
import sys

import click

from compat_patches.launch import child_environment


@click.command(
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
    options_metavar="[OPTIONS]",
)
@click.option("--only", multiple=True, metavar="ID|GROUP", help="Apply these and no others.")
@click.option("--disable", multiple=True, metavar="ID|GROUP", help="Do not apply these.")
@click.option("--strict", is_flag=True, help="Let the program fail where a patch fails.")
@click.option("-m", "module", metavar="MODULE", help="Run a module, as python -m does.")
@click.option("-c", "code", metavar="CODE", help="Run code, as python -c does.")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED, metavar="[SCRIPT] [ARGS]...")
def run(
    only: tuple[str, ...],
    disable: tuple[str, ...],
    strict: bool,
    module: str | None,
    code: str | None,
    arguments: tuple[str, ...],
) -> None:
    """Run a Python program with the patches active, in it and in its children.

    COMPAT_PATCHES=off in the environment wins: the program then runs without any patch.
    """
    if module is not None and code is not None:
        raise click.UsageError("-m and -c exclude each other")
    if module is None and code is None and not arguments:
        raise click.UsageError("nothing to run; give a script, -m MODULE or -c CODE")
    program = ["-m", module] if module is not None else ["-c", code] if code is not None else []
    environment = child_environment(os.environ, only=only, disable=disable, strict=True if strict else None)
    # The flags this interpreter was started with (-X, -W, -I …), the way multiprocessing hands them on.
    flags = subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined]  # as multiprocessing uses it
    sys.stdout.flush()
    sys.stderr.flush()
    os.execve(sys.executable, [sys.executable, *flags, *filter(None, program), *arguments], environment)
