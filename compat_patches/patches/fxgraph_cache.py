"""FX graph cache: a cache key that cannot be pickled bypasses the cache, as it does in later releases of torch."""

from __future__ import annotations

import functools
import pickle
from collections.abc import Callable
from typing import Any, NoReturn

Dumps = Callable[[Any, Any], bytes]


def bypass_on_value_error(original: Dumps) -> Dumps:
    """Let a ValueError of pickling bypass the cache, as torch 2.11 does.

    Args:
        original: ``FxGraphCachePickler.dumps``.
    """

    return _bypassing(original, ValueError)


def bypass_on_pickling_errors(original: Dumps) -> Dumps:
    """Let a ValueError and a PicklingError bypass the cache, as torch 2.11 does.

    Args:
        original: ``FxGraphCachePickler.dumps``.
    """

    return _bypassing(original, (ValueError, pickle.PicklingError))


def bypass_on_pybind11_error(original: Dumps) -> Dumps:
    """Let pybind11's "… is not pickleable." bypass the cache, as torch 2.11 does. Other RuntimeErrors go through.

    Args:
        original: ``FxGraphCachePickler.dumps``.
    """

    @functools.wraps(original)
    def dumps(self: Any, obj: Any) -> bytes:
        try:
            return original(self, obj)
        except RuntimeError as error:
            # The words of pybind11's class.h: "<pybind11_builtins… object at 0x…> is not pickleable."
            if "pybind11" in str(error) and "is not pickleable" in str(error):
                _bypass(error)
            raise

    return dumps


def _bypassing(original: Dumps, errors: type[Exception] | tuple[type[Exception], ...]) -> Dumps:
    @functools.wraps(original)
    def dumps(self: Any, obj: Any) -> bytes:
        try:
            return original(self, obj)
        except errors as error:
            _bypass(error)

    return dumps


def _bypass(error: Exception) -> NoReturn:
    """What torch 2.11 does in its own except clause, the line in the log included."""
    from torch._inductor.codecache import BypassFxGraphCache, log

    log.warning("Failed to pickle cache key", exc_info=True)
    raise BypassFxGraphCache("Failed to pickle cache key") from error
