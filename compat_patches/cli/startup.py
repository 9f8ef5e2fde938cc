"""``enable``, ``disable`` and ``sitecustomize``: who gets the patches without asking for them."""

from __future__ import annotations

import click

import _compat_patches_startup as startup
from compat_patches import activation, launch
from compat_patches.activation import ActivationError, Place


def _place(user: bool) -> Place:
    try:
        return activation.user_site() if user else activation.usual_place()
    except ActivationError as error:
        raise click.UsageError(str(error)) from None


_user = click.option("--user", is_flag=True, help="Your own user's site, not the virtual environment.")


@click.command()
@_user
def enable(user: bool) -> None:
    """Switch the patches on in every Python process of this virtual environment, or of your user's site."""
    place = _place(user)
    try:
        written = activation.enable(place)
    except ActivationError as error:
        raise click.UsageError(str(error)) from None
    click.echo(f"wrote {place.marker}" if written else f"{place.marker} was there already; nothing to do")
    if startup.switch() is False:
        click.echo("COMPAT_PATCHES=off is set here and wins over it", err=True)
    else:
        click.echo(f"The patches are on in every new Python process of {place.title}.")


@click.command()
@_user
def disable(user: bool) -> None:
    """Take `enable` back."""
    place = _place(user)
    try:
        removed = activation.disable(place)
    except ActivationError as error:
        raise click.UsageError(str(error)) from None
    click.echo(f"removed {place.marker}" if removed else f"there was no {place.marker}; nothing to do")
    for other in activation.places():
        if other.enabled:
            click.echo(f"{other.title} is still on, by {other.marker}", err=True)
    if startup.switch():
        click.echo("COMPAT_PATCHES=on is set here and keeps the patches on", err=True)


@click.command()
def sitecustomize() -> None:
    """Print the folder that activates the patches from PYTHONPATH.

    Its sitecustomize.py runs your own sitecustomize too. Instead of this folder, that may say: import compat_patches
    """
    click.echo(launch.sitecustomize_folder())
