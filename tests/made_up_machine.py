"""A made-up machine for the tests of host memory: /proc and /sys as files below a directory."""

from __future__ import annotations

from pathlib import Path

import pytest

from compat_patches.patches.host_memory import HostMemory

MiB = 1 << 20
GiB = 1 << 30
UNLIMITED_V1 = 9223372036854771712  # PAGE_COUNTER_MAX in bytes, with pages of 4 KiB

V1_MOUNT = "35 31 0:32 {top} {point} rw,relatime - cgroup cgroup rw,memory\n"
V2_MOUNT = "41 31 0:38 {top} {point} rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n"


class Machine:
    """A made-up machine of 64 GiB, 48 GiB of them available, below a directory."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.available = 48 * GiB
        self.total = 64 * GiB
        self.memory = HostMemory(str(root), lambda: (self.available, self.total))

    def write(self, path: str, text: object) -> None:
        file = self.root / path.lstrip("/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{text}\n" if not isinstance(text, str) or not text.endswith("\n") else text)

    def process(self, cgroup: str, *mounts: str) -> None:
        self.write("/proc/self/cgroup", cgroup)
        self.write("/proc/self/mountinfo", "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n" + "".join(mounts))

    def v1(self, directory: str, limit: object = UNLIMITED_V1, usage: int = 0, inactive: int = 0) -> None:
        self.write(f"{directory}/memory.limit_in_bytes", limit)
        self.write(f"{directory}/memory.usage_in_bytes", usage)
        self.write(f"{directory}/memory.stat", f"cache 5\ninactive_file 1\ntotal_inactive_file {inactive}\n")

    def v2(
        self, directory: str, limit: object = "max", high: object = "max", usage: int = 0, inactive: int = 0
    ) -> None:
        self.write(f"{directory}/memory.max", limit)
        self.write(f"{directory}/memory.high", high)
        self.write(f"{directory}/memory.current", usage)
        self.write(f"{directory}/memory.stat", f"anon 7\nfile 9\ninactive_file {inactive}\nslab 3\n")

    def nodes(self, allowed: str, *texts: str) -> None:
        self.write("/proc/self/status", f"Name:\tpython\nMems_allowed:\tff\nMems_allowed_list:\t{allowed}\n")
        self.write("/sys/devices/system/node/has_memory", f"0-{len(texts) - 1}" if len(texts) > 1 else "0")
        for node, text in enumerate(texts):
            self.write(f"/sys/devices/system/node/node{node}/meminfo", text)


def service_of_cgroup_v2(root: Path) -> Machine:
    """Return a machine whose process is in system.slice/llm.service of cgroup v2, without a limit yet."""
    machine = Machine(root)
    machine.process("0::/system.slice/llm.service\n", V2_MOUNT.format(top="/", point="/sys/fs/cgroup"))
    machine.v2("/sys/fs/cgroup/system.slice")
    machine.v2("/sys/fs/cgroup/system.slice/llm.service")
    return machine


def node(number: int, **fields: int) -> str:
    names = {"Active_file": "Active(file)", "Inactive_file": "Inactive(file)"}
    return "".join(f"Node {number} {names.get(name, name)}: {kib:>9} kB\n" for name, kib in fields.items())


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


@pytest.fixture
def service(tmp_path: Path) -> Machine:
    return service_of_cgroup_v2(tmp_path)
