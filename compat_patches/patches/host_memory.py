"""How much host memory this process may use: psutil's answer, cut to its control groups and memory nodes.

psutil answers for the machine. A container, a systemd unit or a batch job may be given less: a limit on its
control group or on one above it, or only some of the machine's memory nodes (NUMA, by a cpuset). The smallest
decides. This stands behind torch.accelerator.get_memory_info where there is no accelerator.

Only os is imported here, besides what reads the files. psutil comes with the first call, torch not at all.
"""

from __future__ import annotations

import os

from compat_patches.patches.control_groups import memory_groups
from compat_patches.patches.kernel_files import KeptFiles, number, text_after

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

__all__ = ["HostMemory", "host_memory"]

# A group can vanish and the process can be moved while we read: then look again, but not for ever.
_ATTEMPTS = 3
# Linux knows at most 1024 nodes (CONFIG_NODES_SHIFT is 10 or less); a list far beyond that is none.
_NODE_LIMIT = 1 << 16


class HostMemory:
    """Tells how much memory the calling process may use, anew at each call.

    What is kept between calls is where to read, never what was read there: limits, groups and nodes may
    change under a running process. A fork, a move to another group and the end of a group are noticed. For
    this a few files stay open, closed on exec: /proc/self/cgroup and those of the groups and nodes.

    Args:
        root: the directory in which proc, sys and all mount points are found; empty for the real ones.
        machine: returns (available, total) of the whole machine in bytes; psutil where none is given.
    """

    def __init__(self, root: str = "", machine: Callable[[], tuple[int, int]] | None = None) -> None:
        self._root = root
        self._machine = machine or _psutil_memory
        self._view: _View | None = None

    def __call__(self) -> tuple[int, int]:
        """Return (available, total) in bytes, where 0 <= available <= total. Swap does not count.

        total is the smallest of the machine's memory, that of the nodes which the process is bound to, and
        each limit of its groups. available is the least that the machine, those nodes or one of the limited
        groups has left; page cache that the kernel can drop at once (`inactive_file`) counts as left. One
        group may have the smallest limit and another the least left.

        Files that are missing, unreadable or garbled limit nothing. What psutil raises goes through.
        """
        machine_available, machine_total = self._machine()
        for _ in range(_ATTEMPTS):
            view = self._view
            if view is None or not view.holds():
                view = _View(self._root)
            available, total = view.cut(machine_available, machine_total)
            # What was only now found out may already be old: the process may have been moved meanwhile.
            if not view.files.outdated and (view is self._view or view.is_member()):
                break
        self._view = view
        return max(0, min(available, total)), total


def _psutil_memory() -> tuple[int, int]:
    import psutil

    memory = psutil.virtual_memory()
    return memory.available, memory.total


class _View:
    """Where the limits of one process are to be read while it is in the same groups."""

    def __init__(self, root: str) -> None:
        self.files = KeptFiles()
        self._pid = os.getpid()
        self._node_directory = f"{root}/sys/devices/system/node"
        self._status_file = f"{root}/proc/self/status"
        self._membership_file = f"{root}/proc/self/cgroup"
        self._membership = self.files.reread(self._membership_file)
        self._groups = memory_groups(root, self._membership) if self._membership else []
        self._undivided_total = -1

    def is_member(self) -> bool:
        """Tell whether the process still is in the groups that it was in when the view was made."""
        return self.files.reread(self._membership_file) == self._membership

    def holds(self) -> bool:
        """Tell whether the view is still true. Where no group was found, one may have been mounted since."""
        return self._pid == os.getpid() and bool(self._groups) and self.is_member() and not self.files.outdated

    def cut(self, available: int, total: int) -> tuple[int, int]:
        """Return the machine's (available, total) cut to the nodes and groups of the process."""
        machine_total = total
        nodes = self._bound_nodes(machine_total)
        if nodes:
            node_available, node_total = _nodes_memory(self._node_text(node) for node in nodes)
            # No total means that a node could not be read: then nothing is known of their sum.
            if node_total:
                available, total = min(available, node_available), min(total, node_total)
        for group in self._groups:
            limit = machine_total
            for path in group.limit_files:
                found = number(self.files.reread(path))
                if found is not None and found < limit:
                    limit = found
            # More than the machine has is no limit, and neither is v1's "unlimited", a number near 2**63.
            if limit < machine_total:
                usage = number(self.files.read(group.usage_file)) or 0
                droppable = number(text_after(group.droppable, self.files.read(group.statistics_file))) or 0
                total = min(total, limit)
                available = min(available, limit - max(0, usage - droppable))
        return available, total

    def _bound_nodes(self, machine_total: int) -> set[int]:
        """Return the nodes with memory that the process may use, or nothing where that is all of them."""
        # A node that is plugged in brings memory with it: while the total is the same, there is but one.
        if machine_total == self._undivided_total:
            return set()
        with_memory = _node_list(self.files.reread(f"{self._node_directory}/has_memory"))
        with_memory = with_memory or self._listed_nodes()
        if len(with_memory) < 2:
            if with_memory or not os.path.isdir(self._node_directory):
                self._undivided_total = machine_total
            return set()
        allowed = _node_list(text_after(b"\nMems_allowed_list:", self.files.read(self._status_file)))
        return with_memory & allowed if with_memory - allowed else set()

    def _listed_nodes(self) -> set[int]:
        """Return the nodes whose directories say that they have memory, for want of a list of them."""
        try:
            names = os.listdir(self._node_directory)
        except OSError:
            return set()
        numbers = {number(os.fsencode(name[4:])) for name in names if name.startswith("node")}
        return {node for node in numbers if node is not None and _nodes_memory([self._node_text(node)])[1]}

    def _node_text(self, node: int) -> bytes | None:
        return self.files.read(f"{self._node_directory}/node{node}/meminfo")


def _nodes_memory(texts: Iterable[bytes | None]) -> tuple[int, int]:
    """Return (available, total) in bytes of nodes, given their meminfo; zeros if one of them tells no total.

    Available is counted as the kernel's si_mem_available() counts it for the machine (mm/show_mem.c), as far
    as the file goes: free pages, page cache and reclaimable kernel memory, without the reserves taken off.
    """
    available = total = 0
    for text in texts:
        node_total = number(text_after(b" MemTotal:", text))
        if not node_total:
            return 0, 0
        free = number(text_after(b" MemFree:", text))
        if free is None:
            # All of it, as an upper bound: the machine's own answer then decides.
            free = node_total
        available += min(node_total, free + _page_cache(text) + _reclaimable(text))
        total += node_total
    return available * 1024, total * 1024


def _page_cache(node_text: bytes | None) -> int:
    active = number(text_after(b" Active(file):", node_text))
    inactive = number(text_after(b" Inactive(file):", node_text))
    if active is not None and inactive is not None:
        return active + inactive
    # FilePages has the pages of tmpfs in it too, which cannot be dropped.
    pages = number(text_after(b" FilePages:", node_text)) or 0
    return max(0, pages - (number(text_after(b" Shmem:", node_text)) or 0))


def _reclaimable(node_text: bytes | None) -> int:
    # KReclaimable is SReclaimable and more; it is in the file since Linux 4.20.
    reclaimable = number(text_after(b" KReclaimable:", node_text))
    return number(text_after(b" SReclaimable:", node_text)) or 0 if reclaimable is None else reclaimable


def _node_list(text: bytes | None) -> set[int]:
    """Return the nodes of a list such as `0-1,4`, or nothing if a part of it makes no sense."""
    nodes: set[int] = set()
    for part in (text or b"").split(b","):
        first, dash, last = part.partition(b"-")
        low, high = number(first), number(last if dash else first)
        if low is None or high is None or high > _NODE_LIMIT:
            return set()
        nodes.update(range(low, high + 1))
    return nodes


host_memory = HostMemory()
