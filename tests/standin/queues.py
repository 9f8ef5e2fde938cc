"""In-order queues of work on a virtual clock: the device side of the stand-in XPU. Knows nothing of torch.

Nothing runs by itself. Work runs when somebody waits for it, in the calling thread, and then only that work,
what stands before it in its queue, and what these wait for. Two queues that nothing orders therefore run in
the order in which they are waited for: a missing wait shows each time, where a real device shows it now and
then. Times are whole nanoseconds of a virtual clock, so that durations can be compared with ``==``.
"""

from __future__ import annotations

import collections
import contextlib
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from .errors import StandinError

NANOSECONDS = 1_000_000_000


@dataclass(eq=False)
class Queue:
    """What a stream is on the device: work that runs in the order of its submission."""

    device_index: int
    stream_id: int
    priority: int
    pending: collections.deque[Work] = field(default_factory=collections.deque)
    clock: int = 0
    capture: Capture | None = None

    def __repr__(self) -> str:
        return f"<queue {self.stream_id} of device {self.device_index}>"


@dataclass(eq=False)
class Work:
    """One item of a queue. Records of events and waits for events are items too, without a call.

    ``started`` and ``finished`` are nanoseconds of the virtual clock, None until the item has run.
    """

    queue: Queue
    submitted: int
    call: Callable[[], object] | None = None
    duration: int = 0
    after: tuple[Work, ...] = ()
    name: str | None = None
    # Called with the new item when a graph that captured this one is replayed.
    on_replay: Callable[[Work], object] | None = None
    capture: Capture | None = None
    started: int | None = None
    finished: int | None = None

    @property
    def done(self) -> bool:
        return self.finished is not None

    @property
    def device_index(self) -> int:
        return self.queue.device_index

    @property
    def stream_id(self) -> int:
        return self.queue.stream_id


@dataclass(eq=False)
class Capture:
    """The items that one queue was given between the beginning and the end of a graph capture."""

    queue: Queue
    items: list[Work] = field(default_factory=list)


class Scheduler:
    """Runs the items of queues, and keeps the clock of the host that submits them and waits for them."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._holds = 0
        self._host_clock = 0
        self.executed: list[Work] = []

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Keep the device from making any progress: whoever waits for it gets a StandinError meanwhile."""
        with self._lock:
            self._holds += 1
        try:
            yield
        finally:
            with self._lock:
                self._holds -= 1

    def submit(
        self,
        queue: Queue,
        call: Callable[[], object] | None = None,
        *,
        duration: int = 0,
        after: tuple[Work, ...] = (),
        name: str | None = None,
        on_replay: Callable[[Work], object] | None = None,
    ) -> Work:
        """Put an item at the end of the queue, or into the graph that the queue is capturing."""
        with self._lock:
            work = Work(queue, self._host_clock, call, duration, after, name, on_replay, queue.capture)
            self._refuse_edges_across_a_capture(work)
            if queue.capture is not None:
                queue.capture.items.append(work)
            else:
                queue.pending.append(work)
            return work

    def replay(self, capture: Capture, queue: Queue) -> None:
        """Put what was captured on the queue once more."""
        with self._lock:
            for item in capture.items:
                work = self.submit(queue, item.call, duration=item.duration, name=item.name, on_replay=item.on_replay)
                if item.on_replay is not None:
                    item.on_replay(work)

    def finish(self, work: Work) -> None:
        """Run the item and all that it depends on; the host's clock is then no earlier than its end."""
        with self._lock:
            self._refuse_to_wait_for_a_capture(work.capture)
            if self._holds and not work.done:
                raise StandinError("waits for work of a device that standin.held() keeps from running it")
            while not work.done:
                self._step(work)
            self._host_clock = max(self._host_clock, work.finished or 0)

    def finish_queue(self, queue: Queue) -> None:
        """Run all items of the queue."""
        with self._lock:
            self._refuse_to_wait_for_a_capture(queue.capture)
            if queue.pending:
                self.finish(queue.pending[-1])
            self._host_clock = max(self._host_clock, queue.clock)

    def poll(self, work: Work) -> bool:
        """Say whether the item has run. If it has not, the device then runs one item on the way to it.

        So the first poll of unfinished work is always False, and a loop that polls comes to its end.
        """
        with self._lock:
            self._refuse_to_wait_for_a_capture(work.capture)
            if work.done:
                return True
            if not self._holds:
                self._step(work)
            return False

    def poll_queue(self, queue: Queue) -> bool:
        """Say whether the queue is empty; as ``poll`` does for its last item."""
        with self._lock:
            self._refuse_to_wait_for_a_capture(queue.capture)
            return not queue.pending or self.poll(queue.pending[-1])

    def _step(self, work: Work) -> None:
        """Run one item that stands in the way of the given one, or that one itself."""
        while True:
            head = work.queue.pending[0]
            unfinished = [other for other in head.after if not other.done]
            if not unfinished:
                return self._execute(head)
            work = unfinished[0]

    def _execute(self, work: Work) -> None:
        queue = work.queue
        queue.pending.popleft()
        work.started = max(queue.clock, work.submitted, *(other.finished or 0 for other in work.after))
        try:
            if work.call is not None:
                work.call()
        finally:
            work.finished = queue.clock = work.started + work.duration
            if work.call is not None or work.duration:
                self.executed.append(work)

    @staticmethod
    def _refuse_to_wait_for_a_capture(capture: Capture | None) -> None:
        if capture is not None:
            raise RuntimeError(f"cannot wait for work that {capture.queue} captured into a graph")

    @staticmethod
    def _refuse_edges_across_a_capture(work: Work) -> None:
        for other in work.after:
            if other.capture is not work.capture:
                raise StandinError(
                    f"an event ties {work.queue} to {other.queue}, and only one of the two sides is captured "
                    "into a graph: the stand-in captures a single stream"
                )
