"""The classes of torch._C that torch.xpu's Stream, Event and XPUGraph derive from, over a StandinXpu.

As in an XPU build, streams and events derive from the C types torch.Stream and torch.Event (tp_base in
torch/csrc/xpu/Stream.cpp and Event.cpp); what would reach their C++ side, which knows no XPU, is overridden.
"""

from __future__ import annotations

import inspect
import itertools
import operator
import sys
import warnings
from typing import Any

from .errors import StandinError
from .queues import Queue, Work
from .runtime import HIGHEST_PRIORITY, LOWEST_PRIORITY, StandinXpu
from .signatures import TorchFacts

# c10/core/DeviceType.h; each stream that is made checks that the installed torch agrees.
XPU_DEVICE_TYPE = 12

EVENT_PARAMETERS = ("enable_timing", "blocking", "interprocess")


def tuple_of(queue: Queue) -> tuple[int, int, int]:
    """The three numbers that torch knows a stream by."""
    return queue.stream_id, queue.device_index, XPU_DEVICE_TYPE


def _queue_of(standin: StandinXpu, stream: Any) -> Queue:
    if not isinstance(stream, sys.modules["torch._C"].Stream):
        raise RuntimeError("expected stream to be a torch.Stream or torch.xpu.Stream object")
    if stream.device_type != XPU_DEVICE_TYPE:
        raise RuntimeError(f"expected a stream of an XPU, got one of {stream.device}")
    return standin.queue(stream.device_index, stream.stream_id)


def stream_base(standin: StandinXpu) -> type:
    """torch._C._XpuStreamBase."""

    class _XpuStreamBase(sys.modules["torch._C"].Stream):
        def __new__(cls, priority=0, stream_id=0, device_index=0, device_type=0):
            if stream_id or device_index or device_type:
                if device_type != XPU_DEVICE_TYPE:
                    raise RuntimeError(f"expected device type {XPU_DEVICE_TYPE}, the XPU, got {device_type}")
                queue = standin.queue(operator.index(device_index), operator.index(stream_id))
            else:
                queue = standin.new_queue(operator.index(priority))
            stream_id, device_index, device_type = tuple_of(queue)
            self = super().__new__(cls, stream_id=stream_id, device_index=device_index, device_type=device_type)
            if self.device.type != "xpu":
                raise StandinError(f"device type {XPU_DEVICE_TYPE} is {self.device.type} in this torch, not xpu")
            self._standin_queue = queue
            self._standin_entered = []
            return self

        @property
        def sycl_queue(self) -> int:
            return id(self._standin_queue)

        @property
        def native_handle(self) -> int:
            return id(self._standin_queue)

        @property
        def priority(self) -> int:
            return self._standin_queue.priority

        @staticmethod
        def priority_range() -> tuple[int, int]:
            return LOWEST_PRIORITY, HIGHEST_PRIORITY

        def query(self) -> bool:
            return standin.scheduler.poll_queue(self._standin_queue)

        def synchronize(self) -> None:
            standin.scheduler.finish_queue(self._standin_queue)

        def is_capturing(self) -> bool:
            return self._standin_queue.capture is not None

        def __enter__(self):
            queue = self._standin_queue
            self._standin_entered.append((standin.current_device_index, standin.current_queue(queue.device_index)))
            standin.set_current_queue(queue)
            return self

        def __exit__(self, exc_type, exc_val, exc_tb) -> None:
            device_index, queue = self._standin_entered.pop()
            standin.set_current_queue(queue)
            standin.exchange_device(device_index)

    return _XpuStreamBase


def event_base(standin: StandinXpu, facts: TorchFacts) -> type:
    """torch._C._XpuEventBase, with the parameters that the stub of the installed torch declares.

    2.15 takes ``interprocess`` there, earlier ones ``enable_timing`` alone; ``blocking`` never gets so far.
    """
    torch_event = sys.modules["torch._C"].Event
    device_type = sys.modules["torch._C"].device
    declared = facts.method("_XpuEventBase", "__new__")
    signature = inspect.Signature(
        [
            parameter.replace(default=False)
            for name, parameter in declared.parameters.items()
            if name in EVENT_PARAMETERS
        ]
    )

    class _XpuEventBase(torch_event):
        def __new__(cls, *args, **kwargs):
            bound = signature.bind(*args, **kwargs)
            flags = {name: bool(operator.index(value)) for name, value in bound.arguments.items()}
            self = super().__new__(cls, "cpu")
            self._standin_timed = flags.get("enable_timing", False)
            self._standin_device_index = None
            self._standin_record = None
            return self

        __new__.__signature__ = signature

        @property
        def device(self):
            if self._standin_device_index is None:
                return None
            return device_type("xpu", self._standin_device_index)

        @property
        def sycl_event(self) -> int:
            return 0 if self._standin_record is None else id(self._standin_record)

        @property
        def event_id(self) -> int:
            return self.sycl_event

        def record(self, stream) -> None:
            queue = _queue_of(standin, stream)
            if self._standin_device_index is None:
                self._standin_device_index = queue.device_index
            elif self._standin_device_index != queue.device_index:
                raise RuntimeError(
                    f"Event device {self._standin_device_index} does not match recording stream's device "
                    f"{queue.device_index}."
                )
            self._standin_record = standin.scheduler.submit(queue, on_replay=self._recorded)

        def _recorded(self, record: Work) -> None:
            self._standin_record = record

        def wait(self, stream) -> None:
            queue = _queue_of(standin, stream)
            if self._standin_record is not None:
                standin.scheduler.submit(queue, after=(self._standin_record,))

        def query(self) -> bool:
            return self._standin_record is None or standin.scheduler.poll(self._standin_record)

        def synchronize(self) -> None:
            if self._standin_record is not None:
                standin.scheduler.finish(self._standin_record)

        def elapsed_time(self, other) -> float:
            if not isinstance(other, _XpuEventBase):
                raise TypeError(f"expected an event of the XPU, got {type(other).__name__}")
            start, end = self._standin_record, other._standin_record
            if start is None or end is None:
                raise RuntimeError("Both events must be recorded before calculating elapsed time.")
            if not (start.done and end.done):
                raise RuntimeError("Both events must be completed before calculating elapsed time.")
            if not (self._standin_timed and other._standin_timed):
                raise RuntimeError("Both events must be created with argument 'enable_timing=True'.")
            return (end.finished - start.finished) / 1_000_000

        def ipc_handle(self) -> bytes:
            raise StandinError("the stand-in XPU has no model of events that processes share")

        @classmethod
        def from_ipc_handle(cls, device, ipc_handle):
            raise StandinError("the stand-in XPU has no model of events that processes share")

    return _XpuEventBase


def graph_base(standin: StandinXpu) -> type:
    """torch._C._XPUGraph."""
    graph_pools = itertools.count(1)

    class _XPUGraph:
        def __new__(cls, keep_graph=False):
            self = super().__new__(cls)
            self._standin_keep_graph = keep_graph
            self.reset()
            return self

        def capture_begin(self, pool=None) -> None:
            if pool is not None and not (
                isinstance(pool, tuple) and len(pool) == 2 and all(isinstance(part, int) for part in pool)
            ):
                raise TypeError(f"capture_begin(): pool must be a tuple of two integers, got {pool!r}")
            if self._standin_instantiated:
                raise RuntimeError(
                    "This XPUGraph instance already owns a captured graph. "
                    "To capture a new graph, create a new instance."
                )
            self._standin_capture = standin.begin_capture()
            self._standin_pool = pool or (next(graph_pools), 0)

        def capture_end(self) -> None:
            if self._standin_capture is None:
                raise RuntimeError("capture_end() was called without a capture_begin()")
            standin.end_capture(self._standin_capture)
            if not self._standin_capture.items:
                warnings.warn(
                    "The XPU Graph is empty. This usually means that the graph was "
                    "attempted to be captured on wrong device or stream.",
                    stacklevel=2,
                )
            self._standin_captured = True
            if not self._standin_keep_graph:
                self.instantiate()

        def instantiate(self) -> None:
            if not self._standin_captured:
                raise RuntimeError("capture_end() must have been called before calling instantiate")
            if self._standin_instantiated and not self._standin_keep_graph:
                raise RuntimeError("instantiate() is intended to be called by the user only when keep_graph=true")
            self._standin_instantiated = True

        def replay(self) -> None:
            if not self._standin_captured:
                raise RuntimeError("Called XPUGraph::replay without a preceding successful capture.")
            if not self._standin_instantiated:
                self.instantiate()
            device_index = self._standin_capture.queue.device_index
            standin.scheduler.replay(self._standin_capture, standin.current_queue(device_index))

        def reset(self) -> None:
            self._standin_capture = None
            self._standin_pool = None
            self._standin_captured = False
            self._standin_instantiated = False

        def pool(self) -> tuple[int, int]:
            if not self._standin_captured:
                raise RuntimeError("Called XPUGraph::pool() without a preceding successful capture.")
            return self._standin_pool

        def register_generator_state(self, Generator) -> None:
            raise StandinError("the stand-in XPU has no model of random numbers in graphs")

        def enable_debug_mode(self) -> None:
            raise StandinError("the stand-in XPU has no model of dumping graphs")

        def debug_dump(self, debug_path) -> None:
            raise StandinError("the stand-in XPU has no model of dumping graphs")

        def raw_xpu_graph(self) -> int:
            raise StandinError("the stand-in XPU has no SYCL graphs")

        def raw_xpu_graph_exec(self) -> int:
            raise StandinError("the stand-in XPU has no SYCL graphs")

    return _XPUGraph
