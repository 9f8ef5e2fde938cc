"""The JSON Schema of manifests, for editors: made from the tables by which manifests are checked."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from .fields import ACTIONS, MANIFEST_FIELDS, PATCH_FIELDS, STEP_FIELDS, STEP_FIELDS_OF_ITS_OWN, Action, Field

DIALECT = "https://json-schema.org/draft/2020-12/schema"


def json_schema() -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of a manifest.

    It refuses what JSON Schema can refuse. The syntax of requirements and markers, and that ids are unique and no
    group bears one, is checked by :func:`compat_patches.manifest.load` alone.

    Returns:
        A document that can be written as JSON.
    """
    schema = {
        "$schema": DIALECT,
        "title": "Manifest of compat-patches",
        "description": "Declared, version-gated, reversible run-time patches.",
        "type": "object",
        "properties": {
            "manifest": {"description": "What this manifest is.", **_table(MANIFEST_FIELDS)},
            "patch": {"description": "The patches.", "type": "array", "items": {"$ref": "#/$defs/patch"}},
        },
        "required": ["manifest"],
        "additionalProperties": False,
        "$defs": {"patch": _patch(), "step": _step()},
    }
    # The tables' own lists are in it.
    return copy.deepcopy(schema)


def _patch() -> dict[str, Any]:
    return {
        "description": "One change to somebody else's code.",
        **_table(PATCH_FIELDS),
        "if": {"required": ["step"]},
        "then": {"properties": dict.fromkeys(STEP_FIELDS, False)},
        "else": _action_rules(),
    }


def _step() -> dict[str, Any]:
    return {
        "description": "One of several changes that are made together.",
        **_table(STEP_FIELDS_OF_ITS_OWN),
        **_action_rules(),
    }


def _table(fields: Mapping[str, Field]) -> dict[str, Any]:
    table: dict[str, Any] = {
        "type": "object",
        "properties": {key: _property(known) for key, known in fields.items()},
        "additionalProperties": False,
    }
    required = [key for key, known in fields.items() if known.required]
    return {**table, "required": required} if required else table


def _property(known: Field) -> dict[str, Any]:
    default = {} if known.default is None else {"default": known.default}
    return {"description": known.doc, **known.kind.schema, **default}


def _action_rules() -> dict[str, Any]:
    return {
        "required": ["action"],
        "allOf": [
            {"if": {"properties": {"action": {"const": name}}, "required": ["action"]}, "then": _needs(name, action)}
            for name, action in ACTIONS.items()
        ],
    }


def _needs(name: str, action: Action) -> dict[str, Any]:
    unused = [key for key in STEP_FIELDS if key not in ("target", "action", *action.keys)]
    needs: dict[str, Any] = {
        "required": [*action.needs] if name == "env" else ["target", *action.needs],
        "properties": {**dict.fromkeys(unused, False), **{key: kind.schema for key, kind in action.kinds.items()}},
    }
    if action.one_of:
        needs["allOf"] = [{"oneOf": [{"required": [key]} for key in keys]} for keys in action.one_of]
    return needs
