"""What code does with event classes, with each event patch on and off: in annotations, isinstance, subclasses, pickles.

Each use is of a kind that stands in real projects. It gets the name of an event class, and the class.
"""

from __future__ import annotations

import copy
import dataclasses
import functools
import inspect
import pickle
import sys
import typing
from collections.abc import Callable, Iterator

import pytest

torch = pytest.importorskip("torch")

import compat_patches  # noqa: E402  # behind the importorskip on purpose

# By the release: the signature is the patched one where torch was imported under the patches.
RELEASE = tuple(int(part) for part in torch.__version__.split("+")[0].split(".")[:2])
XPU_EVENT = "xpu-event-external" if RELEASE >= (2, 15) else "xpu-event-blocking"
PATCHES = {
    XPU_EVENT: "torch.xpu.Event",
    "torch-cuda-on-xpu": "torch.cuda.Event",
    "cuda-event-on-accelerator": "torch.cuda.Event",
    "cpu-accelerator": "torch.Event",
}


def named(name: str) -> type:
    """Look a class up by its name, as code does each time that it is executed."""
    found: type = functools.reduce(getattr, name.split(".")[1:], torch)
    return found


def evaluated(text: str, name: str) -> object:
    return eval(text.replace("EVENT", name), {"torch": torch, "typing": typing})


def use_in_a_union(name: str, cls: type) -> None:
    assert typing.get_args(evaluated("EVENT | None", name)) == (cls, type(None))


def use_in_a_union_from_the_right(name: str, cls: type) -> None:
    assert typing.get_args(evaluated("None | EVENT", name)) == (type(None), cls)


def use_in_a_union_of_two_events(name: str, cls: type) -> None:
    assert cls in typing.get_args(evaluated("EVENT | int | str", name))


def use_in_optional(name: str, cls: type) -> None:
    assert typing.get_args(evaluated("typing.Optional[EVENT]", name)) == (cls, type(None))


def use_in_list_and_dict(name: str, cls: type) -> None:
    assert typing.get_args(evaluated("list[EVENT]", name)) == (cls,)
    assert typing.get_args(evaluated("dict[str, EVENT]", name)) == (str, cls)


def use_in_callable(name: str, cls: type) -> None:
    assert typing.get_args(evaluated("typing.Callable[[EVENT], None]", name)) == ([cls], type(None))


def use_in_type(name: str, cls: type) -> None:
    assert typing.get_args(evaluated("type[EVENT]", name)) == (cls,)


def use_in_annotations_of_a_function(name: str, cls: type) -> None:
    names = {"torch": torch}
    exec(f"def wait(event: '{name} | None' = None) -> '{name}': ...", names)
    assert typing.get_type_hints(names["wait"])["return"] is cls


def use_in_annotations_of_a_dataclass(name: str, cls: type) -> None:
    made = dataclasses.make_dataclass("Copy", [("event", cls | None, None)])
    assert made().event is None
    assert typing.get_args(typing.get_type_hints(made)["event"])[0] is cls


def use_as_default_factory(name: str, cls: type) -> None:
    made = dataclasses.make_dataclass("Copy", [("event", cls, dataclasses.field(default_factory=cls))])
    assert dataclasses.fields(made)[0].default_factory is cls


def use_as_a_class_attribute(name: str, cls: type) -> None:
    class Interface:
        Event = cls

    assert Interface.Event is cls
    assert Interface().Event is cls  # a function would have been bound


def use_as_an_argument_of_partial(name: str, cls: type) -> None:
    assert functools.partial(cls, enable_timing=True).func is cls


def use_isinstance_of_something_else(name: str, cls: type) -> None:
    assert not isinstance(3, cls)
    assert not isinstance(None, (cls, int))


def use_isinstance_of_an_instance(name: str, cls: type) -> None:
    instance = instance_of(cls)
    assert isinstance(instance, cls)
    assert isinstance(instance, (int, cls))
    assert isinstance(instance, cls | None)


def use_issubclass(name: str, cls: type) -> None:
    assert issubclass(cls, cls)
    assert not issubclass(int, cls)


def use_subclass(name: str, cls: type) -> None:
    class TimedEvent(cls):
        def label(self) -> str:
            return "timed"

    assert issubclass(TimedEvent, cls)
    assert TimedEvent.label(instance_of(TimedEvent)) == "timed"
    assert isinstance(instance_of(TimedEvent), cls)
    assert not isinstance(instance_of(TimedEvent), type("Other", (cls,), {}))


def use_subclass_with_a_constructor(name: str, cls: type) -> None:
    class TimedEvent(cls):
        def __new__(cls, *args: object, **kwargs: object) -> object:
            return super().__new__(cls, *args, **kwargs)

    assert TimedEvent.__mro__[1] is cls


def use_singledispatch(name: str, cls: type) -> None:
    @functools.singledispatch
    def describe(value: object) -> str:
        return "something"

    describe.register(cls, lambda value: "event")
    assert describe(instance_of(cls)) == "event"
    assert describe(3) == "something"


def use_match(name: str, cls: type) -> None:
    match instance_of(cls):
        case cls():
            return
    raise AssertionError("an event does not match its class")


def use_copy_of_the_class(name: str, cls: type) -> None:
    assert copy.copy(cls) is cls
    assert copy.deepcopy({"event": cls})["event"] is cls


def use_pickle_of_the_class(name: str, cls: type) -> None:
    assert pickle.loads(pickle.dumps(cls)) is cls


def use_as_a_key(name: str, cls: type) -> None:
    assert {cls: 1}[named(name)] == 1


def use_of_its_name(name: str, cls: type) -> None:
    assert cls.__name__ == "Event"
    assert vars(sys.modules[cls.__module__])[cls.__qualname__] is cls


def use_of_its_documentation(name: str, cls: type) -> None:
    assert inspect.getdoc(cls)


def use_of_its_signature(name: str, cls: type) -> None:
    if name != "torch.Event":  # a C type, which has no signature
        assert "enable_timing" in inspect.signature(cls).parameters


def use_of_its_methods(name: str, cls: type) -> None:
    assert all(callable(getattr(cls, method)) for method in ("record", "wait", "query", "elapsed_time", "synchronize"))


def use_as_a_generic_parameter(name: str, cls: type) -> None:
    variable = typing.TypeVar("variable", bound=cls)
    assert variable.__bound__ is cls


def use_in_abstract_base_class(name: str, cls: type) -> None:
    class Waits(typing.Protocol):
        def wait(self, stream: object = None) -> None: ...

    assert hasattr(cls, "wait")


USES = {name.removeprefix("use_"): use for name, use in list(globals().items()) if name.startswith("use_")}


def instance_of(cls: type) -> object:
    """An instance; where there is no device for one, past the constructor of the base class that says so."""
    try:
        return cls()
    except (RuntimeError, AssertionError):
        return object.__new__(cls)


def test_there_are_at_least_twenty_uses() -> None:
    assert len(USES) >= 20


@pytest.fixture(params=PATCHES)
def patch(request: pytest.FixtureRequest) -> Iterator[str]:
    """Each event patch, off to begin with; the one for XPUs on the stand-in."""
    if request.param == "torch-cuda-on-xpu":
        request.getfixturevalue("standin_xpu")
    with compat_patches.reverted(request.param):
        yield request.param


@pytest.fixture
def on(patch: str) -> Iterator[str]:
    """Each event patch, on."""
    with compat_patches.applied(patch, force=True) as (status,):
        assert status.state == "applied", status.reason
        yield patch


@pytest.mark.parametrize("use", USES.values(), ids=USES)
def test_with_the_patch_off(patch: str, use: Callable[[str, type], None]) -> None:
    use(PATCHES[patch], named(PATCHES[patch]))


@pytest.mark.parametrize("use", USES.values(), ids=USES)
def test_with_the_patch_on(on: str, use: Callable[[str, type], None]) -> None:
    use(PATCHES[on], named(PATCHES[on]))


def test_isinstance_says_yes_to_what_was_made_before_and_goes_on_to_after_the_end(patch: str) -> None:
    name = PATCHES[patch]
    # On an XPU nothing could have made a torch.cuda.Event; what there was before are events of torch.xpu.
    before = instance_of(named("torch.xpu.Event" if patch == "torch-cuda-on-xpu" else name))
    with compat_patches.applied(patch, force=True):
        assert isinstance(before, named(name))
        during = instance_of(named(name))
    if patch == "torch-cuda-on-xpu":
        assert isinstance(during, torch.xpu.Event)
    elif patch == "cuda-event-on-accelerator":
        assert isinstance(during, torch.Event)
    else:
        assert isinstance(during, named(name))


def test_an_event_of_the_accelerator_is_a_torch_event_and_so_counts_as_a_cuda_event() -> None:
    with compat_patches.applied("cuda-event-on-accelerator"):
        made = torch.cuda.Event(True, True)
        assert isinstance(made, torch.Event)
        assert isinstance(torch.Event("cpu"), torch.cuda.Event)
        for refused in ("interprocess", "external"):
            with pytest.raises(NotImplementedError, match=refused):
                torch.cuda.Event(**{refused: True})
        assert torch.cuda.Event is torch.cuda.streams.Event
