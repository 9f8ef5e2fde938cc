"""``torch.accelerator.get_memory_info`` on a host without an accelerator: the host's memory.

Whether there is an accelerator is asked at each call, never before: asking initialises CUDA, and a fork after that
breaks the child.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

MemoryInfo = tuple[int, int]


def answer_for_host(original: Callable[..., MemoryInfo]) -> Callable[..., MemoryInfo]:
    """Answer with host memory where no accelerator is available; with an accelerator upstream answers.

    Args:
        original: ``torch.accelerator.get_memory_info``.
    """
    import torch

    @functools.wraps(original)
    def get_memory_info(device_index: Any = None, /) -> MemoryInfo:
        if means_host(device_index) and not torch.accelerator.is_available():
            return _host_memory()
        return original(device_index)

    return get_memory_info


def get_memory_info(device_index: Any = None, /) -> MemoryInfo:
    """Return the memory of the current accelerator, or of the host where no accelerator is available.

    For releases of torch that have no ``torch.accelerator.get_memory_info`` yet (before 2.10).

    Args:
        device_index: an index, a string, a ``torch.device`` or None for the current device. Its type must be the
            accelerator's; without an accelerator it may be ``cpu``.

    Returns:
        ``(available, total)`` in bytes.

    Raises:
        RuntimeError: a device is named and there is no accelerator.
        ValueError: the device is of another type than the accelerator.
    """
    import torch

    accelerator = torch.accelerator.current_accelerator()
    if not torch.accelerator.is_available():
        if means_host(device_index):
            return _host_memory()
        # The words of torch 2.10, for callers that look at them.
        raise RuntimeError(f"Accelerator expected, found none; cannot tell the memory of {device_index!r}")
    device = torch.device(device_index) if isinstance(device_index, str) else device_index
    if isinstance(device, torch.device):
        if device.type != accelerator.type:
            raise ValueError(f"{device.type} doesn't match the current accelerator {accelerator}.")
        device = device.index
    free, total = torch.get_device_module(accelerator).mem_get_info(device)
    return int(free), int(total)


def _host_memory() -> MemoryInfo:
    # At the call: who has an accelerator never needs it, and it would be a twentieth of what we add to `import torch`.
    from .host_memory import host_memory

    return host_memory()


def means_host(device_index: Any) -> bool:
    """Whether the argument can stand for the host: nothing, an index, or a device of type cpu."""
    if device_index is None:
        return True
    if isinstance(device_index, int):
        # An index is a worker's rank as often as not, and all workers of a host share its memory.
        return device_index >= 0
    if isinstance(device_index, str):
        return device_index.partition(":")[0] == "cpu"
    return getattr(device_index, "type", None) == "cpu"
