"""The fields of a manifest, declared once.

The checks of :mod:`compat_patches.manifest`, the JSON Schema and the documentation of the format are made from these
tables.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from .kinds import (
    ANYTHING,
    BOOLEAN,
    EXCEPTION,
    EXPRESSION,
    HASH,
    HASHABLE,
    ID,
    INDEX,
    MARKER,
    NAME_OR_TARGET,
    PARAMETER,
    PATCH_NAME,
    REQUIREMENT,
    TARGET,
    TEXT,
    VARIABLE,
    VARIABLE_VALUE,
    Kind,
    choice,
    list_of,
    one_or_more,
    shortened,
    shown,
    simple,
    table_of,
)

SCHEMA = 1
"""The version of the format."""

BUILDS = ("cpu", "cuda", "rocm", "xpu")
ENVIRONMENT = "os:environ"
"""The target of every ``env``; it is always in the same place, so a manifest need not say so."""


# --- actions -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Action:
    """What an action does, and which keys it takes beside ``target``, ``action`` and ``requires``.

    Attributes:
        doc: what it does to the target.
        needs: the keys that it cannot do without.
        one_of: sets of keys, of each of which it needs exactly one.
        takes: the keys that may be left out.
        kinds: what the values of some keys have to be for this action in particular.
    """

    doc: str
    needs: tuple[str, ...] = ()
    one_of: tuple[tuple[str, ...], ...] = ()
    takes: tuple[str, ...] = ()
    kinds: Mapping[str, Kind] = field(default_factory=dict)

    @property
    def keys(self) -> tuple[str, ...]:
        return (*self.needs, *(key for keys in self.one_of for key in keys), *self.takes)


_ITEM = ("key", "key_object")
_OBJECT = ("using", "value")
_OVER_ANOTHER = ("also_bind", "rebind", "pins", "sample")

ACTIONS: dict[str, Action] = {
    "wrap": Action(
        "puts a stand-in, which `using` makes from the original, in its place", ("using",), takes=_OVER_ANOTHER
    ),
    "replace": Action("puts `using` in its place", ("using",), takes=_OVER_ANOTHER),
    "inject": Action(
        "adds `using` or `value` where there is nothing yet", one_of=(_OBJECT,), takes=("also_bind", "sample")
    ),
    "alias": Action("lets it stand for the object that `using` names", ("using",), takes=_OVER_ANOTHER),
    "noop": Action("has a call do nothing and return `value`", takes=("value", *_OVER_ANOTHER)),
    "proxy": Action("puts a proxy, which `using` makes of a container, in its place", ("using",), takes=("also_bind",)),
    "set": Action("sets it to `using` or `value`", one_of=(_OBJECT,), takes=_OVER_ANOTHER),
    "set_item": Action(
        "sets an item of a mapping or a list to `using` or `value`", one_of=(_ITEM, _OBJECT), kinds={"key": HASHABLE}
    ),
    "insert_item": Action(
        "adds `using` or `value` to a list or a set", one_of=(_OBJECT,), takes=("key",), kinds={"key": INDEX}
    ),
    "discard_item": Action("takes an item out of a mapping, a list or a set", one_of=(_ITEM,), kinds={"key": HASHABLE}),
    "register": Action("registers with it, by the context manager that `using` returns", ("using",)),
    "env": Action(
        "sets an environment variable",
        ("key", "value"),
        takes=("mode",),
        kinds={"target": choice(ENVIRONMENT), "key": VARIABLE, "value": VARIABLE_VALUE},
    ),
}


# --- evidence ------------------------------------------------------------------------------------------------------

EVIDENCE_KINDS: dict[str, Kind] = {
    "lacks_parameter": one_or_more(PARAMETER),
    "has_parameter": one_or_more(PARAMETER),
    "lacks_attribute": one_or_more(NAME_OR_TARGET),
    "lacks_constant": one_or_more(TEXT),
    "does_not_catch": one_or_more(EXCEPTION),
    "source_hash": one_or_more(HASH),
    "probe": TARGET,
}


@functools.lru_cache(maxsize=256)
def _nearest(word: str, known: tuple[str, ...]) -> str:
    import difflib

    near = difflib.get_close_matches(word[:64], known, n=1, cutoff=0.6)
    return f"; did you mean {near[0]!r}?" if near else ""


_EVIDENCE_TABLE = table_of(
    lambda name: EVIDENCE_KINDS.get(name) or f"unknown kind{_nearest(name, tuple(EVIDENCE_KINDS))}",
    f"a table of evidence ({', '.join(EVIDENCE_KINDS)})",
    {"properties": {name: kind.schema for name, kind in EVIDENCE_KINDS.items()}, "additionalProperties": False},
)
_PINS = table_of(
    lambda release: one_or_more(HASH),
    "a table of releases, written in quotes, each with the hash of its source",
    {"additionalProperties": one_or_more(HASH).schema},
)


# --- the fields ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Field:
    """A key of a table of the manifest, with what it means."""

    kind: Kind
    doc: str
    required: bool = False
    default: Any = None


# An editor shows the description of what it offers.
_ACTION = replace(
    choice(*ACTIONS),
    schema={"oneOf": [{"const": name, "description": action.doc} for name, action in ACTIONS.items()]},
)

STEP_FIELDS: dict[str, Field] = {
    "target": Field(TARGET, "What is changed. The left side is a module, the right side a name in it."),
    "also_bind": Field(list_of(TARGET, "a list of targets"), "Other slots that hold the same object.", default=[]),
    "action": Field(_ACTION, "What is done to the target."),
    "using": Field(
        TARGET,
        "The implementation: for `wrap` and `proxy` a function that takes the original and returns its stand-in; for "
        "`replace`, `inject`, `set`, `set_item` and `insert_item` the object itself; for `alias` the object that the "
        "target stands for; for `register` a function that takes nothing and returns a context manager, which is "
        "entered when the patch is applied and left when it is undone.",
    ),
    "key": Field(
        ANYTHING,
        "For `set_item` the key, or the index in a list; for `discard_item` the key or the element; for `insert_item` "
        "the index that the element gets in a list (at the end); for `env` the variable.",
    ),
    "key_object": Field(
        TARGET, "In place of `key`, for what TOML cannot write: the object that is the key, such as a class."
    ),
    "value": Field(
        ANYTHING,
        "For `set`, `set_item`, `insert_item`, `env` and `inject` the value; for `noop` what a call returns (None).",
    ),
    "mode": Field(
        choice("setdefault", "set", "prepend"),
        "For `env`: `setdefault` leaves a value that the user has set, `set` overrides it, `prepend` puts the value "
        "in front of a path list.",
        default="setdefault",
    ),
    "rebind": Field(
        BOOLEAN,
        "Also change the copies that modules made with `from … import` before the patch came.",
        default=False,
    ),
    "pins": Field(_PINS, "The upstream source this was written against, by release; another source is drifted."),
    "sample": Field(
        EXPRESSION,
        "A use of the target, such as 'torch.cuda.current_stream()', that the self-test gives to torch.compile.",
    ),
}

_PATCH_NAMES = list_of(PATCH_NAME, "a list of ids of patches, those of other manifests written 'manifest/id'")
_REQUIREMENTS = list_of(REQUIREMENT, "a list of PEP 508 requirements")

PATCH_FIELDS: dict[str, Field] = {
    "id": Field(ID, "The name of the patch, unique in its manifest.", required=True),
    "summary": Field(TEXT, "What the patch does, in one line.", required=True),
    "why": Field(TEXT, "What goes wrong without it.", required=True),
    "upstream": Field(
        list_of(TEXT, "a list of at least one link", least=1),
        "Where upstream knows of the defect: issues, pull requests, documentation.",
        required=True,
    ),
    "remove_when": Field(TEXT, "When the patch can be deleted.", required=True),
    "groups": Field(list_of(ID, "a list of group names"), "Names that stand for several patches.", default=[]),
    "requires": Field(_REQUIREMENTS, "The versions the patch is for.", default=[]),
    "marker": Field(MARKER, "The platforms and Pythons the patch is for."),
    "build": Field(
        list_of(choice(*BUILDS), f"a list out of {', '.join(BUILDS)}", least=1),
        "The builds of torch the patch is for.",
        default=[],
    ),
    **STEP_FIELDS,
    "step": Field(
        list_of(
            simple("a table", {"$ref": "#/$defs/step"}, lambda value: isinstance(value, dict)),
            "an array of tables, written [[patch.step]]",
            least=1,
        ),
        "Several changes that belong together, each with fields of its own, instead of `target` and `action`.",
    ),
    "needed_if": Field(_EVIDENCE_TABLE, "Evidence in the installed code that the defect is there.", default={}),
    "skip_if_marked": Field(
        one_or_more(NAME_OR_TARGET),
        "Another tool's mark that it has patched the target: an attribute of what stands there, or a name anywhere "
        "('package.module:Qualified.name'). Where it is there and true, the patch is skipped.",
        default=[],
    ),
    "after": Field(
        _PATCH_NAMES,
        "Of these and this one, as far as they can be applied at the same time, this comes last.",
        default=[],
    ),
    "before": Field(
        _PATCH_NAMES,
        "Of these and this one, as far as they can be applied at the same time, this comes first.",
        default=[],
    ),
    "conflicts": Field(
        _PATCH_NAMES,
        "Not applied together with these: where one of the two is applied, the other is skipped.",
        default=[],
    ),
    "scope": Field(
        choice("process", "context"),
        "`process`: applied on activation. `context`: only where code or the user asks for it by name.",
        default="process",
    ),
    "enabled": Field(BOOLEAN, "False: applied only when it is named.", default=True),
    "irreversible": Field(BOOLEAN, "True for what cannot be undone; applied only when it is named.", default=False),
    "affects_compile": Field(BOOLEAN, "True where code compiled with and without must not be mixed.", default=False),
}

STEP_FIELDS_OF_ITS_OWN: dict[str, Field] = {
    **STEP_FIELDS,
    "requires": Field(
        _REQUIREMENTS, "The versions this step is for; outside of them the step is left out.", default=[]
    ),
}

MANIFEST_FIELDS: dict[str, Field] = {
    "name": Field(ID, "The name of the manifest; qualifies the ids of its patches.", required=True),
    "schema": Field(
        simple(f"the number {SCHEMA}", {"const": SCHEMA}, lambda value: type(value) is int and value == SCHEMA),
        "The version of this format.",
        required=True,
    ),
}

_TABLES = ("manifest", "patch")


# --- checking ------------------------------------------------------------------------------------------------------


def problems_of(document: Mapping[str, Any]) -> list[str]:
    """All faults of a manifest, in the order of the document.

    Args:
        document: what the TOML says.

    Returns:
        A line for each: where, what was found, what was expected.
    """
    problems = [
        f"key {shortened(repr(key))}: unknown{_nearest(key, _TABLES)}" for key in document if key not in _TABLES
    ]
    header = document.get("manifest")
    if isinstance(header, dict):
        problems += _faults("[manifest]", header, MANIFEST_FIELDS)
    else:
        found = f"found {shown(header)}" if "manifest" in document else "missing"
        problems.append(f"[manifest]: {found}; expected a table with name and schema")
    patches = document.get("patch", [])
    if not isinstance(patches, list) or not all(isinstance(table, dict) for table in patches):
        return [*problems, f"key 'patch': found {shown(patches)}; expected an array of tables, written [[patch]]"]
    numbers: dict[str, int] = {}
    for number, table in enumerate(patches, 1):
        identifier = table.get("id")
        if not isinstance(identifier, str):
            problems += _patch_faults(f"patch number {number}", table)
            continue
        where = f"patch {shortened(repr(identifier))}"
        problems += _patch_faults(where, table)
        first = numbers.setdefault(identifier, number)
        if first != number:
            problems.append(
                f"{where}: key 'id': patches number {first} and {number} have the same id; expected each to have "
                "its own"
            )
    groups = {group for table in patches for group in _strings(table.get("groups"))}
    for group in sorted(groups & numbers.keys()):
        problems.append(f"group {shortened(repr(group))}: is the id of a patch too; expected different names")
    return problems


def _patch_faults(where: str, table: Mapping[str, Any]) -> Iterator[str]:
    yield from _faults(where, table, PATCH_FIELDS)
    for key in ("after", "before", "conflicts"):
        if isinstance(table.get("id"), str) and table["id"] in _strings(table.get(key)):
            yield f"{where}: key {key!r}: names the patch itself; expected others"
    if "step" not in table:
        yield from _action_faults(where, table)
        return
    for key in STEP_FIELDS:
        if key in table:
            yield f"{where}: key {key!r}: stands beside 'step'; expected it inside of a [[patch.step]]"
    for number, step in enumerate(table["step"] if isinstance(table["step"], list) else [], 1):
        if isinstance(step, dict):
            yield from _faults(f"{where}: step {number}", step, STEP_FIELDS_OF_ITS_OWN)
            yield from _action_faults(f"{where}: step {number}", step)


def _faults(where: str, table: Mapping[str, Any], fields: Mapping[str, Field]) -> Iterator[str]:
    for key, value in table.items():
        known = fields.get(key)
        if known is None:
            yield f"{where}: key {shortened(repr(key))}: unknown{_nearest(key, tuple(fields))}"
            continue
        for fault in known.kind.faults(value):
            yield f"{where}: key {key!r}: {fault}"
    for key, known in fields.items():
        if known.required and key not in table:
            yield f"{where}: key {key!r}: missing; expected {known.kind.expected}"


def _action_faults(where: str, table: Mapping[str, Any]) -> Iterator[str]:
    name = table.get("action")
    if name is None:
        yield f"{where}: key 'action': missing; expected {STEP_FIELDS['action'].kind.expected}"
    if name != "env" and "target" not in table:
        yield f"{where}: key 'target': missing; expected {TARGET.expected}"
    action = ACTIONS.get(name) if isinstance(name, str) else None
    if action is None:
        return
    for key in action.needs:
        if key not in table:
            yield f"{where}: key {key!r}: missing; action {name!r} needs it"
    for keys in action.one_of:
        if sum(key in table for key in keys) != 1:
            yield f"{where}: action {name!r} needs exactly one of {' and '.join(keys)}"
    for key in STEP_FIELDS:
        if key in table and key not in ("target", "action", *action.keys):
            takes = ", ".join(action.keys)
            yield f"{where}: key {key!r}: action {name!r} has no use for it; expected only target, action, {takes}"
    for key, kind in action.kinds.items():
        # What is wrong for every action has been said.
        if key in table and not any(STEP_FIELDS[key].kind.faults(table[key])):
            yield from (f"{where}: key {key!r}: {fault}" for fault in kind.faults(table[key]))


def _strings(value: Any) -> Iterable[str]:
    return (item for item in value if isinstance(item, str)) if isinstance(value, list) else ()
