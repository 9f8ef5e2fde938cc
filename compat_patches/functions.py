"""Plain functions that stand in for other callables, and how one of them is made to hand its calls through.

What Dynamo may trace has to be a plain function: ``torch.compile`` runs straight past a wrapt proxy, without a word.
"""

from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Callable, Mapping
from types import CodeType, FunctionType
from typing import Any, cast

from .compiling import forget_function

_IDENTITY = ("__module__", "__name__", "__qualname__")
_ORIGINAL = "__compat_patches_original__"


def copy_function(function: FunctionType) -> FunctionType:
    """A function of its own identity that does the same: Dynamo registers handlers by identity."""
    copy = FunctionType(
        function.__code__,
        function.__globals__,
        function.__name__,
        function.__defaults__,
        function.__closure__,
    )
    copy.__kwdefaults__ = None if function.__kwdefaults__ is None else dict(function.__kwdefaults__)
    copy.__dict__.update(function.__dict__)
    _take_annotations(copy, function)
    copy.__doc__ = function.__doc__
    copy.__module__ = function.__module__
    copy.__qualname__ = function.__qualname__
    return copy


def take_identity(function: Any, original: Any, *, transparent: bool) -> None:
    """Give a stand-in the name, the module and the documentation of what it stands for.

    With the original's module and qualified name it is pickled by reference, and found again in the slot.

    Args:
        function: a plain function or a class that stands in for ``original``.
        original: what it stands for.
        transparent: the stand-in calls the original, so that ``__wrapped__``, the signature and the annotations are
            the original's, and so are attributes such as ``cache_clear``, which callers may rely on.
    """
    for name in _IDENTITY:
        value = getattr(original, name, None)
        if isinstance(value, str):
            setattr(function, name, value)
    if function.__doc__ is None:
        function.__doc__ = getattr(original, "__doc__", None)
    if not isinstance(function, FunctionType):
        return
    # functools.wraps copies these too, and Dynamo would then take the stand-in for what the original was marked as:
    # with _torchdynamo_orig_callable it goes past the stand-in.
    for name in [name for name in vars(function) if name.startswith("_torchdynamo_")]:
        if getattr(original, name, None) is vars(function)[name]:
            delattr(function, name)
    if not transparent:
        return
    if not hasattr(function, "__wrapped__"):
        vars(function)["__wrapped__"] = original
    # Also where it has some: typing.get_type_hints reads them among the original's globals.
    _take_annotations(function, original)
    for name in dir(original):
        if not name.startswith("_") and not hasattr(function, name) and hasattr(original, name):
            setattr(function, name, getattr(original, name))


def _take_annotations(function: FunctionType, original: Any) -> None:
    annotate = getattr(original, "__annotate__", None)
    if annotate is not None:
        # From Python 3.14 to read them is to evaluate them, and names behind `if TYPE_CHECKING` are not there.
        function.__annotate__ = annotate  # type: ignore[attr-defined]  # from Python 3.14
    else:
        function.__annotations__ = dict(getattr(original, "__annotations__", None) or {})
    parameters = getattr(original, "__type_params__", None)
    if isinstance(parameters, tuple) and hasattr(function, "__type_params__"):
        function.__type_params__ = parameters


def forwarder(original: Callable[..., Any]) -> FunctionType:
    """A plain function that calls ``original``."""

    def forward(*args: Any, **kwargs: Any) -> Any:
        return original(*args, **kwargs)

    return cast(FunctionType, forward)


def bound_by(descriptor: Any, owner: type, name: str) -> FunctionType:
    """A plain function that calls what a descriptor in a class binds to the first argument, an instance."""

    def call(instance: Any, /, *args: Any, **kwargs: Any) -> Any:
        return descriptor.__get__(instance, type(instance))(*args, **kwargs)

    return _named(call, descriptor, owner, name)


def bound_to_class_by(descriptor: Any, owner: type, name: str) -> FunctionType:
    """A plain function that calls what a descriptor in a class binds to the first argument, a class."""

    def call(cls: type, /, *args: Any, **kwargs: Any) -> Any:
        return descriptor.__get__(None, cls)(*args, **kwargs)

    return _named(call, descriptor, owner, name)


def bound_weakly(descriptor: Any, reference: Callable[[], Any], title: str) -> FunctionType:
    """A plain function that calls what a descriptor binds to an instance, and does not keep the instance alive."""

    def call(*args: Any, **kwargs: Any) -> Any:
        instance = reference()
        if instance is None:
            raise ReferenceError(f"{title} was called after the object that it belonged to was gone")
        return descriptor.__get__(instance, type(instance))(*args, **kwargs)

    take_identity(call, getattr(descriptor, "__func__", descriptor), transparent=True)
    return cast(FunctionType, call)


def getter_of(descriptor: Any, owner: type, name: str) -> FunctionType:
    """A plain function that reads a data descriptor of C."""

    def get(instance: Any, /) -> Any:
        return descriptor.__get__(instance, type(instance))

    return _named(get, descriptor, owner, name)


def _named(function: Any, descriptor: Any, owner: type, name: str) -> FunctionType:
    function.__module__, function.__name__ = owner.__module__, name
    function.__qualname__, function.__doc__ = f"{owner.__qualname__}.{name}", None
    take_identity(function, descriptor, transparent=True)
    return function  # type: ignore[no-any-return]  # a function; its type was loosened to name it


def is_quiet(function: FunctionType) -> bool:
    """Whether a :class:`Quieting` has made it hand its calls through."""
    return _ORIGINAL in (function.__kwdefaults__ or {})


def is_somebodys(function: FunctionType, original: Any) -> bool:
    """Whether a function was there before it was made to stand in: one of a module's, or one within the original."""
    if function.__globals__.get(function.__name__) is function:
        return True
    seen: set[int] = set()
    while original is not None and id(original) not in seen:
        if original is function:
            return True
        seen.add(id(original))
        original = getattr(original, "__dict__", {}).get("__wrapped__")
    return False


def do_nothing(answer: Any) -> FunctionType:
    """A plain function that takes anything, does nothing and returns ``answer``."""

    def nothing(*args: Any, **kwargs: Any) -> Any:
        return answer

    return cast(FunctionType, nothing)


class Quieting:
    """Makes one function hand its calls through to what it stands for, and takes that back.

    The code of the function object itself is exchanged, as whoever put something on top of it, or copied it by value,
    holds this very object. The function stays a plain function, and while it is not quiet it pays nothing.
    """

    __slots__ = ("_code", "_function", "_keyword_defaults", "_original")

    def __init__(self, function: FunctionType, original: Callable[..., Any]) -> None:
        self._function = function
        self._original = original
        self._code = function.__code__
        self._keyword_defaults = function.__kwdefaults__

    @property
    def quiet(self) -> bool:
        return self._function.__code__ is not self._code

    def hand_through(self) -> None:
        if self.quiet:
            return
        # First what the new code needs, which the old one does not see; then the code, in one store.
        defaults: Mapping[str, Any] = self._keyword_defaults or {}
        self._function.__kwdefaults__ = {**defaults, _ORIGINAL: self._original}
        _exchange_code(self._function, _hand_through_code(self._code, _common_kind(self._code, self._original)))

    def act(self) -> None:
        if not self.quiet:
            return
        _exchange_code(self._function, self._code)
        self._function.__kwdefaults__ = self._keyword_defaults


def _exchange_code(function: FunctionType, code: CodeType) -> None:
    _set_code(function, code)
    forget_function(function)


def _set_code(function: FunctionType, code: CodeType) -> None:
    if _kind(function.__code__) == _kind(code):
        function.__code__ = code
        return
    with warnings.catch_warnings():
        # Python 3.13 deprecates what can be told only by the caller: a stand-in of another kind than the original.
        warnings.simplefilter("ignore", DeprecationWarning)
        function.__code__ = code


def _kind(code: CodeType) -> int:
    return code.co_flags & (inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR)


def _common_kind(code: CodeType, original: Any) -> int:
    """What the code that hands through is to be: a coroutine function for one, so that callers can tell it still."""
    kind = _kind(code)
    if kind == inspect.CO_ASYNC_GENERATOR or (isinstance(original, FunctionType) and _kind(original.__code__) != kind):
        return 0  # A call answers with whatever the original's call does.
    return kind


_CALLS = {
    0: ("def", "{}"),
    inspect.CO_GENERATOR: ("def", "(yield from {})"),
    inspect.CO_COROUTINE: ("async def", "await {}"),
}


@functools.lru_cache(maxsize=256)
def _hand_through_code(code: CodeType, kind: int) -> CodeType:
    """Code that calls the original, and has as many free variables as ``code``, as the closure stays."""
    free = [f"free_{number}" for number in range(len(code.co_freevars))]
    define, call = _CALLS[kind]
    # The line behind the return is never run; it is there to make the names free variables.
    text = (
        f"def outer({', '.join(free)}):\n"
        f"    {define} inner(*args, {_ORIGINAL}, **kwargs):\n"
        f"        return {call.format(f'{_ORIGINAL}(*args, **kwargs)')}\n"
        f"        {', '.join(free) or 'None'}\n"
        f"    return inner\n"
    )
    namespace: dict[str, Any] = {}
    exec(compile(text, code.co_filename, "exec", dont_inherit=True), namespace)
    inner: CodeType = namespace["outer"](*free).__code__
    return inner.replace(co_name=code.co_name, co_firstlineno=code.co_firstlineno)
