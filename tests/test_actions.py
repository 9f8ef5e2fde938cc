"""Actions: what each puts into a slot, and that undoing brings back what was there."""

from __future__ import annotations

import asyncio
import copy
import functools
import inspect
import pickle
import sys
import typing
from typing import Any

import pytest
from standins import World

TARGET = '''
    import abc, contextlib, enum, functools, typing
    from typing import Optional

    def f(a: int, b: "Optional[int]" = None, *, c: int = 0) -> "int":
        """What f is for."""
        return a + c

    @functools.lru_cache(maxsize=4)
    def cached(a): return a

    partial = functools.partial(f, 1)
    builtin = len

    async def coroutine(a): return a

    def generator(a):
        yield a

    async def async_generator(a):
        yield a

    @contextlib.contextmanager
    def context(a):
        yield a

    @functools.singledispatch
    def single(a): return a

    @single.register
    def _(a: str): return len(a)

    class Base:
        def inherited(self, a): return a
        @staticmethod
        def inherited_static(a): return a
        @classmethod
        def inherited_class(cls, a): return a

    class Meta(type):
        def __call__(cls, *args):
            return super().__call__(*args)
        def meta_method(cls, a): return a

    class Class(Base, metaclass=Meta):
        slots = ()
        def method(self, a): return a
        @staticmethod
        def static(a): return a
        @classmethod
        def class_method(cls, a): return a
        @property
        def prop(self): return 1
        @functools.cached_property
        def cached_prop(self): return 1
        part = functools.partial(lambda *given: given[0], 1)
        part_method = functools.partialmethod(method, 1)
        builtin = len
        cached_method = functools.lru_cache(method)
        @functools.singledispatchmethod
        def single(self, a): return a
        def __call__(self, a): return a
        def __getitem__(self, a): return a
        def __init_subclass__(cls, **options): cls.options = options
        def __class_getitem__(cls, a): return a
        def __new__(cls, *args): return super().__new__(cls)
        async def coroutine(self, a): return a

    class Below(Class): pass
    class OfC(list): pass
    class OfDict(dict): pass
    class Slotted:
        __slots__ = ("a",)
        def method(self, a): return a
    def slotted():
        made = Slotted()
        made.a = 1
        return made
    class OfInt(int): pass
    class Colour(enum.Enum):
        RED = 1
        def method(self, a): return a
    class Speaks(typing.Protocol):
        def method(self, a): ...
    class Abstract(abc.ABC):
        @abc.abstractmethod
        def method(self, a): return a
    class Concrete(Abstract):
        def method(self, a): return super().method(a)
'''

CALLS: dict[str, typing.Callable[[Any], Any]] = {
    "f": lambda t: t.f(1),
    "cached": lambda t: t.cached(1),
    "partial": lambda t: t.partial(),
    "builtin": lambda t: t.builtin([1]),
    "single": lambda t: t.single(1),
    "Class.method": lambda t: t.Class().method(1),
    "Class.static": lambda t: t.Class().static(1),
    "Class.class_method": lambda t: t.Class().class_method(1),
    "Class.prop": lambda t: t.Class().prop,
    "Class.cached_prop": lambda t: t.Class().cached_prop,
    "Class.part": lambda t: t.Class.part(),
    "Class.part_method": lambda t: t.Class().part_method(),
    "Class.builtin": lambda t: t.Class().builtin([1]),
    "Class.cached_method": lambda t: t.Class().cached_method(1),
    "Class.single": lambda t: t.Class().single(1),
    "Class.__call__": lambda t: t.Class()(1),
    "Class.__getitem__": lambda t: t.Class()[1],
    "Class.__class_getitem__": lambda t: t.Class[1],
    "Class.inherited": lambda t: t.Class().inherited(1),
    "Class.inherited_static": lambda t: t.Class().inherited_static(1),
    "Class.inherited_class": lambda t: t.Class().inherited_class(1),
    "Below.method": lambda t: t.Below().method(1),
    "Meta.meta_method": lambda t: t.Class.meta_method(1),
    "OfC.__len__": lambda t: len(t.OfC([1])),
    "OfC.count": lambda t: t.OfC([5]).count(5),
    "OfInt.numerator": lambda t: t.OfInt(1).numerator,
    "Slotted.a": lambda t: t.slotted().a,
    "Slotted.method": lambda t: t.Slotted().method(1),
    "Colour.method": lambda t: t.Colour.RED.method(1),
    "Abstract.method": lambda t: t.Concrete().method(1),
}


def entries(owner: Any) -> dict[str, Any]:
    return {key: value for key, value in vars(owner).items() if key not in ("__abstractmethods__",)}


def owner_of(target: Any, qualname: str) -> Any:
    for part in qualname.split(".")[:-1]:
        target = getattr(target, part)
    return target


@pytest.mark.parametrize("qualname", CALLS)
def test_whatever_is_wrapped_acts_and_is_put_back_exactly(world: World, qualname: str) -> None:  # case 12, case 16
    target = world.load("target", TARGET)
    owner, call = owner_of(target, qualname), CALLS[qualname]
    before = entries(owner)
    for _ in range(2):
        status = world.wrap(f"target:{qualname}") if "p" not in known(world) else world.engine.apply("p")[0]
        assert status.state == "applied", status.reason
        assert call(target) == 2
        world.engine.revert("p")
        assert call(target) == 1
    after = entries(owner)
    assert list(after) == list(before)
    assert all(after[key] is before[key] for key in before)


def known(world: World) -> list[str]:
    return [patch.id for patch in world.engine.patches()]


ACTIONS = [
    {"action": "wrap", "using": "impl:add_one"},
    {"action": "replace", "using": "impl:seven"},
    {"action": "noop", "value": 7},
    {"action": "alias", "using": "impl:seven"},
]


@pytest.mark.parametrize("action", ACTIONS, ids=lambda action: action["action"])
@pytest.mark.parametrize("qualname", ["f", "Class.method", "Class.static", "Class.class_method", "Class.prop"])
def test_each_action_keeps_the_kind_of_descriptor(world: World, action: dict[str, Any], qualname: str) -> None:
    world.load("impl")
    target = world.load("target", TARGET)
    owner, name = owner_of(target, qualname), qualname.rpartition(".")[2]
    raw = vars(owner)[name]
    world.declare({"id": "p", "target": f"target:{qualname}", **action})
    assert world.state() == "applied", world.reason()
    assert type(vars(owner)[name]) is type(raw)
    assert CALLS[qualname](target) == (2 if action["action"] == "wrap" else 7)
    world.engine.revert("p")
    assert vars(owner)[name] is raw


def test_a_wrapped_function_looks_like_the_original(world: World) -> None:  # case 14
    target = world.load("target", TARGET)
    original = target.f
    world.wrap("target:f")
    assert (target.f.__name__, target.f.__qualname__, target.f.__module__) == ("f", "f", "target")
    assert target.f.__doc__ == "What f is for."
    assert target.f.__wrapped__ is original
    assert inspect.signature(target.f) == inspect.signature(original)
    assert typing.get_type_hints(target.f) == typing.get_type_hints(original)
    assert pickle.loads(pickle.dumps(target.f)) is target.f
    assert copy.deepcopy(target.f) is target.f
    assert inspect.isfunction(target.f)


def test_a_wrapped_function_is_usable_as_an_attribute_of_a_class(world: World) -> None:  # case 14
    target = world.load("target", "def f(self, a): return a")
    world.wrap("target:f")

    class Class:
        method = target.f

    assert Class().method(1) == 2


@pytest.mark.parametrize("action", ACTIONS[2:], ids=lambda action: action["action"])
def test_type_hints_of_what_stands_in_can_be_read(world: World, action: dict[str, Any]) -> None:
    world.load("impl")
    target = world.load("target", "def f(a: int) -> int: return a")
    world.declare({"id": "p", "target": "target:f", **action})
    assert isinstance(typing.get_type_hints(target.f), dict)


def test_kinds_of_functions_are_wrapped_by_stand_ins_of_their_kind(world: World) -> None:
    world.write(
        "kinds",
        """
        import contextlib
        def coroutine(original):
            async def stand_in(a): return await original(a) + 1
            return stand_in
        def generator(original):
            def stand_in(a):
                for item in original(a): yield item + 1
            return stand_in
        def async_generator(original):
            async def stand_in(a):
                async for item in original(a): yield item + 1
            return stand_in
        def context(original):
            @contextlib.contextmanager
            def stand_in(a):
                with original(a) as item: yield item + 1
            return stand_in
        """,
    )
    target = world.load("target", TARGET)
    kinds = ["coroutine", "generator", "async_generator", "context"]
    world.declare(
        *(
            {"id": kind.replace("_", "-"), "target": f"target:{kind}", "action": "wrap", "using": f"kinds:{kind}"}
            for kind in kinds
        )
    )

    async def collect() -> list[int]:
        return [item async for item in target.async_generator(1)]

    def answers() -> list[Any]:
        with target.context(1) as inside:
            return [asyncio.run(target.coroutine(1)), list(target.generator(1)), asyncio.run(collect()), inside]

    copies = [vars(target)[kind] for kind in kinds]
    assert answers() == [2, [2], [2], 2]
    assert inspect.iscoroutinefunction(target.coroutine) and inspect.isasyncgenfunction(target.async_generator)
    world.engine.revert(*(kind.replace("_", "-") for kind in kinds))
    assert answers() == [1, [1], [1], 1]
    vars(target).update(zip(kinds, copies, strict=True))  # As somebody holds them who copied them by value.
    assert answers() == [1, [1], [1], 1]


def test_a_class_method_of_c_stays_one(world: World) -> None:  # case 12
    world.write(
        "noting",
        """
        def factory(original):
            def stand_in(cls, *args):
                made = original(cls, *args)
                made["noted"] = cls.__name__
                return made
            return stand_in
        """,
    )
    target = world.load("target", TARGET)
    before = entries(target.OfDict)
    world.wrap("target:OfDict.fromkeys", "noting:factory")
    assert target.OfDict.fromkeys("a", 1) == target.OfDict().fromkeys("a", 1) == {"a": 1, "noted": "OfDict"}
    world.engine.revert("p")
    assert target.OfDict.fromkeys("a", 1) == {"a": 1}
    assert entries(target.OfDict) == before


def test_what_is_not_called_cannot_be_wrapped(world: World) -> None:
    target = world.load("target", "number = 5\nclass Class:\n    value = 6")
    world.declare(
        {"id": "p", "target": "target:number", "action": "wrap", "using": "impl:add_one"},
        {"id": "q", "target": "target:Class.value", "action": "wrap", "using": "impl:add_one"},
    )
    assert world.reason("p").startswith("target:number is a int, which is not called; action 'wrap' needs a function")
    assert (world.state("p"), world.state("q"), target.number, target.Class.value) == ("failed", "failed", 5, 6)


@pytest.mark.skipif(sys.version_info >= (3, 14), reason="from Python 3.14 it is bound to the instance")
@pytest.mark.filterwarnings("ignore::FutureWarning:functools", "ignore:functools.partial will be:FutureWarning")
def test_a_partial_in_a_class_is_not_bound_to_the_instance(world: World) -> None:  # case 16
    target = world.load("target", "import functools\nclass Class:\n    part = functools.partial(lambda *a: len(a), 0)")
    assert target.Class().part() == 1
    world.wrap("target:Class.part")
    assert target.Class().part() == 2
    assert target.Class().part("one more") == 3


def test_init_subclass_is_wrapped_for_classes_to_come(world: World) -> None:  # case 12
    world.write(
        "noting",
        """
        def factory(original):
            def stand_in(cls, **options):
                original(cls, **options)
                cls.noted = True
            return stand_in
        """,
    )
    target = world.load("target", TARGET)
    before = entries(target.Class)
    world.wrap("target:Class.__init_subclass__", "noting:factory")

    class New(target.Class, key=1):  # type: ignore[misc]
        pass

    assert (New.options, New.noted) == ({"key": 1}, True)
    world.engine.revert("p")
    assert entries(target.Class) == before

    class Newer(target.Class, key=2):  # type: ignore[misc]
        pass

    assert (Newer.options, hasattr(Newer, "noted")) == ({"key": 2}, False)


def test_new_is_wrapped_in_place_so_that_the_class_stays_what_it_was(world: World) -> None:  # case 12
    world.write(
        "dropping",
        """
        def factory(original):
            def stand_in(cls, *args, blocking=False, **kwargs):
                return original(cls, *args, **kwargs)
            return stand_in
        """,
    )
    target = world.load("target", TARGET.replace("def __new__(cls, *args)", "def __new__(cls, a=0)"))
    with pytest.raises(TypeError):
        target.Class.__new__(target.Class, blocking=True)
    kept = target.Class
    raw = vars(kept)["__new__"]
    world.wrap("target:Class.__new__", "dropping:factory")
    assert type(target.Class.__new__(target.Below, blocking=True)) is target.Below
    assert type(vars(kept)["__new__"]) is staticmethod
    assert target.Class is kept and isinstance(target.Below(), kept)
    world.engine.revert("p")
    assert vars(kept)["__new__"] is raw


def test_new_that_is_inherited_from_object_is_refused(world: World) -> None:
    target = world.load("target", "class Class:\n    def __init__(self, a): self.a = a")
    status = world.wrap("target:Class.__new__")
    assert status.state == "failed"
    assert "target:Class.__new__ is inherited from object, and Python cannot undo" in status.reason
    assert target.Class(1).a == 1


def test_a_replaced_class_answers_isinstance_pickling_and_hints(world: World) -> None:  # case 13
    target = world.load(
        "target", "class Class:\n    def f(self): return 1\nupstream = Class\ndef g(a: 'Class | None'): pass"
    )
    world.write(
        "replacing",
        """
        import target
        class Meta(type):
            def __instancecheck__(cls, instance):
                return type(instance) is target.upstream or super().__instancecheck__(instance)
        class Class(target.upstream, metaclass=Meta):
            def __init__(self, extra=None): self.extra = extra
            def f(self): return 2
        """,
    )
    before = target.Class()
    world.declare({"id": "p", "target": "target:Class", "action": "replace", "using": "replacing:Class"})
    after = target.Class(extra=5)
    assert isinstance(before, target.Class) and isinstance(after, target.Class) and isinstance(after, target.upstream)

    class Below(target.Class):  # type: ignore[misc]
        pass

    assert Below().f() == after.f() == 2
    assert pickle.loads(pickle.dumps(after)).extra == copy.deepcopy(after).extra == copy.copy(after).extra == 5
    assert str(inspect.signature(target.Class)) == "(extra=None)"
    assert target.Class | None == typing.Optional[target.Class]  # noqa: UP045
    assert typing.get_type_hints(target.g)["a"] == typing.Optional[target.Class]  # noqa: UP045
    world.engine.revert("p")
    assert target.Class is target.upstream


def test_a_class_that_is_replaced_by_its_name_still_pickles_old_objects(world: World) -> None:  # case 13
    target = world.load("target", "class Class: pass")
    world.write("replacing", "import target\nclass Class(target.Class): pass")
    old = pickle.dumps(target.Class())
    world.declare({"id": "p", "target": "target:Class", "action": "replace", "using": "replacing:Class"})
    assert type(pickle.loads(old)) is target.Class
    assert type(pickle.loads(pickle.dumps(target.Class()))) is target.Class


# --- whose function it is that stands in ---------------------------------------------------------------------------


def test_a_function_of_the_implementations_module_is_not_changed_by_standing_in(world: World) -> None:
    world.write(
        "shared",
        """
        def seven(*args):
            return 7
        def factory(original):
            return seven
        """,
    )
    shared = world.load("shared")
    target = world.load("target", "def f(): return 1\ndef g(): return 2")
    world.declare(
        {"id": "p", "target": "target:f", "action": "wrap", "using": "shared:factory"},
        {"id": "q", "target": "target:g", "action": "wrap", "using": "shared:factory"},
    )
    for _ in range(3):
        assert (target.f(), target.g(), target.f is target.g) == (7, 7, False)
        assert (shared.seven(), shared.seven.__name__, vars(shared.seven)) == (7, "seven", {})
        world.engine.revert("p", "q")
        assert (target.f(), target.g(), shared.seven()) == (1, 2, 7)
        world.engine.apply("p", "q")


def test_what_upstream_decorated_can_be_undecorated(world: World) -> None:
    world.write("undecorating", "def factory(original):\n    return original.__wrapped__")
    target = world.load("target", "import functools\n@functools.lru_cache\ndef f(a): return [a]")
    upstream = target.f
    inner = upstream.__wrapped__
    world.wrap("target:f", "undecorating:factory")
    assert target.f(1) is not target.f(1)
    assert inspect.unwrap(target.f) is not None
    world.engine.revert("p")
    assert target.f is upstream
    assert target.f(1) == [1] and target.f(1) is target.f(1)
    assert inner(1) == [1]
    assert not hasattr(inner, "__wrapped__")


def test_a_factory_that_returns_what_it_returned_before_acts_again_or_says_why_not(world: World) -> None:
    world.write(
        "remembering",
        """
        import functools
        @functools.lru_cache
        def factory(original):
            def stand_in(): return original() + 1
            return stand_in
        """,
    )
    target = world.load("target", "def f(): return 1")
    world.wrap("target:f", "remembering:factory")
    world.engine.revert("p")
    status = world.engine.apply("p")[0]
    assert (status.state, target.f()) == ("failed", 1)
    assert "remembering:factory returned the function that it had returned before" in status.reason


def test_two_targets_of_one_replacement_get_an_object_each(world: World) -> None:
    target = world.load("target", "def f(): return 1\ndef g(): return 1")
    replace = {"action": "replace", "using": "impl:seven"}
    world.declare({"id": "p", "target": "target:f", **replace}, {"id": "q", "target": "target:g", **replace})
    assert (target.f(), target.g(), target.f is target.g) == (7, 7, False)
    assert target.f is not sys.modules["impl"].seven


def test_a_factory_that_returns_nothing_usable_is_told_so(world: World) -> None:
    world.write("useless", "def factory(original): pass\ndef same(original): return original")
    target = world.load("target", "def f(): return 1")
    world.declare(
        {"id": "p", "target": "target:f", "action": "wrap", "using": "useless:factory"},
        {"id": "q", "target": "target:f", "action": "wrap", "using": "useless:same"},
        {"id": "r", "target": "target:f", "action": "wrap", "using": "useless:absent"},
    )
    p, q, r = world.engine.status("p", "q", "r")
    assert (p.state, q.state, r.state) == ("failed", "skipped", "failed")
    assert p.reason == "useless:factory returned None for target:f; expected a function or a class"
    assert q.reason == "not needed: useless:same left target:f as it is"
    assert r.reason == "implementation missing: useless has no 'absent' (wanted useless:absent)"
    assert target.f() == 1


# --- inject, alias, set --------------------------------------------------------------------------------------------


def test_an_injected_name_appears_and_goes_again(world: World) -> None:
    target = world.load("target", "__all__ = ['f']\ndef f(): pass\nclass Class: pass")
    before, exported = dict(vars(target)), list(target.__all__)
    world.declare(
        {"id": "p", "target": "target:new", "action": "inject", "using": "impl:seven"},
        {"id": "q", "target": "target:Class.new", "action": "inject", "using": "impl:seven"},
    )
    assert (target.new(), target.Class().new(), target.__all__) == (7, 7, ["f", "new"])
    assert (target.new.__module__, target.Class.new.__qualname__) == ("target", "Class.new")
    world.engine.revert("p", "q")
    assert (dict(vars(target)), target.__all__) == (before, exported)


def test_what_is_there_already_is_not_injected(world: World) -> None:  # case 4
    target = world.load("target", "def f(): return 1")
    status = world.declare({"id": "p", "target": "target:f", "action": "inject", "using": "impl:seven"})[0]
    assert (status.state, status.reason) == ("skipped", "not needed: target:f is there already")
    assert target.f() == 1


def test_an_alias_is_a_function_of_its_own_that_calls_the_other(world: World) -> None:
    target = world.load("target", "def f(): return 1")
    world.write("other", "def g(): return 9")
    world.declare({"id": "p", "target": "target:f", "action": "alias", "using": "other:g"})
    assert world.state() == "pending"
    assert "other" not in sys.modules
    import other

    assert (target.f(), target.f is other.g) == (9, False)
    world.engine.revert("p")
    assert target.f() == 1


def test_a_value_that_is_set_belongs_to_nobody_else(world: World) -> None:
    target = world.load("target", "options = ['a']\nnothing = None")
    raw = target.options
    world.declare(
        {"id": "p", "target": "target:options", "action": "set", "value": ["b"]},
        {"id": "q", "target": "target:nothing", "action": "set", "value": 3},
    )
    target.options.append("c")
    assert target.nothing == 3
    world.engine.revert("p", "q")
    world.engine.apply("p")
    assert (target.options, target.nothing) == (["b"], None)
    world.engine.revert("p")
    assert target.options is raw


# --- items, elements, the environment ------------------------------------------------------------------------------


def test_items_and_elements_are_set_and_discarded_and_come_back(world: World) -> None:
    target = world.load("target", "table = {'a': 1, 'b': 2}\nlisted = ['x', 'y', 'z']\nchosen = {'x'}")
    world.declare(
        {"id": "set", "target": "target:table", "action": "set_item", "key": "a", "value": 10},
        {"id": "add", "target": "target:table", "action": "set_item", "key": "c", "value": 30},
        {"id": "drop", "target": "target:table", "action": "discard_item", "key": "b"},
        {"id": "from-list", "target": "target:listed", "action": "discard_item", "key": "y"},
        {"id": "from-set", "target": "target:chosen", "action": "discard_item", "key": "x"},
        {"id": "absent", "target": "target:chosen", "action": "discard_item", "key": "q"},
    )
    assert (target.table, target.listed, target.chosen) == ({"a": 10, "c": 30}, ["x", "z"], set())
    assert world.reason("absent") == "not needed: target:chosen['q'] is not there"
    world.engine.revert("set", "add", "drop", "from-list", "from-set")
    assert (target.table, target.listed, target.chosen) == ({"a": 1, "b": 2}, ["x", "y", "z"], {"x"})


def test_what_is_no_container_is_told_so(world: World) -> None:
    world.load("target", "number = 5\nlisted = []")
    world.declare(
        {"id": "p", "target": "target:number", "action": "set_item", "key": "a", "value": 1},
        {"id": "q", "target": "target:listed", "action": "set_item", "key": "a", "value": 1},
        {"id": "r", "target": "target:number", "action": "discard_item", "key": "a"},
        {"id": "s", "target": "target:absent", "action": "discard_item", "key": "a"},
    )
    assert [status.state for status in world.engine.status()] == ["failed"] * 4
    assert world.reason("p") == "target:number is a int; action 'set_item' needs a mapping or a list"
    assert world.reason("s").startswith("target missing: target has no 'absent'")


def test_a_variable_that_the_user_has_set_stays(world: World, monkeypatch: pytest.MonkeyPatch) -> None:  # case 7
    monkeypatch.setenv("STANDIN_THREADS", "4")
    monkeypatch.delenv("STANDIN_OTHER", raising=False)
    import os

    world.declare(
        {"id": "p", "action": "env", "key": "STANDIN_THREADS", "value": "1"},
        {"id": "q", "action": "env", "key": "STANDIN_OTHER", "value": "1"},
    )
    assert (os.environ["STANDIN_THREADS"], os.environ["STANDIN_OTHER"]) == ("4", "1")
    assert world.reason("p") == "not needed: STANDIN_THREADS is set already, to '4'"
    world.engine.revert("p", "q")
    assert os.environ["STANDIN_THREADS"] == "4" and "STANDIN_OTHER" not in os.environ


def test_modes_of_the_environment(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    import os

    monkeypatch.setenv("STANDIN_PATH", f"one{os.pathsep}two")
    monkeypatch.setenv("STANDIN_SET", "user's")
    monkeypatch.setenv("STANDIN_EMPTY", "")
    env = {"action": "env"}
    world.declare(
        {"id": "p", **env, "key": "STANDIN_PATH", "value": "zero", "mode": "prepend"},
        {"id": "q", **env, "key": "STANDIN_PATH", "value": "two", "mode": "prepend"},
        {"id": "r", **env, "key": "STANDIN_SET", "value": "ours", "mode": "set"},
        {"id": "s", **env, "key": "STANDIN_EMPTY", "value": "a", "mode": "prepend"},
    )
    assert os.environ["STANDIN_PATH"] == f"zero{os.pathsep}one{os.pathsep}two"
    assert (os.environ["STANDIN_SET"], os.environ["STANDIN_EMPTY"]) == ("ours", "a")
    assert "has 'two' already" in world.reason("q")
    world.engine.revert("p", "r", "s")
    assert (os.environ["STANDIN_PATH"], os.environ["STANDIN_SET"]) == (f"one{os.pathsep}two", "user's")
    assert os.environ["STANDIN_EMPTY"] == ""


# --- on top of what others have wrapped ----------------------------------------------------------------------------


@pytest.mark.parametrize("qualname", ["f", "Class.method", "Class.static", "Class.class_method", "Class.prop"])
def test_what_wrapt_has_wrapped_is_wrapped_again(world: World, qualname: str) -> None:  # case 18
    wrapt = pytest.importorskip("wrapt")
    target = world.load("target", TARGET)
    seen = []

    def theirs(wrapped: Any, instance: Any, args: Any, kwargs: Any) -> Any:
        seen.append(instance)
        return wrapped(*args, **kwargs)

    owner, name = owner_of(target, qualname), qualname.rpartition(".")[2]
    if qualname == "Class.prop":
        pytest.skip("wrapt wraps no property")
    wrapt.wrap_function_wrapper("target", qualname, theirs)
    foreign = vars(owner)[name]
    CALLS[qualname](target)
    kind = type(seen.pop())
    world.wrap(f"target:{qualname}")
    assert world.state() == "applied", world.reason()
    assert CALLS[qualname](target) == 2
    assert type(seen.pop()) is kind
    world.engine.revert("p")
    assert vars(owner)[name] is foreign
    assert CALLS[qualname](target) == 1


def test_twins_that_have_drifted_apart_are_left_alone(world: World) -> None:
    target = world.load("target", "def f(): return 1\ng = f\ndef h(): return 2")
    target.g = target.h
    status = world.wrap("target:f", also_bind=["target:g"])
    assert status.state == "failed"
    assert "target:g holds another object than target:f" in status.reason
    assert (target.f(), target.g(), world.layers) == (1, 2, 0)


def test_twins_hold_one_object_all_the_time(world: World) -> None:
    target = world.load("target", "def f(): return 1\ng = f\nclass Class: pass\nClass.f = staticmethod(f)")
    world.wrap("target:f", also_bind=["target:g", "target:f"])
    assert target.f is target.g and target.f() == 2
    assert world.layers == 2
    world.engine.revert("p")
    assert target.f is target.g and target.f() == 1


def test_attributes_of_what_is_wrapped_are_reached_through_the_stand_in(world: World) -> None:  # case 16
    target = world.load("target", TARGET)
    world.wrap("target:cached")
    assert (target.cached(1), target.cached(1), target.cached.cache_info().hits) == (2, 2, 1)
    assert target.cached.cache_parameters()["maxsize"] == 4
    world.engine.revert("p")
    assert isinstance(target.cached, functools._lru_cache_wrapper)
