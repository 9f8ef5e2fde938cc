"""The fields of a manifest, declared once.

The checks of :mod:`compat_patches.manifest`, the JSON Schema and the documentation of the format are made from these
tables.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

SCHEMA = 1
ACTIONS = ("wrap", "replace", "inject", "alias", "noop", "set", "set_item", "discard_item", "env")
BUILDS = ("cpu", "cuda", "rocm", "xpu")
SCOPES = ("process", "context")
ENV_MODES = ("setdefault", "set", "prepend")
EVIDENCE = (
    "lacks_parameter",
    "lacks_attribute",
    "lacks_constant",
    "does_not_catch",
    "source_hash",
    "probe",
)

_IDENTIFIER = r"[^\W\d]\w*"
_DOTTED = rf"{_IDENTIFIER}(?:\.{_IDENTIFIER})*"
TARGET_PATTERN = rf"^{_DOTTED}:{_DOTTED}$"
ID_PATTERN = r"^[a-z0-9]+(?:[-_.][a-z0-9]+)*$"
HASH_PATTERN = r"^[0-9a-f]{16,64}$"
_TARGET = re.compile(TARGET_PATTERN)
_ID = re.compile(ID_PATTERN)
_HASH = re.compile(HASH_PATTERN)


# --- what a value may be -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of value: what is expected, in words and as JSON Schema, and a check that says what is wrong."""

    expected: str
    schema: Mapping[str, Any]
    fault: Callable[[Any], str | None]


def _simple(expected: str, schema: dict[str, Any], fits: Callable[[Any], bool]) -> Kind:
    return Kind(expected, schema, lambda value: None if fits(value) else f"found {_shown(value)}")


def _list_of(kind: Kind, expected: str, least: int = 0) -> Kind:
    def fault(value: Any) -> str | None:
        if not isinstance(value, list):
            return f"found {_shown(value)}"
        if len(value) < least:
            return "found an empty list"
        for item in value:
            found = kind.fault(item)
            if found is not None:
                return found
        return None

    return Kind(expected, {"type": "array", "items": kind.schema, "minItems": least}, fault)


def _choice(choices: tuple[str, ...]) -> Kind:
    return _simple(
        f"one of {', '.join(choices)}", {"enum": list(choices)}, lambda v: isinstance(v, str) and v in choices
    )


def _matching(expected: str, pattern: str, compiled: re.Pattern[str]) -> Kind:
    schema = {"type": "string", "pattern": pattern}
    return _simple(expected, schema, lambda v: isinstance(v, str) and compiled.match(v) is not None)


def _one_or_more(kind: Kind) -> Kind:
    many = _list_of(kind, kind.expected, least=1)
    return Kind(
        f"{kind.expected}, or a list of such",
        {"anyOf": [kind.schema, many.schema]},
        lambda value: many.fault(value) if isinstance(value, list) else kind.fault(value),
    )


def _shown(value: Any) -> str:
    names = {str: "the string", bool: "the boolean", int: "the number", float: "the number", dict: "a table"}
    if isinstance(value, list):
        return "an empty list" if not value else f"a list whose first item is {_shown(value[0])}"
    name = names.get(type(value), f"a {type(value).__name__}")
    if isinstance(value, dict):
        return name
    text = repr(value)
    return f"{name} {text if len(text) <= 80 else text[:77] + '...'}"


def _requirement_fault(value: Any) -> str | None:
    if not isinstance(value, str):
        return f"found {_shown(value)}"
    from packaging.requirements import InvalidRequirement, Requirement

    try:
        requirement = Requirement(value)
    except (InvalidRequirement, RecursionError) as error:
        return f"found {_shown(value)}: {str(error).splitlines()[0]}"
    if requirement.url is not None or requirement.extras:
        return f"found {_shown(value)}: a URL or an extra says nothing about an installed version"
    for specifier in requirement.specifier:
        if "+" in specifier.version or specifier.operator == "===":
            return f"found {_shown(value)}: a local part never decides; use `build`"
    return _marker_fault(str(requirement.marker)) if requirement.marker is not None else None


def _marker_fault(value: Any) -> str | None:
    if not isinstance(value, str):
        return f"found {_shown(value)}"
    from packaging.markers import InvalidMarker, Marker, UndefinedComparison, UndefinedEnvironmentName

    try:
        Marker(value).evaluate()
    except (InvalidMarker, UndefinedComparison, UndefinedEnvironmentName, RecursionError) as error:
        return f"found {_shown(value)}: {str(error).splitlines()[0]}"
    return None


def _evidence_fault(value: Any) -> str | None:
    if not isinstance(value, dict) or not value:
        return f"found {_shown(value) if not isinstance(value, dict) else 'an empty table'}"
    for name, wanted in value.items():
        kind = EVIDENCE_KINDS.get(name)
        if kind is None:
            return f"found the kind {name!r}{_nearest(name, EVIDENCE)}"
        found = kind.fault(wanted)
        if found is not None:
            return f"{name}: {found}, expected {kind.expected}"
    return None


def _pins_fault(value: Any) -> str | None:
    if not isinstance(value, dict) or not value:
        return f"found {_shown(value) if not isinstance(value, dict) else 'an empty table'}"
    for hashes in value.values():
        found = HASHES.fault(hashes)
        if found is not None:
            return found
    return None


STRING = _simple("a string", {"type": "string", "minLength": 1}, lambda v: isinstance(v, str) and bool(v.strip()))
BOOLEAN = _simple("true or false", {"type": "boolean"}, lambda v: isinstance(v, bool))
ANYTHING = Kind("any value", {}, lambda value: None)
ID = _matching("lower-case letters and digits, joined by '-', '_' or '.'", ID_PATTERN, _ID)
TARGET = _matching("'package.module:Qualified.name'", TARGET_PATTERN, _TARGET)
HASH = _matching("a hash of a syntax tree, as `compat-patches pin` prints it", HASH_PATTERN, _HASH)
HASHES = _one_or_more(HASH)
NAMES = _one_or_more(STRING)
REQUIREMENT = Kind("a PEP 508 requirement such as 'torch>=2.10,<2.11'", {"type": "string"}, _requirement_fault)
MARKER = Kind("a PEP 508 marker such as \"sys_platform == 'linux'\"", {"type": "string"}, _marker_fault)
EVIDENCE_KINDS: dict[str, Kind] = {
    "lacks_parameter": NAMES,
    "lacks_attribute": NAMES,
    "lacks_constant": NAMES,
    "does_not_catch": NAMES,
    "source_hash": HASHES,
    "probe": TARGET,
}
EVIDENCE_TABLE = Kind(
    f"a table of evidence ({', '.join(EVIDENCE)})",
    {
        "type": "object",
        "properties": {name: kind.schema for name, kind in EVIDENCE_KINDS.items()},
        "additionalProperties": False,
        "minProperties": 1,
    },
    _evidence_fault,
)
PINS = Kind(
    "a table of releases, each with the hash of its source",
    {"type": "object", "additionalProperties": HASHES.schema, "minProperties": 1},
    _pins_fault,
)


# --- the fields ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Field:
    """A key of a table of the manifest, with what it means."""

    kind: Kind
    doc: str
    required: bool = False
    default: Any = None


STEP_FIELDS: dict[str, Field] = {
    "target": Field(TARGET, "What is changed. The left side is a module, the right side a name in it."),
    "also_bind": Field(_list_of(TARGET, "a list of targets"), "Other slots that hold the same object.", default=[]),
    "action": Field(_choice(ACTIONS), "What is done to the target."),
    "using": Field(
        TARGET,
        "The implementation: for `wrap` a function that takes the original and returns its stand-in; for `replace`, "
        "`inject` and `set` the object itself; for `alias` the object that the target stands for.",
    ),
    "key": Field(ANYTHING, "For `set_item` and `discard_item` the key (or element); for `env` the variable."),
    "value": Field(ANYTHING, "For `set`, `set_item`, `env` and `inject` the value; for `noop` what a call returns."),
    "mode": Field(
        _choice(ENV_MODES),
        "For `env`: `setdefault` leaves a value that the user has set, `set` overrides it, `prepend` puts the value "
        "in front of a path list.",
        default="setdefault",
    ),
    "rebind": Field(
        BOOLEAN,
        "Also change the copies that modules made with `from … import` before the patch came.",
        default=False,
    ),
    "pins": Field(
        PINS,
        "The upstream source this was written against, by release; another source is drifted.",
        default={},
    ),
}

PATCH_FIELDS: dict[str, Field] = {
    "id": Field(ID, "The name of the patch, unique in its manifest.", required=True),
    "summary": Field(STRING, "What the patch does, in one line.", required=True),
    "why": Field(STRING, "What goes wrong without it.", required=True),
    "upstream": Field(
        _list_of(STRING, "a list of at least one link", least=1),
        "Where upstream knows of the defect: issues, pull requests, documentation.",
        required=True,
    ),
    "remove_when": Field(STRING, "When the patch can be deleted.", required=True),
    "groups": Field(_list_of(ID, "a list of group names"), "Names that stand for several patches.", default=[]),
    "requires": Field(
        _list_of(REQUIREMENT, "a list of PEP 508 requirements"), "The versions the patch is for.", default=[]
    ),
    "marker": Field(MARKER, "The platforms and Pythons the patch is for."),
    "build": Field(
        _list_of(_choice(BUILDS), f"a list out of {', '.join(BUILDS)}", least=1),
        "The builds of torch the patch is for.",
        default=[],
    ),
    **STEP_FIELDS,
    "step": Field(
        Kind("an array of tables, each with a target", {}, lambda value: None),
        "Several changes that belong together, each with fields of its own, instead of `target` and `action`.",
    ),
    "needed_if": Field(EVIDENCE_TABLE, "Evidence in the installed code that the defect is there.", default={}),
    "scope": Field(
        _choice(SCOPES),
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
        _list_of(REQUIREMENT, "a list of PEP 508 requirements"),
        "The versions this step is for; outside of them the step is left out.",
        default=[],
    ),
}

MANIFEST_FIELDS: dict[str, Field] = {
    "name": Field(ID, "The name of the manifest; qualifies the ids of its patches.", required=True),
    "schema": Field(
        _simple(f"the number {SCHEMA}", {"const": SCHEMA}, lambda v: type(v) is int and v == SCHEMA),
        "The version of this format.",
        required=True,
    ),
}

_NEEDS: dict[str, tuple[str, ...]] = {
    "wrap": ("using",),
    "replace": ("using",),
    "alias": ("using",),
    "set_item": ("key",),
    "discard_item": ("key",),
    "env": ("key", "value"),
}
_NEEDS_ONE_OF: dict[str, tuple[str, ...]] = {
    "inject": ("using", "value"),
    "set": ("using", "value"),
    "set_item": ("using", "value"),
}


def problems_of(document: Mapping[str, Any]) -> list[str]:
    problems = [
        f"key {key!r}: unknown{_nearest(key, ('manifest', 'patch'))}"
        for key in document
        if key not in ("manifest", "patch")
    ]
    header = document.get("manifest")
    if isinstance(header, dict):
        problems += _faults("[manifest]", header, MANIFEST_FIELDS)
    else:
        problems.append("[manifest]: missing; expected a table with name and schema")
    patches = document.get("patch", [])
    if not isinstance(patches, list) or not all(isinstance(table, dict) for table in patches):
        return [*problems, "key 'patch': expected an array of tables, written [[patch]]"]
    seen: dict[str, int] = {}
    for number, table in enumerate(patches, 1):
        identifier = table.get("id")
        where = f"patch {identifier!r}" if isinstance(identifier, str) else f"patch number {number}"
        problems += _faults(where, table, PATCH_FIELDS)
        problems += _step_faults(where, table)
        if isinstance(identifier, str):
            if identifier in seen:
                problems.append(
                    f"{where}: key 'id': patches number {seen[identifier]} and {number} have the same id; expected "
                    "each to have its own"
                )
            seen.setdefault(identifier, number)
    for group in sorted({g for t in patches for g in _strings(t.get("groups"))} & seen.keys()):
        problems.append(f"group {group!r}: is the id of a patch too; expected different names")
    return problems


def _faults(where: str, table: Mapping[str, Any], fields: Mapping[str, Field]) -> list[str]:
    problems = []
    for key, value in table.items():
        known = fields.get(key)
        if known is None:
            problems.append(f"{where}: key {key!r}: unknown{_nearest(key, fields)}")
            continue
        found = known.kind.fault(value)
        if found is not None:
            problems.append(f"{where}: key {key!r}: {found}; expected {known.kind.expected}")
    for key, known in fields.items():
        if known.required and key not in table:
            problems.append(f"{where}: key {key!r}: missing; expected {known.kind.expected}")
    return problems


def _step_faults(where: str, table: Mapping[str, Any]) -> list[str]:
    if "step" not in table:
        return _action_faults(where, table)
    steps = table["step"]
    if not isinstance(steps, list) or not steps or not all(isinstance(step, dict) for step in steps):
        return [f"{where}: key 'step': found {_shown(steps)}; expected an array of tables, written [[patch.step]]"]
    problems = [
        f"{where}: key {key!r}: stands beside 'step'; expected it inside of a [[patch.step]]"
        for key in STEP_FIELDS
        if key in table
    ]
    for number, step in enumerate(steps, 1):
        inner = f"{where}: step {number}"
        problems += _faults(inner, step, STEP_FIELDS_OF_ITS_OWN)
        problems += _action_faults(inner, step)
    return problems


def _action_faults(where: str, table: Mapping[str, Any]) -> list[str]:
    problems = []
    action = table.get("action")
    if "action" not in table:
        problems.append(f"{where}: key 'action': missing; expected {STEP_FIELDS['action'].kind.expected}")
    if "target" not in table and action != "env":
        problems.append(f"{where}: key 'target': missing; expected {TARGET.expected}")
    if not isinstance(action, str):
        return problems
    for key in _NEEDS.get(action, ()):
        if key not in table:
            problems.append(f"{where}: key {key!r}: missing; action {action!r} needs it")
    one_of = _NEEDS_ONE_OF.get(action, ())
    if one_of and sum(key in table for key in one_of) != 1:
        problems.append(f"{where}: action {action!r} needs exactly one of {' and '.join(one_of)}")
    if action == "env":
        for key in ("key", "value"):
            if key in table and not isinstance(table[key], str):
                problems.append(f"{where}: key {key!r}: found {_shown(table[key])}; expected a string")
    return problems


def _nearest(word: str, known: Iterable[str]) -> str:
    import difflib

    near = difflib.get_close_matches(word[:64], list(known), n=1, cutoff=0.6)
    return f"; did you mean {near[0]!r}?" if near else ""


def _strings(value: Any) -> list[str]:
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []
