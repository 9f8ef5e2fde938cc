"""The stand-in XPU: its devices, what each thread has chosen of them, and what a test does with it."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable
from typing import Any

from .errors import StandinError
from .memory import DeviceMemory
from .queues import NANOSECONDS, Capture, Queue, Scheduler, Work

GIBIBYTE = 1 << 30
HIGHEST_PRIORITY, LOWEST_PRIORITY = -1, 1


class Device:
    """One device: its queues and its memory. Both devices differ in every number that a test may read."""

    def __init__(self, index: int) -> None:
        self.index = index
        self.name = f"Stand-in XPU {index}"
        self.memory = DeviceMemory(total=(16 - 4 * index) * GIBIBYTE, used_by_others=(1 + index) * GIBIBYTE)
        self.queues = {0: Queue(index, stream_id=0, priority=0)}


class StandinXpu:
    """What ``installed()`` and the ``standin_xpu`` fixture hand to a test.

    ``devices`` are the Device objects, ``executed`` the Work items that have run, in that order.
    """

    def __init__(self, device_count: int = 2) -> None:
        if not 1 <= device_count <= 8:
            raise StandinError(f"device_count is {device_count}; the stand-in has 1 to 8 devices")
        self.devices = tuple(Device(index) for index in range(device_count))
        self.scheduler = Scheduler()
        self._thread = threading.local()
        self._initialized_in: int | None = None

    # For tests.

    @property
    def executed(self) -> list[Work]:
        return self.scheduler.executed

    def submit(
        self,
        call: Callable[[], object] | None = None,
        *,
        stream: Any = None,
        seconds: float = 0.0,
        name: str | None = None,
    ) -> Work:
        """Submit work as a kernel launch would, and return at once.

        Takes what to call when the work runs, the stream (the calling thread's current one by default; any
        object with ``device_index`` and ``stream_id``), and how long the work takes on the virtual clock.
        Returns a Work, whose ``done``, ``device_index`` and ``stream_id`` tell what became of it. An
        exception of the call comes out where somebody waits for the work.
        """
        queue = self.current_queue() if stream is None else self.queue(stream.device_index, stream.stream_id)
        return self.scheduler.submit(queue, call, duration=round(seconds * NANOSECONDS), name=name)

    def held(self) -> contextlib.AbstractContextManager[None]:
        """No work runs inside: ``query`` stays False, and waiting for unfinished work is a StandinError."""
        return self.scheduler.held()

    # For the names of torch._C.

    @property
    def initialized(self) -> bool:
        return self._initialized_in is not None

    @property
    def in_bad_fork(self) -> bool:
        return self._initialized_in is not None and self._initialized_in != os.getpid()

    def initialize(self) -> None:
        self._initialized_in = os.getpid()

    def device(self, index: int | None = None) -> Device:
        """The device of that index, the current one for None or below 0; RuntimeError if there is none."""
        if index is None or index < 0:
            index = self.current_device_index
        if index >= len(self.devices):
            raise RuntimeError(
                f"device is out of range, device is {index}, total number of device is {len(self.devices)}."
            )
        return self.devices[index]

    @property
    def current_device_index(self) -> int:
        return getattr(self._thread, "device_index", 0)

    def exchange_device(self, index: int) -> int:
        """Make the device current in this thread, and return the index of the one that was."""
        previous = self.current_device_index
        self._thread.device_index = self.device(index).index
        return previous

    def new_queue(self, priority: int) -> Queue:
        """A queue of the current device that no other stream shares (real ones come from a pool of 32)."""
        device = self.device()
        priority = min(max(priority, HIGHEST_PRIORITY), LOWEST_PRIORITY)
        # The low three bits of a stream's id say its priority, as in c10/xpu/XPUStream.cpp.
        stream_id = len(device.queues) << 3 | (priority & 3)
        queue = device.queues[stream_id] = Queue(device.index, stream_id, priority)
        return queue

    def queue(self, device_index: int, stream_id: int) -> Queue:
        """The queue of that id; RuntimeError if no such stream was made."""
        queues = self.device(device_index).queues
        if stream_id not in queues:
            raise RuntimeError(f"Unrecognized stream {stream_id} of device {device_index}")
        return queues[stream_id]

    def current_queue(self, device_index: int | None = None) -> Queue:
        """This thread's current queue of the device, of the current device for None or below 0."""
        device = self.device(device_index)
        return device.queues[self._current_streams().get(device.index, 0)]

    def set_current_queue(self, queue: Queue) -> None:
        """Make the queue, and its device with it, current in this thread."""
        self.exchange_device(queue.device_index)
        self._current_streams()[queue.device_index] = queue.stream_id

    def synchronize(self, device_index: int | None = None) -> None:
        for queue in list(self.device(device_index).queues.values()):
            self.scheduler.finish_queue(queue)

    def begin_capture(self) -> Capture:
        queue = self.current_queue()
        if queue.capture is not None:
            raise RuntimeError(f"{queue} is capturing a graph already")
        queue.capture = Capture(queue)
        return queue.capture

    def end_capture(self, capture: Capture) -> None:
        if self.current_queue() is not capture.queue:
            raise RuntimeError("Capture must end on the same stream it began on.")
        capture.queue.capture = None

    def _current_streams(self) -> dict[int, int]:
        if not hasattr(self._thread, "streams"):
            self._thread.streams = {}
        return self._thread.streams
