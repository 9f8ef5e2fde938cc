"""Implementations for torch.accelerator."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable
from typing import Any

_GUARD = "_accelerator_isAllocatorInitialized"


def resets_lack_the_guard() -> tuple[bool, str]:
    """Evidence: whether upstream asks for the allocator before it resets its statistics. Touches no device."""
    function = inspect.unwrap(sys.modules["torch.accelerator.memory"].reset_peak_memory_stats)
    if _GUARD in function.__code__.co_names:
        return False, f"torch.accelerator.reset_peak_memory_stats asks {_GUARD}"
    return True, f"torch.accelerator.reset_peak_memory_stats does not ask {_GUARD}"


def only_with_an_allocator(original: Callable[..., None]) -> Callable[..., None]:
    """Do nothing where no allocator has been initialised, as the documentation of the function says."""

    @functools.wraps(original)
    def reset(device_index: Any = None, /) -> None:
        import torch

        if torch._C._accelerator_isAllocatorInitialized():
            original(device_index)

    return reset


def empty_host_cache() -> None:
    """Give unused pinned host memory back to the system.

    Before torch 2.12 only CUDA builds can do that; elsewhere nothing happens.
    """
    import torch

    accelerator = torch.accelerator.current_accelerator()
    if accelerator is not None and accelerator.type == "cuda" and torch._C._accelerator_isAllocatorInitialized():
        torch._C._host_emptyCache()  # compat: ignore[torch-cuda-memory] the public form starts with torch 2.12
