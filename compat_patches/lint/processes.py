"""Processes for work on many files."""

from __future__ import annotations

import multiprocessing
import os
from concurrent.futures import ProcessPoolExecutor


def pool_of(workers: int) -> ProcessPoolExecutor:
    """Return a pool of processes that are started afresh.

    A fork would copy the locks that the thread of a progress bar, or a thread of whoever calls us, may hold.
    """
    return ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("spawn"))


def available_cores() -> int:
    """Return how many cores this process may use, which a container may have made fewer than there are."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:
        return os.cpu_count() or 1
