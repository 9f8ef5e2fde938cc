"""Kinds of values in a manifest: what each expects, in words and as JSON Schema, and what is wrong with a value."""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

_NAME = r"[^\W\d]\w*"
_DOTTED = rf"{_NAME}(?:\.{_NAME})*"

# A platform that does not exist. Whether a marker makes sense must not depend on the machine that checks it, and the
# release of a kernel ("6.1.0-custom") is no version that every release of packaging can compare.
_NEUTRAL_PLATFORM = {
    "implementation_name": "cpython",
    "implementation_version": "3.12.0",
    "os_name": "posix",
    "platform_machine": "x86_64",
    "platform_python_implementation": "CPython",
    "platform_release": "6.0",
    "platform_system": "Linux",
    "platform_version": "1",
    "python_full_version": "3.12.0",
    "python_version": "3.12",
    "sys_platform": "linux",
}
_QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"")
_OF_AN_INSTALLATION = re.compile(r"\b(?:extras?|dependency_groups)\b")

_TOML_NAMES = {str: "string", bool: "boolean", int: "number", float: "number"}


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of value.

    Attributes:
        expected: what is expected, in words.
        schema: the same as JSON Schema, as far as that can say it.
        faults: what is wrong with a value, a text for each fault: what was found and what was expected.
    """

    expected: str
    schema: Mapping[str, Any]
    faults: Callable[[Any], Iterator[str]]


def shown(value: Any) -> str:
    """A value of a manifest in the words of TOML, cut short where it is long."""
    if isinstance(value, dict):
        return "a table" if value else "an empty table"
    if isinstance(value, list):
        return "a list" if value else "an empty list"
    name = _TOML_NAMES.get(type(value), type(value).__name__)
    if isinstance(value, bool):
        return f"the {name} {str(value).lower()}"
    try:
        text = repr(value) if isinstance(value, str) else str(value)
    except ValueError:
        # Python does not write integers of more than 4300 digits; a hexadecimal one can be read.
        return f"a {name} of thousands of digits"
    return f"the {name} {shortened(text)}"


def shortened(text: str) -> str:
    """The beginning of a text, in case it is a long one."""
    return text if len(text) <= 80 else text[:77] + "..."


# --- making kinds --------------------------------------------------------------------------------------------------


def scalar(expected: str, schema: Mapping[str, Any], fault: Callable[[Any], str | None]) -> Kind:
    """A kind whose values are right or wrong as a whole.

    Args:
        fault: None where a value is right, or else the reason; an empty one where there is nothing to add.
    """

    def faults(value: Any) -> Iterator[str]:
        reason = fault(value)
        if reason is not None:
            yield f"found {shown(value)}{reason and f': {reason}'}; expected {expected}"

    return Kind(expected, schema, faults)


def simple(expected: str, schema: Mapping[str, Any], fits: Callable[[Any], bool]) -> Kind:
    return scalar(expected, schema, lambda value: None if fits(value) else "")


def choice(*choices: str) -> Kind:
    expected = f"one of {', '.join(choices)}" if len(choices) > 1 else repr(choices[0])
    return simple(expected, {"enum": list(choices)}, lambda value: isinstance(value, str) and value in choices)


def matching(expected: str, pattern: str) -> Kind:
    fits = re.compile(pattern).fullmatch
    schema = {"type": "string", "pattern": f"^(?:{pattern})$"}
    return simple(expected, schema, lambda value: isinstance(value, str) and fits(value) is not None)


def list_of(kind: Kind, expected: str, least: int = 0) -> Kind:
    def faults(value: Any) -> Iterator[str]:
        if not isinstance(value, list) or len(value) < least:
            yield f"found {shown(value)}; expected {expected}"
            return
        for item in value:
            yield from kind.faults(item)

    schema: dict[str, Any] = {"type": "array", "items": kind.schema}
    return Kind(expected, {**schema, "minItems": least} if least else schema, faults)


def one_or_more(kind: Kind) -> Kind:
    expected = f"{kind.expected}, or a list of such"
    many = list_of(kind, expected, least=1)

    def faults(value: Any) -> Iterator[str]:
        return many.faults(value) if isinstance(value, list) else kind.faults(value)

    return Kind(expected, {"anyOf": [kind.schema, many.schema]}, faults)


def table_of(kind_of: Callable[[str], Kind | str], expected: str, schema: Mapping[str, Any]) -> Kind:
    """A table that is not empty.

    Args:
        kind_of: the kind of the value under a key; a text where there is no such key, which says why.
    """

    def faults(value: Any) -> Iterator[str]:
        if not isinstance(value, dict) or not value:
            yield f"found {shown(value)}; expected {expected}"
            return
        for key, item in value.items():
            kind = kind_of(key)
            if isinstance(kind, str):
                yield f"{shortened(repr(key))}: {kind}; expected {expected}"
            else:
                yield from (f"{shortened(repr(key))}: {fault}" for fault in kind.faults(item))

    return Kind(expected, {"type": "object", "minProperties": 1, **schema}, faults)


# --- requirements and markers --------------------------------------------------------------------------------------


@functools.lru_cache(maxsize=1024)
def _requirement_fault(text: str) -> str | None:
    from packaging.requirements import Requirement
    from packaging.version import Version

    try:
        requirement = Requirement(text)
        specifiers = list(requirement.specifier)
        for specifier in specifiers:
            if specifier.operator == "===":
                return "`===` compares texts, not versions"
            if "+" in specifier.version:
                return "a local part never decides; use `build`"
            Version(specifier.version.removesuffix(".*"))
    except (ValueError, RecursionError) as error:
        return _first_line(error)
    if requirement.url is not None or requirement.extras:
        return "a URL or an extra says nothing about an installed version"
    return _marker_fault(str(requirement.marker)) if requirement.marker is not None else None


@functools.lru_cache(maxsize=1024)
def _marker_fault(text: str) -> str | None:
    from packaging.markers import Marker

    try:
        marker = Marker(text)
        if _OF_AN_INSTALLATION.search(_QUOTED.sub("", text)):
            return "an extra or a dependency group is of an installation, not of a process"
        marker.evaluate(_NEUTRAL_PLATFORM)
    except KeyError as error:
        return f"{error} is no variable"
    except (ValueError, RecursionError) as error:
        return _first_line(error)
    return None


def _expression_fault(text: str) -> str | None:
    try:
        ast.parse(text, mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        return _first_line(error)
    return None


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]


# --- the kinds of a manifest ---------------------------------------------------------------------------------------

TEXT = simple("a string", {"type": "string", "pattern": r"\S"}, lambda v: isinstance(v, str) and bool(v.strip()))
BOOLEAN = simple("true or false", {"type": "boolean"}, lambda value: isinstance(value, bool))
ANYTHING = simple("any value", {}, lambda value: True)
HASHABLE = simple(
    "a string, a number, a boolean or a date",
    {"not": {"type": ["array", "object"]}},
    lambda value: not isinstance(value, list | dict),
)
_ID = r"[a-z0-9]+(?:[-_.][a-z0-9]+)*"
ID = matching("lower-case letters and digits, joined by '-', '_' or '.'", _ID)
PATCH_NAME = matching("the id of a patch, or 'manifest/id'", rf"(?:{_ID}/)?{_ID}")
INDEX = simple(
    "a number that is not negative",
    {"type": "integer", "minimum": 0},
    lambda value: type(value) is int and value >= 0,
)
TARGET = matching("'package.module:Qualified.name'", rf"{_DOTTED}:{_DOTTED}")
NAME_OR_TARGET = matching("a name beside the target, or 'package.module:Qualified.name'", rf"(?:{_DOTTED}:)?{_DOTTED}")
PARAMETER = matching("the name of a parameter", rf"\*{{0,2}}{_NAME}")
EXCEPTION = matching("the name of an exception, without its module", _NAME)
HASH = matching("a hash of a syntax tree (16 to 32 of the digits 0-9 and a-f)", r"[0-9a-f]{16,32}")
VARIABLE = matching("the name of an environment variable", r"[^=\x00]+")
VARIABLE_VALUE = matching("a string without NUL", r"[^\x00]*")
EXPRESSION = scalar(
    "a Python expression",
    {"type": "string"},
    lambda value: _expression_fault(value) if isinstance(value, str) else "",
)
REQUIREMENT = scalar(
    "a PEP 508 requirement such as 'torch>=2.10,<2.11'",
    {"type": "string", "minLength": 1},
    lambda value: _requirement_fault(value) if isinstance(value, str) else "",
)
MARKER = scalar(
    "a PEP 508 marker such as \"sys_platform == 'linux'\"",
    {"type": "string", "minLength": 1},
    lambda value: _marker_fault(value) if isinstance(value, str) else "",
)
