"""The JSON Schema and the checker agree on what a manifest is."""

import datetime
import json
from typing import Any

import pytest
from declared import CORRECT, ROOT, document, table
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from test_manifest import LEAST, VALUES, WRONG

from compat_patches.fields import ACTIONS, MANIFEST_FIELDS, PATCH_FIELDS, STEP_FIELDS_OF_ITS_OWN, problems_of
from compat_patches.schema import json_schema

SCHEMA = Draft202012Validator(json_schema())
STEPS = {"target": None, "action": None, "using": None}


def accepted(values: dict[str, Any]) -> bool:
    """What the schema says, asked about the document as JSON has it."""
    return SCHEMA.is_valid(json.loads(json.dumps(values, default=str)))


def test_it_is_a_schema_and_can_be_written_as_json():
    Draft202012Validator.check_schema(json_schema())
    assert json.loads(json.dumps(json_schema())) == json_schema()


def test_it_describes_every_key():
    definitions = json_schema()["$defs"]
    for known, properties in (
        (MANIFEST_FIELDS, json_schema()["properties"]["manifest"]["properties"]),
        (PATCH_FIELDS, definitions["patch"]["properties"]),
        (STEP_FIELDS_OF_ITS_OWN, definitions["step"]["properties"]),
    ):
        assert {key: value["description"] for key, value in properties.items()} == {
            key: value.doc for key, value in known.items()
        }


def test_each_call_gives_a_document_of_its_own():
    before = json.dumps(json_schema())
    document = json_schema()
    document["$defs"]["patch"]["properties"]["build"]["default"].append("x")
    document["$defs"].clear()
    assert json.dumps(json_schema()) == before


# --- what both accept ----------------------------------------------------------------------------------------------

STEP = {"target": "torch:f", "action": "wrap", "using": "a:b"}

GOOD: list[dict[str, Any]] = [
    {},
    {"groups": ["a"], "requires": ["torch>=2.10,<2.11"], "marker": "sys_platform == 'linux'", "build": ["cpu", "xpu"]},
    {"needed_if": {"lacks_parameter": ["a", "**b"], "lacks_attribute": "a.b:c", "source_hash": "0" * 16}},
    {"needed_if": {"does_not_catch": "ValueError", "lacks_constant": " x", "probe": "a:b.c"}},
    {"also_bind": ["größe:maß"], "rebind": True, "pins": {"2.10": "0" * 32, "2.11": ["1" * 32, "2" * 32]}},
    {"scope": "context", "enabled": False, "irreversible": True, "affects_compile": True},
    {**STEPS, "step": [STEP, {**STEP, "requires": ["torch<2.9"], "rebind": True}]},
    {**STEPS, "step": [{"action": "env", "key": "A", "value": "1"}]},
    {"using": None, "action": "set_item", "key": datetime.date(2026, 1, 1), "value": {"a": [1, 2.5]}},
    {"using": None, "action": "env", "target": "os:environ", "key": "A", "value": "", "mode": "set"},
    *({"using": None, "action": action, **least} for action, least in LEAST.items()),
]


@pytest.mark.parametrize("changes", GOOD)
def test_both_accept(changes):
    values = document(table(**changes))
    assert problems_of(values) == []
    assert list(SCHEMA.iter_errors(json.loads(json.dumps(values, default=str)))) == []


# --- what both refuse ----------------------------------------------------------------------------------------------

# What is refused by the checker and cannot be said in JSON Schema, or not in the way in which Python reads it.
BEYOND_THE_SCHEMA: list[tuple[str, dict[str, Any]]] = [
    ("the syntax of a requirement", {"requires": ["torch>=x"]}),
    ("a requirement that says nothing about a version", {"requires": ["torch[opt]"]}),
    ("a local part", {"requires": ["torch==2.10+cu128"]}),
    ("the syntax of a marker", {"marker": "sys_platform = 'linux'"}),
    ("a variable that no marker has", {"marker": "platform == 'linux'"}),
    # In ECMA 262, by which JSON Schema reads patterns, `$` is the end; in Python a line feed may follow.
    ("a line feed at the end of a name", {"target": "torch:f\n"}),
]


@pytest.mark.parametrize("changes", [case for _, case in BEYOND_THE_SCHEMA], ids=[why for why, _ in BEYOND_THE_SCHEMA])
def test_the_checker_refuses_what_the_schema_cannot_say(changes):
    values = document(table(**changes))
    assert problems_of(values)
    assert accepted(values)


@pytest.mark.parametrize(
    "values",
    [
        document(table(), table()),
        document(table(id="a"), table(id="b", groups=["a"])),
        {"manifest": {"name": "a", "schema": 1.0}},
    ],
    ids=["the same id twice", "a group that is called like a patch", "1.0, which is an integer to JSON"],
)
def test_the_checker_refuses_documents_as_a_whole_that_the_schema_cannot(values):
    assert problems_of(values)
    assert accepted(values)


def changes_of_the_tables() -> list[dict[str, Any]]:
    beyond = [case for _, case in BEYOND_THE_SCHEMA]
    wrong = [{key: value} for key, value, *_ in WRONG if not (isinstance(value, str) and value.endswith("\n"))]
    missing = [{key: None} for key in CORRECT]
    unused = [
        {"using": None, "action": name, **LEAST[name], key: value}
        for name, action in ACTIONS.items()
        for key, value in (("using", "a:b"), ("key", "x"), ("key_object", "a:b"), ("value", "x"), ("mode", "set"))
        if key not in (*action.keys, *LEAST[name])
    ]
    without = [{"using": None, "action": name, **LEAST[name], k: None} for name in ACTIONS for k in ACTIONS[name].needs]
    both = [
        {"action": name, "key": LEAST[name].get("key"), "using": "a:b", "value": 1}
        for name, action in ACTIONS.items()
        if ("using", "value") in action.one_of
    ]
    steps = [
        {"step": [STEP]},
        {**STEPS, "step": [{**STEP, "action": "noop"}]},
        {**STEPS, "step": [{**STEP, "using": None, "needed_if": {"probe": "a:b"}}]},
        {**STEPS, "step": [{"action": "wrap", "using": "a:b"}]},
        {**STEPS, "step": [{**STEP, "requires": "torch"}]},
        {**STEPS, "step": [{"target": "a:b", "action": "env", "key": "A", "value": "b"}]},
        {**STEPS, "step": [{"action": "env", "key": "A=B", "value": "b"}]},
        {**STEPS, "step": [{"action": "env", "key": "A", "value": 1}]},
    ]
    return [case for case in [*wrong, *missing, *unused, *without, *both, *steps, {"a": 1}] if case not in beyond]


@pytest.mark.parametrize("changes", changes_of_the_tables(), ids=repr)
def test_both_refuse(changes):
    values = document(table(**changes))
    assert problems_of(values)
    assert not accepted(values)


@pytest.mark.parametrize(
    "values",
    [
        {},
        {"manifest": []},
        {"manifest": {"name": "a"}},
        {"manifest": {"name": "A", "schema": 1}},
        {"manifest": {"name": "a", "schema": 2}},
        {"manifest": {"name": "a", "schema": True}},
        {"manifest": {"name": "a", "schema": 1, "x": 1}},
        {**document(), "patches": []},
        {**document(), "patch": table()},
        {**document(), "patch": ["x"]},
    ],
    ids=repr,
)
def test_both_refuse_documents(values):
    assert problems_of(values)
    assert not accepted(values)


@settings(deadline=None)
@given(st.dictionaries(st.sampled_from(sorted({*PATCH_FIELDS, "other"})), VALUES, max_size=4), st.booleans())
def test_the_schema_refuses_nothing_that_the_checker_accepts(changes, in_a_step):
    values = document(table(**(STEPS if in_a_step else changes), **({"step": [changes]} if in_a_step else {})))
    assert accepted(values) or problems_of(values)


def test_the_built_in_manifest_is_accepted():
    try:
        import tomllib
    except ModuleNotFoundError:
        import tomli as tomllib
    with open(ROOT / "patches.toml", "rb") as file:
        assert accepted(tomllib.load(file))
