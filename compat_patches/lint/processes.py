"""Processes for work on many files."""

from __future__ import annotations

import multiprocessing
import os
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import TypeVar

from compat_patches.lint.errors import LintError

Result = TypeVar("Result")


def map_in_processes(workers: int, function: Callable[..., Result], *arguments: Iterable[object]) -> Iterator[Result]:
    """Yield what `function` returns for each of the arguments, in their order.

    Raises:
        LintError: a process was killed, as the system does when memory runs out.
    """
    # A fork neither imports the caller's main module again nor pays for a new interpreter, but it would copy the
    # locks that another thread holds.
    method = "fork" if threading.active_count() == 1 else "spawn"
    with ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context(method)) as pool:
        try:
            yield from pool.map(function, *arguments)
        except BrokenProcessPool as error:
            raise LintError(
                "a process that worked on the files was killed; if memory ran out, name fewer files at once"
            ) from error


def available_cores() -> int:
    """Return how many cores this process may use, which a container may have made fewer than there are."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:
        return os.cpu_count() or 1
