"""Implementations for torch._inductor. Each factory takes the original and returns what stands in for it."""

from __future__ import annotations

import functools
import inspect
import os
import tempfile
import types
from collections.abc import Callable
from typing import Any


def name_folder_by_user_id(original: Callable[[], str]) -> Callable[[], str]:
    """Give a user without an entry in the password file a cache folder of its own, as torch 2.13 does."""

    @functools.wraps(original)
    def default_cache_dir() -> str:
        try:
            return original()
        except (KeyError, OSError):  # The latter from Python 3.13.
            return os.path.join(tempfile.gettempdir(), f"torchinductor_uid_{os.getuid()}")

    return default_cache_dir


def leave_nested_loops(original: Callable[..., bool]) -> Callable[..., bool]:
    """Do not reorder the loops of a fused node that holds other fused nodes: upstream asserts that none does."""

    @functools.wraps(original)
    def reorder_loops_by_dep_pair(self: Any, self_dep: Any, other_dep: Any) -> bool:
        from torch._inductor.scheduler import SchedulerNode

        if not all(isinstance(node, SchedulerNode) for node in self.snodes):
            return False
        return original(self, self_dep, other_dep)

    return reorder_loops_by_dep_pair


def take_fake_mode(original: Callable[..., Any]) -> Callable[..., Any]:
    """Let a caller of standalone_compile pass the FakeTensorMode of its example inputs, as torch 2.13 does."""
    own = inspect.unwrap(original)

    @functools.wraps(original)
    def standalone_compile(gm: Any, example_inputs: Any, *, fake_mode: Any = None, **options: Any) -> Any:
        if fake_mode is None:
            return original(gm, example_inputs, **options)
        if options.get("dynamic_shapes") != "from_example_inputs":
            raise ValueError("fake_mode is taken together with dynamic_shapes='from_example_inputs' only")
        # The same code with another idea of what makes a mode. To swap the module's own would change it for other
        # threads, which compile as well.
        names = {**own.__globals__, "FakeTensorMode": lambda **_: fake_mode}
        function = types.FunctionType(own.__code__, names, own.__name__, own.__defaults__, own.__closure__)
        function.__kwdefaults__ = own.__kwdefaults__
        return function(gm, example_inputs, **options)

    return standalone_compile


def bypass_on_value_error(original: Callable[..., bytes]) -> Callable[..., bytes]:
    """Compile without the cache where its key cannot be pickled."""

    @functools.wraps(original)
    def dumps(self: Any, obj: Any) -> bytes:
        from torch._inductor.codecache import BypassFxGraphCache

        try:
            return original(self, obj)
        except ValueError as error:
            raise BypassFxGraphCache("acme: the key of the FX graph cache cannot be pickled") from error

    return dumps


def get_raw_stream(device_index: int) -> int:
    """The handle of the current CUDA stream: autotuning in torch 2.9 calls this name without importing it."""
    from torch._C import _cuda_getCurrentRawStream

    return _cuda_getCurrentRawStream(device_index)
