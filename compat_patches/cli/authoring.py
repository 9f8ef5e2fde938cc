"""``check`` and ``schema``: for authors of manifests."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import json
import sys
from collections.abc import Iterator
from typing import Any

import click

from .. import manifest, planning
from ..errors import ManifestError
from ..fields import ENVIRONMENT
from ..manifest import Patch, Step, Target
from ..predicates import Circumstances
from .output import print_json


@click.command()
@click.argument("paths", metavar="PATH...", nargs=-1, required=True)
@click.option("--json", "as_json", is_flag=True, help="Print what was found as JSON.")
def check(paths: tuple[str, ...], as_json: bool) -> None:
    """Check manifests, and say what their author should know.

    Nothing is imported or patched. Exit status: 0 where all manifests can be loaded, whatever the warnings, 1 where
    one cannot.
    """
    circumstances = Circumstances.current()
    found = [_examined(path, circumstances) for path in paths]
    if as_json:
        _say(json.dumps({"schema": 1, "manifests": found}, indent=2))
    else:
        for record in found:
            _print(record)
    sys.exit(any(record["problems"] for record in found))


@click.command()
def schema() -> None:
    """Print the JSON Schema (draft 2020-12) of manifests, for an editor."""
    from ..schema import json_schema

    print_json(json_schema())


def _examined(path: str, circumstances: Circumstances) -> dict[str, Any]:
    record: dict[str, Any] = {"source": path, "name": None, "patches": 0, "problems": [], "warnings": []}
    try:
        declared = manifest.load(path)
    except ManifestError as error:
        return {**record, "problems": error.problems}
    warnings = [f"patch {patch.id!r}: {text}" for patch in declared.patches for text in _advice(patch, circumstances)]
    return {**record, "name": declared.name, "patches": len(declared.patches), "warnings": warnings}


def _print(record: dict[str, Any]) -> None:
    source, problems, warnings = record["source"], record["problems"], record["warnings"]
    for problem in problems:
        _say(f"{source}: {problem}")
    for warning in warnings:
        _say(f"{source}: warning: {warning}")
    if problems:
        _say(f"{source}: {_count(problems, 'problem')}; the manifest cannot be loaded")
    else:
        _say(f"{source}: {_count(range(record['patches']), 'patch', 'patches')}, {_count(warnings, 'warning')}")


def _count(things: Any, one: str, many: str | None = None) -> str:
    return f"{len(things)} {one if len(things) == 1 else many or one + 's'}"


def _say(text: str) -> None:
    # The name of a file can be anything, also what no encoding can write.
    click.echo(text.encode("utf-8", "backslashreplace").decode())


# --- advice --------------------------------------------------------------------------------------------------------


def _advice(patch: Patch, circumstances: Circumstances) -> Iterator[str]:
    """What is allowed, but probably not meant."""
    on_code = [step for step in patch.steps if step.action != "env"]
    if on_code and not patch.needed_if:
        yield (
            "no needed_if: applied also where upstream has fixed the defect inside of the window, and not applied on a "
            "pre-release; say by what the defect is known"
        )
    if not patch.requires and not any(step.requires for step in patch.steps):
        yield f"no requires: meant for every version of {' and '.join(sorted(patch.roots))}"
    for step in patch.steps:
        if step.action == "replace" and not step.pins:
            yield f"{step.target} is replaced without pins: that upstream has changed it since will not be noticed"
    for link in patch.upstream:
        if not link.startswith(("https://", "http://")):
            yield f"upstream {link!r} is no link"
    yield from _absent_modules(patch, circumstances)


def _absent_modules(patch: Patch, circumstances: Circumstances) -> Iterator[str]:
    try:
        steps: tuple[Step, ...] = planning.admit(patch, circumstances, force=False).steps
    except planning.Skip:
        # Where the patch is not for what is installed, its target need not be there.
        steps = ()
        for root in sorted(patch.roots):
            if not _is_there(root):
                yield f"{root} is not installed, so its target could not be looked for"
    named = [target for step in steps for target in step.targets if str(target) != ENVIRONMENT]
    named += [Target.parse(step.using) for step in patch.steps if step.using is not None]
    for module in dict.fromkeys(target.module for target in named):
        if not _is_there(module):
            yield f"there is no module {module} here"


def _is_there(module: str) -> bool:
    """Whether a module is loaded or has a file. Neither it nor its parents are imported."""
    if module in sys.modules:
        return True
    root, *inner = module.split(".")
    try:
        spec = importlib.util.find_spec(root)
        name = root
        for part in inner:
            if spec is None or spec.submodule_search_locations is None:
                return False
            name = f"{name}.{part}"
            spec = importlib.machinery.PathFinder.find_spec(name, list(spec.submodule_search_locations))
    except (ImportError, ValueError):
        return False
    return spec is not None
