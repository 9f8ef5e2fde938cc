"""``audit``, ``diff``, ``pin``, ``expire``: what the sources of torch releases say about the declared patches."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..errors import CompatPatchesError
from .output import print_json

if TYPE_CHECKING:
    from packaging.version import Version
    from rich.console import Console

    from ..audit.comparing import Found
    from ..audit.expiry import Expired, Lines
    from ..audit.places import Release
    from ..manifest import Patch

Function = Callable[..., Any]


def _manifest_option(function: Function) -> Function:
    return click.option(
        "--manifest",
        "manifests",
        multiple=True,
        metavar="FILE",
        help="A manifest; several may be given. Default: the built-in one.",
    )(function)


def _place_options(function: Function) -> Function:
    function = click.option(
        "--no-cache", is_flag=True, help="Neither use nor keep what was found out about a release before."
    )(function)
    function = click.option("--offline", is_flag=True, help="Fetch nothing.")(function)
    return click.option("--torch", "wheres", multiple=True, metavar="WHERE", help="A release; several may be given.")(
        function
    )


@click.command()
@_manifest_option
@_place_options
@click.argument("more", nargs=-1, metavar="[WHERE]...")
@click.option("--only", multiple=True, metavar="ID", help="Show only this patch (or group).")
@click.option("--run", "run", is_flag=True, help="Where the sources cannot tell, ask the torch of an environment.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--markdown", type=click.Path(path_type=Path, dir_okay=False), help="Write a Markdown table to a file.")
@click.option("--svg", type=click.Path(path_type=Path, dir_okay=False), help="Write a picture to a file.")
@click.option("--html", type=click.Path(path_type=Path, dir_okay=False), help="Write a page to a file.")
@click.option("-v", "--verbose", is_flag=True, help="Say why, for each verdict.")
def audit(
    manifests: tuple[str, ...],
    wheres: tuple[str, ...],
    more: tuple[str, ...],
    offline: bool,
    no_cache: bool,
    only: tuple[str, ...],
    run: bool,
    as_json: bool,
    markdown: Path | None,
    svg: Path | None,
    html: Path | None,
    verbose: bool,
) -> None:
    """Hold the declared patches against the sources of torch releases.

    Reads source files and runs nothing. WHERE is an environment or its Python, a site-packages, a wheel, or a version
    number, whose wheel pip then fetches once (80 to 140 MB).

    Exit status: 0 fine, 1 a window, a target or a pin does not match, or a release could not be read, 2 misuse.
    """
    from ..audit import documents, outcome, picture, running, tables

    with _errors():
        patches, selected = _patches(manifests, only)
        with _progress() as tell:
            found = outcome.audit(
                patches,
                _required([*wheres, *more]),
                offline=offline,
                use_cache=not no_cache,
                run=running.run_evidence if run else None,
                tell=tell,
            )
        found.patches = tuple(selected)
        if markdown is not None:
            documents.write_markdown(markdown, documents.as_markdown(found))
        if svg is not None:
            svg.write_text(picture.as_svg(found), encoding="utf-8")
        if html is not None:
            html.write_text(picture.as_html(found), encoding="utf-8")
    if as_json:
        print_json(documents.as_document(found))
    else:
        tables.show(found, _console(), verbose=verbose)
    sys.exit(0 if found.is_fine else 1)


@click.command()
@click.argument("patch_id", metavar="ID")
@click.argument("more", nargs=-1, metavar="[WHERE]...")
@_manifest_option
@_place_options
def diff(
    patch_id: str,
    more: tuple[str, ...],
    manifests: tuple[str, ...],
    wheres: tuple[str, ...],
    offline: bool,
    no_cache: bool,
) -> None:
    """Show how upstream's source of what a patch changes differs between two releases.

    Says where the code went, where it was moved, renamed or re-exported.

    Exit status: 0 equal in meaning and in the same place, 1 different, 2 misuse.
    """
    from ..audit import comparing

    with _errors():
        _, selected = _patches(manifests, (patch_id,))
        with _progress() as tell:
            releases = _opened([*wheres, *more], offline, no_cache, tell)
            if len(releases) != 2:
                raise click.UsageError(f"found {len(releases)} releases, expected two: --torch A --torch B")
            old_release, new_release = releases
            targets = dict.fromkeys(step.target for patch in selected for step in patch.steps if step.action != "env")
            pairs = []
            for target in targets:
                old, new = comparing.find(target, old_release), comparing.find(target, new_release)
                tell(f"looking for {target}")
                if old.text and new.look.there is False:
                    new = comparing.find_moved(target, old, new_release) or new
                elif new.text and old.look.there is False:
                    old = comparing.find_moved(target, new, old_release) or old
                pairs.append((target, old, new))
        _keep(releases, no_cache)
    console = _console()
    same = True
    for target, old, new in pairs:
        same &= _show_difference(console, str(target), old, new)
    sys.exit(0 if same else 1)


def _show_difference(console: Console, target: str, old: Found, new: Found) -> bool:
    """Print one difference; returns whether there is none."""
    from rich.text import Text

    from ..audit import comparing

    colours = {"@": "cyan", "+": "green", "-": "red"}
    console.print(Text(target, "bold"), soft_wrap=True)
    for found in (old, new):
        if found.note:
            console.print(Text(f"  torch {found.release.version}: {found.note}", "yellow"), soft_wrap=True)
    if not old.text and not new.text:
        console.print("  nothing to compare")
        return old.look.there == new.look.there
    lines = comparing.difference(old, new)
    same = bool(old.text and new.text) and comparing.means_the_same(old, new)
    if same:
        console.print("  the same" if not lines else "  the same, but for comments and formatting")
    for line in lines:
        style = "bold" if line.startswith(("---", "+++")) else colours.get(line[:1], "")
        console.print(Text(line, style), soft_wrap=True)
    console.print()
    return same and old.is_in_place and new.is_in_place


@click.command()
@click.argument("patch_id", metavar="ID")
@click.argument("more", nargs=-1, metavar="[WHERE]...")
@_manifest_option
@_place_options
@click.option("--dry-run", is_flag=True, help="Print the hashes and write nothing.")
def pin(
    patch_id: str,
    more: tuple[str, ...],
    manifests: tuple[str, ...],
    wheres: tuple[str, ...],
    offline: bool,
    no_cache: bool,
    dry_run: bool,
) -> None:
    """Write into the manifest which upstream sources a patch is written against.

    The hash is that of the syntax tree: comments and formatting do not matter, anything else does. A patch with pins is
    not applied to another source.

    Exit status: 0 fine, 1 a release could not be read, or has no source to hash, 2 misuse.
    """
    from ..audit import pinning
    from ..discovery import builtin_manifest

    if len(manifests) > 1:
        raise click.UsageError("several manifests; name the one that declares the patch")
    with _errors():
        _, selected = _patches(manifests, (patch_id,))
        with _progress() as tell:
            releases = _opened([*wheres, *more], offline, no_cache, tell, strict=False)
        found = [one for patch in selected for one in pinning.pins_of(patch, releases)]
        _keep(releases, no_cache)
        for one in found:
            click.echo(f"{one.patch.id} {one.target} torch {one.release}: {one.hash or f'no pin: {one.why}'}")
        if not dry_run:
            path = Path(manifests[0] if manifests else builtin_manifest())
            changed = pinning.write(path, found)
            click.echo(f"{path}: {'written' if changed else 'nothing to change'}")
    whole = all(one.hash is not None or one.why.startswith("outside of the window") for one in found)
    sys.exit(0 if whole and len(releases) == len(_required([*wheres, *more])) else 1)


@click.command()
@click.option("--oldest-torch", "floor", required=True, metavar="VERSION", help="The oldest torch still supported.")
@_manifest_option
@_place_options
@click.argument("more", nargs=-1, metavar="[WHERE]...")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def expire(
    floor: str,
    manifests: tuple[str, ...],
    wheres: tuple[str, ...],
    more: tuple[str, ...],
    offline: bool,
    no_cache: bool,
    as_json: bool,
) -> None:
    """Find the patches that are dead once older releases of torch are given up, and the lines that go with them.

    With --torch the sources are asked as well, and `remove_when` is checked against them.

    Exit status: 0 nothing to delete, 1 something can be deleted, or `remove_when` is wrong, 2 misuse.
    """
    from packaging.version import InvalidVersion, Version

    from ..audit import expiry, outcome
    from ..discovery import builtin_manifest

    try:
        oldest = Version(floor)
    except InvalidVersion:
        raise click.UsageError(f"--oldest-torch: found {floor!r}, expected a version such as 2.11") from None
    with _errors():
        patches, _ = _patches(manifests, ())
        with _progress() as tell:
            found = outcome.audit(patches, [*wheres, *more], offline=offline, use_cache=not no_cache, tell=tell)
        gone = expiry.expired(patches, oldest, found.judgements)
        lines = []
        for name in manifests or (builtin_manifest(),):
            path = Path(name)
            own, _ = _patches((name,), ())
            identifiers = [patch.qualified_id for patch in own]
            for one in gone:
                if one.patch.qualified_id in identifiers:
                    lines += expiry.manifest_lines(path, own, one)
        roots = [Path(__file__).parents[2], Path.cwd(), *(Path(name).parent for name in manifests)]
        lines += expiry.implementation_lines(gone, patches, roots)
        wrong = {patch.id: expiry.contradictions(patch, found.judgements) for patch in patches}
        wrong = {name: texts for name, texts in wrong.items() if texts}
    if as_json:
        document = {
            "schema": 1,
            "oldest_torch": str(oldest),
            "expired": [
                {"id": one.patch.id, "reason": one.why, "steps": [number + 1 for number in one.steps]} for one in gone
            ],
            "lines": [asdict(part) for part in lines],
            "contradictions": wrong,
            "unread": [{"where": place.where, "reason": place.why} for place in found.unread],
        }
        print_json(document)
    else:
        _show_expired(oldest, gone, lines, wrong)
        for place in found.unread:
            click.echo(f"not read: {place.where}: {place.why}")
    sys.exit(1 if gone or wrong or found.unread else 0)


def _show_expired(oldest: Version, gone: list[Expired], lines: list[Lines], wrong: dict[str, list[str]]) -> None:
    if not gone:
        click.echo(f"With torch {oldest} as the oldest, nothing can be deleted.")
    for one in gone:
        steps = f" (step {', '.join(str(number + 1) for number in one.steps)})" if one.steps else ""
        click.echo(f"{one.patch.id}{steps}: {one.why}")
    if lines:
        click.echo(f"\n{sum(part.number for part in lines)} lines can be deleted:")
        for part in lines:
            click.echo(f"  {part}")
    for name, texts in wrong.items():
        for text in texts:
            click.echo(f"\n{name}: {text}")


# --- what the commands share ---------------------------------------------------------------------------------------


def _opened(
    wheres: list[str], offline: bool, no_cache: bool, tell: Callable[[str], None], *, strict: bool = True
) -> list[Release]:
    """Open releases, in the order in which they were named. One that cannot be read is an error, or is left out."""
    from ..audit import outcome, places

    opened = outcome.open_all(_required(wheres), offline=offline, use_cache=not no_cache, tell=tell)
    releases = {release.where: release for release in opened if isinstance(release, places.Release)}
    for place in opened:
        if isinstance(place, places.Unread):
            if strict:
                raise CompatPatchesError(place.why)
            click.echo(f"not read: {place.where}: {place.why}", err=True)
    return [releases[where] for where in dict.fromkeys(wheres) if where in releases]


def _keep(releases: list[Release], no_cache: bool) -> None:
    from ..audit import cache, outcome

    store = None if no_cache else cache.Store()
    for release in releases:
        outcome.keep(release, store)


def _required(wheres: list[str]) -> list[str]:
    if not wheres:
        raise click.UsageError("no release to look at; say --torch WHERE: an environment, a wheel or a version")
    return wheres


def _patches(paths: tuple[str, ...], names: tuple[str, ...]) -> tuple[list[Patch], list[Patch]]:
    """All patches of the manifests, and those that are selected."""
    from .. import manifest
    from ..catalogue import Catalogue
    from ..discovery import builtin_manifest

    catalogue = Catalogue()
    patches = [patch for path in paths or (builtin_manifest(),) for patch in catalogue.add(manifest.load(path))]
    wanted = set(catalogue.select(names))
    return patches, [patch for patch in patches if patch.qualified_id in wanted]


@contextmanager
def _errors() -> Iterator[None]:
    """Turn what goes wrong on purpose into a message and the exit status of misuse."""
    try:
        yield
    except (CompatPatchesError, OSError) as error:
        click.echo(f"Error: {error}", err=True)
        sys.exit(2)


def _console() -> Console:
    from rich.console import Console

    console = Console(highlight=False, emoji=False)
    if not console.is_terminal:
        # A pipe has no width; a table that is cut at 80 columns would be of no use to grep.
        console.width = 10_000
    return console


@contextmanager
def _progress() -> Iterator[Callable[[str], None]]:
    """Say on standard error what is being done, where somebody is looking."""
    from rich.console import Console
    from rich.text import Text

    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda text: None
        return
    with console.status("") as status:
        yield lambda text: status.update(Text(f"{text} …", no_wrap=True, overflow="ellipsis"))
