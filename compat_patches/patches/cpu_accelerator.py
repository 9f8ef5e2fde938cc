"""What accelerator code needs in order to run on a host that has no accelerator.

Every stand-in asks at the call whether an accelerator is available, and if so leaves the answer to upstream. The
functions answer as a device with nothing allocated would. Events and streams keep their meaning: the CPU does its work
before a call returns, so an event is over when it is recorded, streams are always in order, and the time between two
events is that between their recordings.
"""

from __future__ import annotations

import functools
import itertools
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from .cpu_memory import means_host
from .stand_in_class import stand_in_metaclass

Function = Callable[..., Any]


def _on_a_host(answer: Function) -> Callable[[Function], Function]:
    """Make an implementation that lets ``answer`` take the call where there is no accelerator.

    The first argument, where there is one, names a device; one that is not the host's gets upstream's own error.
    """

    def factory(original: Function) -> Function:
        import torch

        @functools.wraps(original)
        def on_a_host(device: Any = None, /, *args: Any) -> Any:
            if not torch.accelerator.is_available() and means_host(device):
                return answer(device, *args)
            return original(device, *args)

        return on_a_host

    return factory


def _on_a_host_without_device(answer: Function) -> Callable[[Function], Function]:
    """As :func:`_on_a_host`, for a function that takes no device."""

    def factory(original: Function) -> Function:
        import torch

        @functools.wraps(original)
        def on_a_host() -> Any:
            return answer() if not torch.accelerator.is_available() else original()

        return on_a_host

    return factory


def _nothing(device: Any = None) -> None:
    pass


def _no_bytes(device: Any = None) -> int:
    return 0


def _first_index() -> int:
    return 0


_POOLS = ("all", "large_pool", "small_pool")
_METRICS = ("current", "peak", "allocated", "freed")
_BY_POOL = (
    "allocated",
    "allocated_bytes",
    "segment",
    "reserved_bytes",
    "active",
    "active_bytes",
    "inactive_split",
    "inactive_split_bytes",
)


def _no_statistics(device: Any = None) -> OrderedDict[str, Any]:
    """The core statistics that torch.accelerator.memory_stats documents, all of them zero."""
    names = (f"{name}.{pool}.{metric}" for name in _BY_POOL for pool in _POOLS for metric in _METRICS)
    return OrderedDict((name, 0) for name in sorted(names))


synchronize = _on_a_host(_nothing)
set_device_index = _on_a_host(_nothing)
reset_accumulated_memory_stats = _on_a_host(_nothing)
reset_peak_memory_stats = _on_a_host(_nothing)
empty_cache = _on_a_host_without_device(_nothing)
empty_host_cache = _on_a_host_without_device(_nothing)
current_device_index = _on_a_host_without_device(_first_index)
memory_stats = _on_a_host(_no_statistics)
memory_allocated = _on_a_host(_no_bytes)
max_memory_allocated = _on_a_host(_no_bytes)
memory_reserved = _on_a_host(_no_bytes)
max_memory_reserved = _on_a_host(_no_bytes)


def device_index(original: Any) -> Any:
    """Make a ``torch.accelerator.device_index`` whose body is executed on the host, where that is all there is.

    Args:
        original: ``torch.accelerator.device_index``.
    """
    import torch

    class device_index_on_a_host(original):  # type: ignore[misc]  # a class that is a variable
        def __enter__(self) -> None:
            self._on_a_host = not torch.accelerator.is_available()
            if not self._on_a_host:
                super().__enter__()

        def __exit__(self, *exc_info: object) -> None:
            if not self._on_a_host:
                super().__exit__(*exc_info)

    return device_index_on_a_host


# --- events and streams --------------------------------------------------------------------------------------------

_current = threading.local()
_stream_ids = itertools.count(1)


def event(original: Any) -> Any:
    """Make a ``torch.Event`` that the CPU can record.

    Args:
        original: ``torch.Event``.
    """
    import torch

    class Event(original, metaclass=stand_in_metaclass(type(original), original)):  # type: ignore[misc]
        _stands_in = True
        _recorded_ns: int | None = None
        _timed = False

        def __new__(cls, device: Any = None, **options: Any) -> Any:
            if not means_host(device) or torch.accelerator.is_available():
                return original.__new__(original if cls is Event else cls, device, **options)
            made = original.__new__(cls, "cpu", **options)
            made._timed = bool(options.get("enable_timing", False))
            return made

        def _is_the_hosts(self) -> bool:
            return self.device is None or self.device.type == "cpu"

        def record(self, stream: Any = None) -> None:
            if self._is_the_hosts():
                self._recorded_ns = time.perf_counter_ns()
            else:
                super().record(stream)

        def wait(self, stream: Any = None) -> None:
            if not self._is_the_hosts():
                super().wait(stream)

        def query(self) -> bool:
            return True if self._is_the_hosts() else super().query()

        def synchronize(self) -> None:
            if not self._is_the_hosts():
                super().synchronize()

        def elapsed_time(self, end_event: Any) -> float:
            """Return the time from this event to ``end_event`` in milliseconds, of a monotonic clock."""
            if not self._is_the_hosts():
                return super().elapsed_time(end_event)
            if not (self._timed and getattr(end_event, "_timed", False)):
                raise ValueError("Both events must be created with argument 'enable_timing=True'.")
            start, end = self._recorded_ns, getattr(end_event, "_recorded_ns", None)
            if start is None or end is None:
                raise ValueError("Both events must be recorded before calculating elapsed time.")
            return (end - start) / 1e6

    return Event


def stream(original: Any) -> Any:
    """Make a ``torch.Stream`` on which the CPU can work.

    Args:
        original: ``torch.Stream``.
    """
    import torch

    # The number that torch gives the device type (c10/core/DeviceType.h), as torch itself tells it.
    cpu = original("cpu").device_type

    class Stream(original, metaclass=stand_in_metaclass(type(original), original)):  # type: ignore[misc]
        _stands_in = True

        def __new__(cls, device: Any = None, **options: Any) -> Any:
            if "stream_id" in options or not means_host(device) or torch.accelerator.is_available():
                arguments = () if device is None else (device,)
                return original.__new__(original if cls is Stream else cls, *arguments, **options)
            return original.__new__(cls, stream_id=next(_stream_ids), device_index=0, device_type=cpu)

        def _is_the_hosts(self) -> bool:
            return self.device.type == "cpu"

        def query(self) -> bool:
            return True if self._is_the_hosts() else super().query()

        def synchronize(self) -> None:
            if not self._is_the_hosts():
                super().synchronize()

        def wait_event(self, event: Any) -> None:
            if not self._is_the_hosts():
                super().wait_event(event)

        def wait_stream(self, stream: Any) -> None:
            if not self._is_the_hosts():
                super().wait_stream(stream)

        def record_event(self, event: Any = None) -> Any:
            if not self._is_the_hosts():
                return super().record_event(event)
            if event is None:
                event = torch.Event("cpu")
            event.record(self)
            return event

        def __enter__(self) -> Any:
            if not self._is_the_hosts():
                return super().__enter__()
            _entered().append(_stream_now())
            _current.stream = self
            return self

        def __exit__(self, *exc_info: Any) -> Any:
            if not self._is_the_hosts():
                return super().__exit__(*exc_info)
            _current.stream = _entered().pop()
            return None

    return Stream


def _entered() -> list[Any]:
    if not hasattr(_current, "entered"):
        _current.entered = []
    entered: list[Any] = _current.entered
    return entered


def _stream_now() -> Any:
    """The thread's current stream; each thread begins with one that all threads share, the default one."""
    return getattr(_current, "stream", None) or _default_stream()


@functools.cache
def _default_stream() -> Any:
    import torch

    return torch.Stream(stream_id=0, device_index=0, device_type=torch.Stream("cpu").device_type)


def _current_stream(device: Any = None) -> Any:
    return _stream_now()


current_stream = _on_a_host(_current_stream)


def set_stream(original: Function) -> Function:
    """Make a ``torch.accelerator.set_stream`` that takes a stream of the CPU.

    Args:
        original: ``torch.accelerator.set_stream``.
    """

    @functools.wraps(original)
    def set_stream(stream: Any) -> None:
        if getattr(getattr(stream, "device", None), "type", None) == "cpu":
            _current.stream = stream
        else:
            original(stream)

    return set_stream


# --- tensors -------------------------------------------------------------------------------------------------------


def pin_memory(original: Function) -> Function:
    """Make a ``torch.Tensor.pin_memory`` that returns the tensor itself where there is no accelerator to pin it for.

    Args:
        original: ``torch.Tensor.pin_memory``.
    """
    import torch

    @functools.wraps(original)
    def pin_memory(self: Any, *args: Any, **kwargs: Any) -> Any:
        if self.device.type == "cpu" and not torch.accelerator.is_available():
            return self
        return original(self, *args, **kwargs)

    return pin_memory


def record_stream(original: Function) -> Function:
    """Make a ``torch.Tensor.record_stream`` that takes a stream of the CPU, which nothing outlives.

    Args:
        original: ``torch.Tensor.record_stream``.
    """

    @functools.wraps(original)
    def record_stream(self: Any, stream: Any) -> None:
        if self.device.type == "cpu" and stream.device.type == "cpu":
            return
        original(self, stream)

    return record_stream
