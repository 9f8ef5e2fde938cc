"""A worker that makes its events by torch.cuda.Event, on whatever accelerator there is, or on none.

The swap lasts for the time of one constructor, as attention code for XPUs has done it by hand. Run it on any torch from
2.8: ``python examples/event_for_one_constructor.py``.
"""

import torch

import compat_patches


class Worker:
    """Somebody else's class, which knows CUDA alone."""

    def __init__(self) -> None:
        self.start = torch.cuda.Event(enable_timing=True)  # compat: ignore[torch-cuda-event] what is shown
        self.end = torch.cuda.Event(enable_timing=True)  # compat: ignore[torch-cuda-event] what is shown


# Where there is no accelerator, events of the CPU have to be made recordable first.
compat_patches.apply("cpu-accelerator")

with compat_patches.applied("cuda-event-on-accelerator"):
    worker = Worker()

worker.start.record()
torch.ones(500, 500) @ torch.ones(500, 500)
worker.end.record()
worker.end.synchronize()
print(f"{type(worker.start).__name__}: {worker.start.elapsed_time(worker.end):.3f} ms")
