"""Cost of host_memory() beside psutil.virtual_memory(), which it calls: the budget is 1.5 times.

Both are timed in turns, in short rounds of one process, so that what else the machine does meets both alike;
the ratio is the median over the rounds. It depends on where the process is: every group above it is one or
two reads more, and a limit adds the group's usage and statistics. So the groups that are read are printed.

    python benchmarks/host_memory.py [rounds]
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil

from compat_patches.patches.control_groups import memory_groups
from compat_patches.patches.host_memory import host_memory
from compat_patches.patches.kernel_files import number, read_whole

BUDGET = 1.5
CALLS = 50


def seconds_per_call(function: Callable[[], object]) -> float:
    start = time.perf_counter()
    for _ in range(CALLS):
        function()
    return (time.perf_counter() - start) / CALLS


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 400
    available, total = host_memory()
    print(f"host_memory(): {available:,} of {total:,} bytes available")
    for group in memory_groups("", read_whole("/proc/self/cgroup")):
        limits = [number(read_whole(path)) for path in group.limit_files]
        limited = any(limit is not None and limit < psutil.virtual_memory().total for limit in limits)
        print(f"  {'limited  ' if limited else 'unlimited'} {Path(group.usage_file).parent}")

    base, ours = [], []
    for count in range(rounds):
        # Who goes first changes, for the first has to warm the caches.
        order = [(psutil.virtual_memory, base), (host_memory, ours)]
        for function, times in order if count % 2 else reversed(order):
            times.append(seconds_per_call(function))
    ratio = statistics.median(mine / theirs for mine, theirs in zip(ours, base, strict=True))
    print(f"psutil.virtual_memory()  {statistics.median(base) * 1e6:7.1f} us")
    print(f"host_memory()            {statistics.median(ours) * 1e6:7.1f} us")
    print(f"ratio                    {ratio:7.2f}      budget {BUDGET:.2f}")


if __name__ == "__main__":
    main()
