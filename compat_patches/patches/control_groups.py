"""Which control groups limit the memory of this process, and in which files they say so.

A process is in one group of each hierarchy, and every group above that one limits it too. /proc/self/cgroup
names the group, /proc/self/mountinfo says where its hierarchy can be seen and how much of it: a container is
often shown its own group only. See cgroups(7), cgroup_namespaces(7), and the kernel's
Documentation/admin-guide/cgroup-v2.rst and cgroup-v1/memory.rst.

Only os is imported here, besides what reads the files.
"""

from __future__ import annotations

import os

from compat_patches.patches.kernel_files import read_whole

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["MemoryGroup", "memory_groups"]

# Where a namespace hides the names of groups, no more directories of one depth than this are looked through.
_SEARCH_LIMIT = 4096


class MemoryGroup:
    """The files of one control group that say how much memory it may use and how much it uses, in bytes.

    Attributes:
        limit_files: each holds a limit; the smallest counts.
        usage_file: what the group and those below it use, page cache included.
        statistics_file: where the line `droppable` says how much of this is page cache not used lately.
    """

    __slots__ = ("droppable", "limit_files", "statistics_file", "usage_file")

    def __init__(self, directory: str, version: int) -> None:
        self.statistics_file = f"{directory}/memory.stat"
        if version == 1:
            # Not memory.soft_limit_in_bytes: it steers reclaim, a group may stay above it.
            self.limit_files: tuple[str, ...] = (f"{directory}/memory.limit_in_bytes",)
            self.usage_file = f"{directory}/memory.usage_in_bytes"
            # Without "total_" it would be this group's alone, while its usage has that of the groups below.
            self.droppable = b"\ntotal_inactive_file "
        else:
            # Above memory.high the kernel throttles a group until it makes no headway: no one can work there.
            self.limit_files = (f"{directory}/memory.max", f"{directory}/memory.high")
            self.usage_file = f"{directory}/memory.current"
            self.droppable = b"\ninactive_file "


def memory_groups(root: str, membership: bytes) -> list[MemoryGroup]:
    """Return the groups that limit the memory of the calling process, as far as they can be seen.

    Args:
        root: the directory in which proc, sys and all mount points are found; empty for the real ones.
        membership: the text of /proc/self/cgroup.
    """
    paths: dict[int, str] = {}
    for line in membership.splitlines():
        # hierarchy:controllers:path, where v2 is number 0 and names no controllers.
        hierarchy, _, rest = line.partition(b":")
        controllers, _, path = rest.partition(b":")
        if b"memory" in controllers.split(b","):
            paths[1] = os.fsdecode(path)
        elif hierarchy == b"0" and not controllers:
            paths[2] = os.fsdecode(path)
    # A controller is in one hierarchy only: if v1 has memory, v2 mounted beside it does not.
    version = 1 if 1 in paths else 2
    if version not in paths:
        return []
    mounts = [(_names(top), root + point) for top, point in _mounts(root, version)]
    directories = _directories(_names(paths[version]), mounts)
    return [MemoryGroup(path, version) for path in directories if not _cannot_be_limited(path, version)]


def _cannot_be_limited(directory: str, version: int) -> bool:
    """Tell whether this is the root group of the machine, which the kernel lets nobody limit."""
    if version == 1:
        return os.path.exists(f"{directory}/cgroup.sane_behavior")
    # Every other group of a kernel's v2 hierarchy has cgroup.events, and memory.max if it has the controller.
    elsewhere = ("cgroup.events", "memory.max", "memory.high")
    return os.path.exists(f"{directory}/cgroup.controllers") and not any(
        os.path.exists(f"{directory}/{name}") for name in elsewhere
    )


def _mounts(root: str, version: int) -> Iterator[tuple[str, str]]:
    """Yield (group at the top, mount point) of each mount that shows groups of the memory controller."""
    for line in read_whole(f"{root}/proc/self/mountinfo").splitlines():
        # 36 35 0:32 <top> <mount point> <options> [tags] - <type> <source> <super options>; see proc(5).
        mount, _, file_system = line.partition(b" - ")
        fields, described = mount.split(), file_system.split()
        if len(fields) < 5 or len(described) < 3:
            continue
        is_v1 = described[0] == b"cgroup" and b"memory" in described[2].split(b",")
        if is_v1 if version == 1 else described[0] == b"cgroup2":
            yield _unescaped(fields[3]), _unescaped(fields[4])


def _directories(own: list[str], mounts: list[tuple[list[str], str]]) -> list[str]:
    """Return the directories of the group `own` and of the groups above it, from the outermost.

    `own` and the tops of the mounts are names as our cgroup namespace shows them: each leading ".." stands
    for one group above the namespace's own root, whose name is not shown.
    """
    # The higher its top, the more of the groups above us a mount shows.
    mounts = sorted(mounts, key=lambda mount: len(mount[0]))
    for top, point in mounts:
        below = own[len(top) :]
        # Where our group is not found, something else is mounted over it.
        if own[: len(top)] == top and ".." not in below and os.path.isdir(_join(point, below)):
            return _chain(point, below)
    for top, point in mounts:
        hidden = len(top) - own.count("..")
        if hidden > 0 and set(top) == {".."}:
            return _chain(point, _find_hidden(point, hidden, [name for name in own if name != ".."]))
    # Our group is gone, or outside of what is mounted. What is left of the way to it still limits us, and the
    # top of a mount is what whoever set it up for us wanted us to go by.
    for top, point in mounts:
        if own[: len(top)] == top:
            return _chain(point, [name for name in own[len(top) :] if name != ".."])
    return [point for _, point in mounts[:1]]


def _find_hidden(point: str, depth: int, below: list[str]) -> list[str]:
    """Return the names from a mount point down to our group, the first `depth` of which are not shown to us.

    Our group is the one that lists this process. Nothing is returned if none does.
    """
    own_process = b"%d" % os.getpid()
    level: list[list[str]] = [[]]
    for _ in range(depth):
        level = [[*names, name] for names in level for name in _subdirectories(_join(point, names))]
        level = level[:_SEARCH_LIMIT]
    for names in level:
        found = [*names, *below]
        if own_process in read_whole(_join(point, [*found, "cgroup.procs"])).split():
            return found
    return []


def _subdirectories(directory: str) -> list[str]:
    try:
        with os.scandir(directory) as entries:
            return [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
    except (OSError, ValueError):
        return []


def _names(path: str) -> list[str]:
    return [name for name in path.split("/") if name]


def _join(point: str, names: list[str]) -> str:
    return "/".join([point, *names])


def _chain(point: str, names: list[str]) -> list[str]:
    """Return the mount point and each directory on the way down from it."""
    return [_join(point, names[:count]) for count in range(len(names) + 1)]


def _unescaped(field: bytes) -> str:
    """Return a path of mountinfo, where the kernel writes blanks and backslashes as octal numbers."""
    for escape, character in ((b"\\040", b" "), (b"\\011", b"\t"), (b"\\012", b"\n"), (b"\\134", b"\\")):
        field = field.replace(escape, character)
    return os.fsdecode(field)
