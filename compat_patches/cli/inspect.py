"""``list``, ``status`` and ``explain``: what is declared, and how it stands in this environment."""

from __future__ import annotations

import importlib
import sys

import click

import compat_patches
from compat_patches.env_override import engine
from compat_patches.errors import CompatPatchesError
from compat_patches.report import as_data, as_document

from .output import print_json, print_table


@click.command("list")
@click.argument("names", nargs=-1, metavar="[ID|GROUP]...")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def list_(names: tuple[str, ...], as_json: bool) -> None:
    """List the declared patches, whether they are for this environment or not."""
    try:
        patches = engine().patches(*names)
    except CompatPatchesError as error:
        raise click.UsageError(str(error)) from None
    if as_json:
        print_json([as_data(patch) for patch in patches])
        return
    print_table(
        ("patch", "manifest", "requires", "summary"),
        [(patch.id, patch.manifest, ", ".join(patch.requires), patch.summary) for patch in patches],
    )


@click.command()
@click.argument("names", nargs=-1, metavar="[ID|GROUP]...")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option(
    "--no-torch", is_flag=True, help="Do not import torch; patches that would be applied say what they wait for."
)
@click.option(
    "--import",
    "modules",
    multiple=True,
    metavar="MODULE",
    help="Import a module first, e.g. torch._inductor.codecache.",
)
def status(names: tuple[str, ...], as_json: bool, no_torch: bool, modules: tuple[str, ...]) -> None:
    """Show how each patch stands in a process that has imported torch, and why.

    Exit status 1: a patch failed.
    """
    if not no_torch:
        import_or_tell("torch", required=False)
    for module in modules:
        import_or_tell(module, required=True)
    try:
        statuses = compat_patches.status(*names)
        torch = engine().circumstances.torch
    except CompatPatchesError as error:
        raise click.UsageError(str(error)) from None
    if as_json:
        print_json(as_document(statuses, torch))
    else:
        print_table(("patch", "state", "reason"), [(s.id, s.state, s.reason or "-") for s in statuses])
    if any(s.state == "failed" for s in statuses):
        sys.exit(1)


def import_or_tell(module: str, *, required: bool) -> None:
    try:
        importlib.import_module(module)
    except Exception as error:  # whatever a module raises on import is the answer to the user's question
        text = f"cannot import {module}: {type(error).__name__}: {error}"
        if required:
            raise click.ClickException(text) from None
        if not (isinstance(error, ModuleNotFoundError) and error.name == module):
            click.echo(text, err=True)


@click.command()
@click.argument("name", metavar="ID|GROUP")
def explain(name: str) -> None:
    """Explain one patch: what it is for, how it stands and why, and how to switch it off."""
    import_or_tell("torch", required=False)
    try:
        click.echo(compat_patches.explain(name))
    except CompatPatchesError as error:
        raise click.UsageError(str(error)) from None
