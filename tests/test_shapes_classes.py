"""Shapes of patches (docs/shapes.md): enums, dataclasses, proxies of containers, and what comes too late."""

from __future__ import annotations

import dataclasses
import logging
import os
import pickle
from typing import Any

import pytest
from standins import World
from support import put_back


@pytest.fixture(scope="module")
def torch() -> Any:
    # Of the module's scope, as an import of torch changes what a `world` looks at.
    return pytest.importorskip("torch")


def test_add_a_member_to_an_enum(world: World, torch: Any) -> None:
    from torch.nn.attention import SDPBackend  # noqa: F401  # made by pybind11: no enum of Python's
    from torch.utils.data.datapipes._hook_iterator import _SnapshotState as State

    tables = (State._member_map_, State._value2member_map_, State._member_names_)
    with put_back(State, *tables):
        target = "torch.utils.data.datapipes._hook_iterator:_SnapshotState.Ours"
        world.declare({"id": "p", "target": target, "action": "inject", "value": 77})
        ours = State.Ours
        assert (State(77), State["Ours"], list(State)[-1], ours.value, ours.name) == (ours, ours, ours, 77, "Ours")
        assert isinstance(ours, State) and pickle.loads(pickle.dumps(ours)) is ours
        world.engine.revert("p")
    with pytest.raises(ValueError):
        State(77)


@pytest.mark.parametrize("kinds", ["enum.Enum", "str, enum.Enum", "enum.IntEnum"])
def test_add_a_member_to_enums_of_other_kinds(world: World, kinds: str) -> None:
    value: Any = 7 if "Int" in kinds else "seven"
    first = 1 if "Int" in kinds else "'one'"
    module = world.load("target", f"import enum\n\nclass Kind({kinds}):\n    ONE = {first}\n")
    with put_back(module.Kind, module.Kind._member_map_, module.Kind._member_names_, module.Kind._value2member_map_):
        status = world.declare({"id": "p", "target": "target:Kind.SEVEN", "action": "inject", "value": value})
        assert status[0].state == "applied"
        assert list(module.Kind) == [module.Kind.ONE, module.Kind(value)]
        assert kinds == "enum.Enum" or value == module.Kind.SEVEN
        world.engine.revert("p")


def test_change_the_value_of_a_member(world: World, torch: Any) -> None:
    from torch.utils.data.datapipes._hook_iterator import _SnapshotState as State

    started = State.NotStarted
    value = started.value
    with put_back(State, State._member_map_, State._value2member_map_, State._member_names_, started):
        target = "torch.utils.data.datapipes._hook_iterator:_SnapshotState.NotStarted"
        world.declare({"id": "p", "target": target, "action": "set", "value": 77})
        assert world.state() == "applied", world.reason()
        assert State.NotStarted is State(77) is State["NotStarted"] is started
        assert (started.value, started.name, started in list(State)) == (77, "NotStarted", True)
        assert pickle.loads(pickle.dumps(started)) is started
        with pytest.raises(ValueError):
            State(value)
        world.engine.revert("p")
    assert started.value == value and State(value) is started


@pytest.mark.parametrize("kinds", ["str, enum.Enum", "enum.IntEnum", "enum.Enum"])
def test_change_the_value_of_a_member_that_is_a_string_or_a_number(world: World, kinds: str) -> None:
    one, two, seven = (1, 2, 7) if "Int" in kinds else ("one", "two", "seven")
    text = f"import enum\n\nclass Kind({kinds}):\n    ONE = {one!r}\n    TWO = {two!r}\n    ALSO_ONE = {one!r}\n"
    module = world.load("target", text)
    kind = module.Kind
    first = kind.ONE
    with put_back(kind, kind._member_map_, kind._member_names_, kind._value2member_map_, first):
        status = world.declare({"id": "p", "target": "target:Kind.ONE", "action": "set", "value": seven})[0]
        assert status.state == "applied", status.reason
        assert kind.ONE is kind.ALSO_ONE is kind(seven) is kind["ONE"] is next(iter(kind))
        assert (kind.ONE.value, kind.ONE.name, [member.value for member in kind]) == (seven, "ONE", [seven, two])
        assert kinds == "enum.Enum" or seven == kind.ONE
        with pytest.raises(ValueError):
            kind(one)
        world.engine.revert("p")
    assert kind.ONE is kind.ALSO_ONE is kind(one) is first and first.value == one
    with pytest.raises(ValueError):
        kind(seven)


def test_a_value_that_another_member_has_is_refused(world: World) -> None:
    module = world.load("target", "import enum\n\nclass Kind(enum.Enum):\n    ONE = 1\n    TWO = 2\n")
    with put_back(module.Kind):
        status = world.declare({"id": "p", "target": "target:Kind.ONE", "action": "set", "value": 2})[0]
    assert status.state == "failed" and "2 is the value of <Kind.TWO: 2> already" in status.reason


KINDS = """
    import enum

    class Plain(enum.Enum):
        ONE = 1
        TWO = 2

    class Text(str, enum.Enum):
        ONE = "1"
        TWO = "2"

    ONE = Text.ONE
"""


def picture(kind: Any) -> Any:
    """All that an enum tells of its members, the order in which it finds them by their values apart."""
    by_value = dict(kind._value2member_map_)
    kept = [list(vars(kind).get(name, ())) for name in ("_unhashable_values_", "_hashable_values_")]
    own = {name: vars(kind).get(name) for name in kind.__members__}
    return (dict(kind.__members__), list(kind), [member.value for member in kind], by_value, kept, own)


@pytest.mark.parametrize("kind", ["Plain", "Text"])
@pytest.mark.parametrize("order", ["ab", "ba"])
@pytest.mark.parametrize("first", ["set", "inject"])
def test_changes_of_one_member_are_undone_in_any_order(world: World, kind: str, order: str, first: str) -> None:
    module = world.load("target", KINDS)
    changed = getattr(module, kind)
    ten, twenty = (10, 20) if kind == "Plain" else ("10", "20")
    before = picture(changed)
    name = "ONE" if first == "set" else "NEW"
    statuses = world.declare(
        {"id": "a", "target": f"target:{kind}.{name}", "action": first, "value": ten},
        {"id": "b", "target": f"target:{kind}.{name}", "action": "set", "value": twenty},
    )
    assert [status.state for status in statuses] == ["applied", "applied"]
    world.engine.apply("a", "b", "a")
    assert (changed[name].value, changed(twenty)) == (twenty, changed[name])
    for name_of_patch in order:
        world.engine.revert(name_of_patch)
    assert picture(changed) == before
    assert world.layers == 0


def test_a_name_in_a_module_goes_along_with_the_member(world: World) -> None:
    module = world.load("target", KINDS)
    before = module.ONE
    for targets in (["target:Text.ONE", "target:ONE"], ["target:ONE", "target:Text.ONE"]):
        patch = {"target": targets[0], "also_bind": targets[1:], "action": "set", "value": "one"}
        world.declare({"id": targets[0].rpartition(":")[2].lower(), **patch})
        assert module.ONE is module.Text.ONE is module.Text("one")
        world.engine.revert(*(patch.id for patch in world.engine.patches()))
        assert module.ONE is module.Text.ONE is module.Text("1") is before


def test_a_value_that_cannot_be_hashed(world: World) -> None:
    module = world.load("target", "import enum\n\nclass Kind(enum.Enum):\n    ONE = [1]\n    TWO = 2\n")
    before = picture(module.Kind)
    world.declare(
        {"id": "a", "target": "target:Kind.ONE", "action": "set", "value": [7]},
        {"id": "b", "target": "target:Kind.TWO", "action": "set", "value": [8]},
    )
    assert (module.Kind([7]), module.Kind([8])) == (module.Kind.ONE, module.Kind.TWO)
    for old in ([1], 2):
        with pytest.raises(ValueError):
            module.Kind(old)
    world.engine.revert("a", "b")
    assert picture(module.Kind) == before and module.Kind([1]) is module.Kind.ONE


@pytest.mark.parametrize(
    ("kind", "value", "problem"),
    [
        ("class Kind(enum.Enum):\n    def __new__(cls, v):\n        o = object.__new__(cls)\n"
         "        o._value_ = v\n        return o\n    ONE = 1", 2, "makes its members itself, by __new_member__"),
        ("class Kind(enum.Enum):\n    def __init__(self, v):\n        self.double = v * 2\n    ONE = 1", 2,
         "initialises its members itself"),
        ("class Kind(enum.Enum):\n    ONE = 1\n    @property\n    def value(self):\n        return 7", 2,
         "tells the values of its members itself"),
        ("class Base(enum.Enum):\n    @property\n    def ONE(self):\n        return 7\n"
         "class Kind(Base):\n    TWO = 2", 3, "is there already"),
        ("class Base(str, enum.Enum):\n    @property\n    def ONE(self):\n        return 7\n"
         "class Kind(Base):\n    ONE = '1'", "2", "from a class that it is derived from"),
        ("class Kind(enum.IntEnum):\n    ONE = 1", 2.5, "members that are a int each; found 2.5"),
        ("class Kind(enum.Flag):\n    ONE = 1", 2, "is a flag"),
    ],
)  # fmt: skip
def test_what_would_not_be_as_the_enum_makes_it_is_refused(world: World, kind: str, value: Any, problem: str) -> None:
    module = world.load("target", f"import enum\n\n{kind}\n")
    before = picture(module.Kind)
    action = "set" if "ONE" in module.Kind.__members__ else "inject"
    status = world.declare({"id": "p", "target": "target:Kind.ONE", "action": action, "value": value})[0]
    assert status.state in ("failed", "skipped")
    assert problem in status.reason
    assert picture(module.Kind) == before


def test_a_member_that_cannot_be_added_is_told_so(world: World) -> None:
    module = world.load(
        "target",
        """
        import enum

        class Kind(enum.Enum):
            ONE = 1

        class Flags(enum.Flag):
            ONE = 1
        """,
    )
    with put_back(module.Kind, module.Flags):
        same, flag = world.declare(
            {"id": "same", "target": "target:Kind.TWO", "action": "inject", "value": 1},
            {"id": "flag", "target": "target:Flags.TWO", "action": "inject", "value": 2},
        )
    assert (same.state, flag.state) == ("failed", "failed")
    assert "is the value of <Kind.ONE: 1> already" in same.reason and "is a flag" in flag.reason


def test_change_the_default_of_a_dataclass(world: World, torch: Any) -> None:
    from torch.distributed.fsdp import MixedPrecision

    init = MixedPrecision.__init__
    before = (init.__defaults__, MixedPrecision.__dataclass_fields__["keep_low_precision_grads"].default)
    with put_back(MixedPrecision, MixedPrecision.__dataclass_fields__):
        target = "torch.distributed.fsdp.api:MixedPrecision.keep_low_precision_grads"
        world.declare({"id": "p", "target": target, "action": "set", "value": True})
        assert world.state() == "applied"
        assert MixedPrecision().keep_low_precision_grads is True
        assert MixedPrecision(keep_low_precision_grads=False).keep_low_precision_grads is False
        defaults = {field.name: field.default for field in dataclasses.fields(MixedPrecision)}
        assert defaults["keep_low_precision_grads"] is True
        world.engine.revert("p")
    assert (init.__defaults__, MixedPrecision.__dataclass_fields__["keep_low_precision_grads"].default) == before
    assert MixedPrecision().keep_low_precision_grads is False


def test_change_defaults_of_keywords_and_with_slots(world: World) -> None:
    module = world.load(
        "target",
        """
        import dataclasses

        @dataclasses.dataclass(kw_only=True)
        class Keywords:
            one: int = 1
            many: list = dataclasses.field(default_factory=list)

        @dataclasses.dataclass(slots=True)
        class Slots:
            one: int = 1
            two: int = 2
        """,
    )
    with put_back(module.Keywords, module.Slots):
        world.declare(
            {"id": "one", "target": "target:Keywords.one", "action": "set", "value": 7},
            {"id": "two", "target": "target:Slots.one", "action": "set", "value": 7},
        )
        assert (module.Keywords().one, module.Slots().one, module.Slots().two) == (7, 7, 2)
        world.engine.revert("two", "one")
    assert (module.Keywords().one, module.Slots().one) == (1, 1)


def test_a_proxy_of_a_container_keeps_what_is_changed_meanwhile(world: World, torch: Any) -> None:
    world.write(
        "proxies",
        """
        import wrapt

        class Forgiving(wrapt.ObjectProxy):
            def __getitem__(self, key):
                return self.__wrapped__.get(key, "a default")

        def no_proxy(original):
            return dict(original)
        """,
    )
    from torch.utils import _pytree

    module, table = world.load("target", "table = {'a': 1}\n"), _pytree.SUPPORTED_SERIALIZED_TYPES
    with put_back(module, _pytree):
        told = {"action": "proxy", "using": "proxies:Forgiving"}
        world.declare(
            {"id": "one", "target": "target:table", **told},
            {"id": "two", "target": "torch.utils._pytree:SUPPORTED_SERIALIZED_TYPES", **told},
            {"id": "three", "target": "target:table", "action": "proxy", "using": "proxies:no_proxy"},
        )
        assert (module.table["a"], module.table["b"]) == (1, "a default")
        assert _pytree.SUPPORTED_SERIALIZED_TYPES[world] == "a default"
        module.table["meanwhile"] = 2
        assert world.state("three") == "failed" and "expected a wrapt.ObjectProxy" in world.reason("three")
        world.engine.revert("one", "two")
    assert module.table == {"a": 1, "meanwhile": 2}
    assert _pytree.SUPPORTED_SERIALIZED_TYPES is table


def test_a_variable_that_is_set_after_torch_was_imported(
    world: World, torch: Any, caplog: pytest.LogCaptureFixture
) -> None:
    with put_back(os.environ), caplog.at_level(logging.WARNING, "compat_patches"):
        world.declare({"id": "p", "action": "env", "key": "SHAPES_LATE", "value": "1"})
        assert world.state() == "applied"
        assert "too late for what torch read of SHAPES_LATE" in world.reason()
        assert "too late for what torch read of SHAPES_LATE" in caplog.text
        world.engine.revert("p")
