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
