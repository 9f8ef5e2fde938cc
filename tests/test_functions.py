"""Functions that stand in for others, and how they are made to hand their calls through."""

from __future__ import annotations

import asyncio
import functools
import inspect
import pickle
import warnings
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest

from compat_patches.functions import Quieting, copy_function, do_nothing, forwarder, take_identity


def original(a: int, b: str = "x", *, c: float = 1.0) -> int:
    """What the original says of itself."""
    return a


def closed_over(number: int) -> Callable[..., tuple[Any, ...]]:
    other = number + 1

    def stand_in(a: int = 1, /, *rest: int, k: int = 3, **more: int) -> tuple[Any, ...]:
        return (number, other, a, rest, k, more)

    return stand_in


def test_a_copy_is_another_function_that_does_the_same() -> None:
    function = closed_over(5)
    function.mark = "kept"  # type: ignore[attr-defined]
    copy = copy_function(function)
    assert copy is not function
    assert copy(2, 3, k=4, z=5) == function(2, 3, k=4, z=5) == (5, 6, 2, (3,), 4, {"z": 5})
    assert copy() == function()
    for name in ("__name__", "__qualname__", "__module__", "__doc__", "__annotations__", "__defaults__", "mark"):
        assert getattr(copy, name) == getattr(function, name)
    assert inspect.signature(copy) == inspect.signature(function)


def test_what_is_done_to_a_copy_is_not_done_to_the_function() -> None:
    function = closed_over(5)
    copy = copy_function(function)
    copy.__kwdefaults__["k"] = 9
    copy.__annotations__["a"] = str
    copy.mark = 1  # type: ignore[attr-defined]
    assert function()[4] == 3
    assert function.__annotations__["a"] == "int"
    assert not hasattr(function, "mark")


def test_a_transparent_stand_in_has_the_originals_identity() -> None:
    stand_in = forwarder(original)
    take_identity(stand_in, original, transparent=True)
    assert (stand_in.__name__, stand_in.__module__, stand_in.__doc__) == ("original", __name__, original.__doc__)
    assert stand_in.__wrapped__ is original  # type: ignore[attr-defined]
    assert inspect.signature(stand_in) == inspect.signature(original)
    assert stand_in.__annotations__ == original.__annotations__


def test_a_stand_in_that_does_not_call_the_original_keeps_its_own_signature() -> None:
    def replacement(x: int) -> int:
        """Its own words."""
        return x

    take_identity(replacement, original, transparent=False)
    assert (replacement.__name__, replacement.__qualname__) == ("original", "original")
    assert str(inspect.signature(replacement)) == "(x: 'int') -> 'int'"
    assert replacement.__doc__ == "Its own words."
    assert not hasattr(replacement, "__wrapped__")


def test_a_stand_in_is_pickled_by_reference_to_what_it_stands_for(monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in = forwarder(original)
    take_identity(stand_in, original, transparent=True)
    monkeypatch.setitem(globals(), "original", stand_in)
    assert pickle.loads(pickle.dumps(stand_in)) is stand_in


def test_attributes_that_callers_rely_on_are_the_originals() -> None:
    cached = functools.lru_cache(original)
    stand_in = forwarder(cached)
    take_identity(stand_in, cached, transparent=True)
    assert stand_in(1) == stand_in(1) == 1
    assert stand_in.cache_info().hits == 1  # type: ignore[attr-defined]
    stand_in.cache_clear()  # type: ignore[attr-defined]
    assert cached.cache_info().hits == 0


def test_marks_of_dynamo_are_not_taken_over_from_the_original() -> None:
    marked = copy_function(original)
    marked._torchdynamo_orig_callable = original  # type: ignore[attr-defined]

    @functools.wraps(marked)
    def stand_in(*args: Any, **kwargs: Any) -> Any:
        return marked(*args, **kwargs)

    stand_in._torchdynamo_disable = True  # type: ignore[attr-defined]
    take_identity(stand_in, marked, transparent=True)
    assert not hasattr(stand_in, "_torchdynamo_orig_callable")
    assert stand_in._torchdynamo_disable  # Its author's own mark stays.
    assert hasattr(marked, "_torchdynamo_orig_callable")


def test_doing_nothing_takes_anything() -> None:
    nothing = do_nothing(7)
    assert (nothing(), nothing(1, 2, a=3)) == (7, 7)


# --- quieting ------------------------------------------------------------------------------------------------------


def original_for(number: int) -> Callable[..., Any]:
    return lambda *args, **kwargs: (args, kwargs)


STAND_INS: dict[str, Callable[[], Callable[..., Any]]] = {
    "no closure": lambda: lambda *args, **kwargs: "patched",
    "a closure of two": lambda: closed_over(1),  # type: ignore[dict-item, return-value]
    "defaults": lambda: lambda a=1, b=2, *, c=3: "patched",
    "positional only": lambda: eval("lambda a, /, b=2: 'patched'"),
    "the original's name as its own": lambda: eval("lambda __compat_patches_original__=1: 'patched'"),
}


@pytest.mark.parametrize("kind", STAND_INS)
def test_a_quiet_function_hands_every_call_through_and_comes_back_whole(kind: str) -> None:
    stand_in = STAND_INS[kind]()
    code, defaults, keywords = stand_in.__code__, stand_in.__defaults__, stand_in.__kwdefaults__
    quieting = Quieting(stand_in, original_for(1))  # type: ignore[arg-type]
    for _ in range(2):
        quieting.hand_through()
    assert quieting.quiet
    assert stand_in() == ((), {})
    assert stand_in(1, 2, 3, k=4, a=5, self=6) == ((1, 2, 3), {"k": 4, "a": 5, "self": 6})
    for _ in range(2):
        quieting.act()
    assert not quieting.quiet
    assert (stand_in.__code__, stand_in.__defaults__, stand_in.__kwdefaults__) == (code, defaults, keywords)


def test_a_quiet_function_reports_errors_of_the_original() -> None:
    def broken() -> None:
        raise ValueError("the original's own")

    stand_in = closed_over(1)
    Quieting(stand_in, broken).hand_through()  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="the original's own"):
        stand_in()


def count(to: int) -> Iterator[int]:
    got = 0
    for number in range(to):
        got += (yield number + got) or 0


async def later(value: int) -> int:
    await asyncio.sleep(0)
    return value


async def count_later(to: int) -> AsyncIterator[int]:
    for number in range(to):
        await asyncio.sleep(0)
        yield number


def generator_stand_in(*args: Any) -> Iterator[int]:
    yield -1


async def coroutine_stand_in(*args: Any) -> int:
    return -1


async def async_generator_stand_in(*args: Any) -> AsyncIterator[int]:
    yield -1


def plain_stand_in(*args: Any) -> int:
    return -1


def quiet(stand_in: Callable[..., Any], instead: Callable[..., Any]) -> Callable[..., Any]:
    """A quiet copy; the interpreter warns (3.13) where code of one kind becomes code of another."""
    copy = copy_function(stand_in)  # type: ignore[arg-type]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        quieting = Quieting(copy, instead)
        quieting.hand_through()
        quieting.act()
        quieting.hand_through()
    return copy


def test_a_quiet_generator_function_is_the_original_generator() -> None:
    function = quiet(generator_stand_in, count)
    running = function(3)
    assert (next(running), running.send(10), list(running)) == (0, 11, [12])
    assert inspect.isgeneratorfunction(function)


def test_a_quiet_coroutine_function_is_the_original_coroutine() -> None:
    function = quiet(coroutine_stand_in, later)
    assert asyncio.run(function(5)) == 5
    assert inspect.iscoroutinefunction(function)


def test_a_quiet_async_generator_function_is_the_original_one() -> None:
    async def collect() -> list[int]:
        return [number async for number in quiet(async_generator_stand_in, count_later)(3)]

    assert asyncio.run(collect()) == [0, 1, 2]


@pytest.mark.parametrize("stand_in", [generator_stand_in, coroutine_stand_in, async_generator_stand_in, plain_stand_in])
def test_a_quiet_function_of_another_kind_than_the_original_answers_as_the_original(
    stand_in: Callable[..., Any],
) -> None:
    assert quiet(stand_in, original)(5) == 5
    assert list(quiet(stand_in, count)(2)) == [0, 1]
    assert asyncio.run(quiet(stand_in, later)(5)) == 5


def test_a_generator_that_runs_is_not_disturbed_by_its_function_going_quiet() -> None:
    function = copy_function(count)  # type: ignore[arg-type]
    running = function(3)
    next(running)
    quieting = Quieting(function, plain_stand_in)
    quieting.hand_through()
    assert list(running) == [1, 2]
    assert function(3) == -1
