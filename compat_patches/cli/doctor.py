"""``doctor``: why the patches are active or not, and what to do."""

from __future__ import annotations

import sys
from dataclasses import asdict

import click

from compat_patches import doctor as checks
from compat_patches.env_override import engine
from compat_patches.errors import CompatPatchesError

from .inspect import import_or_tell
from .output import print_json

_COLOURS = {checks.OK: "green", checks.NOTE: "yellow", checks.PROBLEM: "red"}


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--no-torch", is_flag=True, help="Do not import torch.")
@click.option("--import", "modules", multiple=True, metavar="MODULE", help="Import a module first, e.g. vllm.")
@click.option("--selftest", is_flag=True, help="Also compile code that uses what is patched; takes seconds.")
def doctor(as_json: bool, no_torch: bool, modules: tuple[str, ...], selftest: bool) -> None:
    """Find out why the patches are or are not active, and what to do.

    Exit status 1: something is wrong.
    """
    if not no_torch:
        import_or_tell("torch", required=False)
    for module in modules:
        import_or_tell(module, required=True)
    try:
        findings = checks.examine(engine())
        if selftest:
            findings += checks.compile_samples(engine())
    except CompatPatchesError as error:
        raise click.UsageError(str(error)) from None
    if as_json:
        print_json({"schema": 1, "findings": [asdict(finding) for finding in findings]})
    else:
        for finding in findings:
            # click leaves the colours out where the output is no terminal.
            verdict = click.style(f"{finding.verdict:<8}", fg=_COLOURS[finding.verdict])
            click.echo(f"{verdict}{finding.check}: {finding.found}")
            if finding.remedy:
                click.echo(f"        -> {finding.remedy}")
    if any(finding.verdict == checks.PROBLEM for finding in findings):
        sys.exit(1)
