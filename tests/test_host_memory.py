"""Host memory: psutil's answer, memory nodes, files that make no sense, and what importing costs."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import ClassVar

import psutil
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_up_machine import V1_MOUNT, V2_MOUNT, GiB, Machine, MiB, node

from compat_patches.patches.host_memory import HostMemory, host_memory


class TestTheMachineItself:
    def test_psutil_answers_where_nothing_limits(self, machine: Machine) -> None:
        assert machine.memory() == (48 * GiB, 64 * GiB)

    def test_psutil_is_asked_by_default(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        memory = psutil.virtual_memory()
        monkeypatch.setattr(psutil, "virtual_memory", lambda: memory)
        assert HostMemory(str(tmp_path))() == (memory.available, memory.total)

    def test_the_real_machine_gives_a_sensible_answer(self) -> None:
        available, total = host_memory()
        assert isinstance(available, int) and isinstance(total, int)
        assert 0 < available <= total <= psutil.virtual_memory().total

    def test_what_psutil_raises_goes_through(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        def broken() -> None:
            raise PermissionError("no /proc for you")

        monkeypatch.setattr(psutil, "virtual_memory", broken)
        with pytest.raises(PermissionError, match="no /proc for you"):
            HostMemory(str(tmp_path))()

    def test_more_available_than_there_is_counts_as_all_there_is(self, machine: Machine) -> None:
        machine.available = 65 * GiB
        assert machine.memory() == (64 * GiB, 64 * GiB)


class TestNodes:
    FULL: ClassVar = {"MemTotal": 32 * MiB, "MemFree": 20 * MiB, "Active_file": MiB, "Inactive_file": 2 * MiB}

    def test_a_process_bound_to_one_node_gets_that_node(self, machine: Machine) -> None:
        other = node(0, MemTotal=32 * MiB, MemFree=31 * MiB)
        bound = node(1, **self.FULL, Shmem=9 * MiB, FilePages=9 * MiB, KReclaimable=MiB, SReclaimable=4)
        machine.nodes("1", other, bound)
        assert machine.memory() == (24 * GiB, 32 * GiB)

    def test_nodes_add_up(self, machine: Machine) -> None:
        machine.total, machine.available = 96 * GiB, 90 * GiB
        machine.nodes("0,2", *(node(number, **self.FULL) for number in range(3)))
        assert machine.memory() == (46 * GiB, 64 * GiB)

    @pytest.mark.parametrize("allowed", ["0-1", "0,1", "0-7", "7", "", "none", "0-", "1-0", "0-99999999999999"])
    def test_all_nodes_or_none_or_nonsense_is_the_machine(self, machine: Machine, allowed: str) -> None:
        machine.nodes(allowed, node(0, **self.FULL), node(1, **self.FULL))
        assert machine.memory() == (48 * GiB, 64 * GiB)

    def test_a_node_with_more_to_give_than_it_has_lends_nothing_to_others(self, machine: Machine) -> None:
        rich = node(0, MemTotal=4 * MiB, MemFree=4 * MiB, KReclaimable=4 * MiB)
        machine.nodes("0-1", rich, node(1, MemTotal=4 * MiB, MemFree=MiB), node(2, **self.FULL))
        assert machine.memory() == (5 * GiB, 8 * GiB)

    def test_allowed_nodes_without_memory_add_nothing(self, machine: Machine) -> None:
        machine.nodes("1,5", node(0, **self.FULL), node(1, **self.FULL))
        assert machine.memory() == (23 * GiB, 32 * GiB)

    def test_a_node_without_memory_does_not_make_a_subset(self, machine: Machine) -> None:
        machine.nodes("0", node(0, **self.FULL))
        machine.write("/sys/devices/system/node/node1/meminfo", node(1, MemTotal=0))
        assert machine.memory() == (48 * GiB, 64 * GiB)

    def test_a_kernel_that_lists_no_nodes_with_memory(self, machine: Machine) -> None:
        machine.nodes("1", node(0, **self.FULL), node(1, **self.FULL), node(2, MemTotal=0))
        (machine.root / "sys/devices/system/node/has_memory").unlink()
        (machine.root / "sys/devices/system/node/node2x").mkdir()
        assert machine.memory() == (23 * GiB, 32 * GiB)

    @pytest.mark.parametrize(
        ("fields", "available"),
        [
            ({"MemFree": MiB}, 1),
            ({"MemFree": MiB, "SReclaimable": MiB}, 2),
            ({"MemFree": MiB, "FilePages": 3 * MiB, "Shmem": MiB}, 3),
            ({"MemFree": MiB, "FilePages": MiB, "Shmem": 3 * MiB}, 1),
            ({"MemFree": MiB, "FilePages": 3 * MiB, "Active_file": 2 * MiB}, 4),
            ({"MemFree": 30 * MiB, "Active_file": 30 * MiB, "Inactive_file": MiB}, 32),
            ({}, 32),
        ],
    )
    def test_fields_that_a_kernel_lacks(self, machine: Machine, fields: dict[str, int], available: int) -> None:
        machine.nodes("0", node(0, MemTotal=32 * MiB, **fields), node(1, **self.FULL))
        assert machine.memory() == (available * GiB, 32 * GiB)

    @pytest.mark.parametrize("text", ["", "Node 0 MemFree: 5 kB\n", "Node 0 MemTotal: much kB\n"])
    def test_a_node_that_cannot_be_read_binds_nothing(self, machine: Machine, text: str) -> None:
        machine.nodes("0", text, node(1, **self.FULL))
        assert machine.memory() == (48 * GiB, 64 * GiB)

    def test_a_changed_binding_is_seen(self, machine: Machine) -> None:
        machine.nodes("0-1", node(0, **self.FULL), node(1, **self.FULL))
        assert machine.memory() == (48 * GiB, 64 * GiB)
        machine.nodes("1", node(0, **self.FULL), node(1, **self.FULL))
        assert machine.memory() == (23 * GiB, 32 * GiB)

    def test_a_node_plugged_in_later_is_seen(self, machine: Machine) -> None:
        machine.process("0::/\n", V2_MOUNT.format(top="/", point="/sys/fs/cgroup"))
        machine.v2("/sys/fs/cgroup")
        machine.total = machine.available = 32 * GiB
        machine.nodes("0", node(0, **self.FULL))
        assert machine.memory() == (32 * GiB, 32 * GiB)
        machine.total = machine.available = 64 * GiB
        machine.nodes("0", node(0, **self.FULL), node(1, **self.FULL))
        assert machine.memory() == (23 * GiB, 32 * GiB)

    def test_groups_and_nodes_together(self, service: Machine) -> None:
        service.nodes("1", node(0, **self.FULL), node(1, MemTotal=32 * MiB, MemFree=3 * MiB))
        service.v2("/sys/fs/cgroup/system.slice/llm.service", limit=8 * GiB, usage=GiB)
        assert service.memory() == (3 * GiB, 8 * GiB)
        service.v2("/sys/fs/cgroup/system.slice/llm.service", limit=48 * GiB, usage=46 * GiB)
        assert service.memory() == (2 * GiB, 32 * GiB)


class TestBadFiles:
    @pytest.mark.parametrize("text", ["", "\n", "max", "-1", "1e9", "0x10", "1_000", "³", "9" * 5000, "\0", "x 5"])
    def test_a_limit_that_is_no_number_is_no_limit(self, service: Machine, text: str) -> None:
        service.v2("/sys/fs/cgroup/system.slice/llm.service", limit=text, usage=GiB)
        assert service.memory() == (48 * GiB, 64 * GiB)

    @pytest.mark.parametrize("missing", ["memory.current", "memory.stat"])
    @pytest.mark.parametrize("text", [None, "", "garbage"])
    def test_without_usage_the_limit_still_counts(self, service: Machine, missing: str, text: str | None) -> None:
        directory = "/sys/fs/cgroup/system.slice/llm.service"
        service.v2(directory, limit=8 * GiB, usage=GiB, inactive=GiB)
        if text is None:
            (service.root / directory.lstrip("/") / missing).unlink()
        else:
            service.write(f"{directory}/{missing}", text)
        available = 8 * GiB if missing == "memory.current" else 7 * GiB
        assert service.memory() == (available, 8 * GiB)

    @pytest.mark.parametrize("top", ["/", "/..", "/elsewhere"])
    def test_a_mount_point_that_is_no_path(self, service: Machine, top: str) -> None:
        service.process("0::/job\n", V2_MOUNT.format(top=top, point="/sys\0/fs"))
        assert service.memory() == (48 * GiB, 64 * GiB)

    def test_a_directory_in_the_place_of_a_file(self, service: Machine) -> None:
        directory = service.root / "sys/fs/cgroup/system.slice/llm.service"
        (directory / "memory.max").unlink()
        (directory / "memory.max").mkdir()
        assert service.memory() == (48 * GiB, 64 * GiB)

    @pytest.mark.parametrize("name", ["cgroup", "mountinfo", "status"])
    @pytest.mark.parametrize("text", ["", "garbage", ":::\n0:\n", "- - - - - - - -\n", "0::/../../\0x\n"])
    def test_garbled_proc_files_leave_the_machine(self, service: Machine, name: str, text: str) -> None:
        service.v2("/sys/fs/cgroup/elsewhere", limit=8 * GiB)
        service.write(f"/proc/self/{name}", text)
        assert service.memory() == (48 * GiB, 64 * GiB)

    def test_a_group_that_is_gone_leaves_its_ancestors(self, service: Machine) -> None:
        service.v2("/sys/fs/cgroup/system.slice", limit=8 * GiB)
        service.write("/proc/self/cgroup", "0::/system.slice/gone.service (deleted)\n")
        assert service.memory() == (8 * GiB, 8 * GiB)


WORDS = [
    *(
        b"inactive_file ",
        b"total_inactive_file ",
        b"Node 0 MemTotal: ",
        b"Node 1 MemFree: ",
        b" kB\n",
        b"max",
    ),
    *(b"0::/", b"4:memory:/", b"a", b"..", b"/", b"1 2 3:4 / /sys/fs/cgroup rw - cgroup2 c rw\n"),
    *(b"Mems_allowed_list:\t", b"0", b"1", b"-", b",", b"12345", b"\0", b"\xff", b"\\040", b" ", b"\n"),
]
garbage = st.one_of(
    st.binary(max_size=40),
    st.integers(min_value=-(2**70), max_value=2**70).map(lambda value: b"%d\n" % value),
    st.lists(st.sampled_from(WORDS), max_size=12).map(b"".join),
)
GROUP_FILES = [
    *("memory.max", "memory.high", "memory.current", "memory.stat"),
    *("memory.limit_in_bytes", "memory.usage_in_bytes", "cgroup.procs", "cgroup.controllers"),
]
FILES = [
    "proc/self/cgroup",
    "proc/self/mountinfo",
    "proc/self/status",
    "sys/devices/system/node/has_memory",
    "sys/devices/system/node/node0/meminfo",
    "sys/devices/system/node/node1/meminfo",
    *(f"sys/fs/cgroup/{name}" for name in GROUP_FILES),
    *(f"sys/fs/cgroup/a/{name}" for name in GROUP_FILES),
]


@settings(max_examples=100, deadline=None)
@given(
    files=st.lists(st.dictionaries(st.sampled_from(FILES), garbage), min_size=1, max_size=3),
    version=st.sampled_from([None, 1, 2]),
    total=st.integers(min_value=0, max_value=2**50),
    available=st.integers(min_value=0, max_value=2**50),
)
def test_whatever_the_files_say_available_is_between_zero_and_total(
    files: list[dict[str, bytes]], version: int | None, total: int, available: int
) -> None:
    with tempfile.TemporaryDirectory() as directory:
        machine = Machine(Path(directory))
        machine.total, machine.available = total, available
        if version == 1:
            machine.process("3:memory:/a\n", V1_MOUNT.format(top="/", point="/sys/fs/cgroup"))
        elif version == 2:
            machine.process("0::/a\n", V2_MOUNT.format(top="/", point="/sys/fs/cgroup"))
        machine.nodes("1", node(0, MemTotal=5, MemFree=2), node(1, MemTotal=7, MemFree=3))
        for contents in files:
            for name, content in contents.items():
                path = machine.root / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)
            found_available, found_total = machine.memory()
            assert 0 <= found_available <= found_total <= total
            assert found_available <= available


class TestProcess:
    def run(self, script: str, *arguments: str) -> str:
        done = subprocess.run(
            [sys.executable, "-W", "error", "-c", script, *arguments],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout

    def test_importing_is_light_and_nothing_is_said_at_exit(self) -> None:
        script = (
            "import sys; before = set(sys.modules)\n"
            "from compat_patches.patches.host_memory import host_memory\n"
            "print(*sorted(set(sys.modules) - before))\n"
            "host_memory(); print('torch' in sys.modules)"
        )
        imported, torch = self.run(script).splitlines()
        heavy = {
            "psutil",
            "torch",
            "typing",
            "re",
            "pathlib",
            "collections",
            "ctypes",
            "subprocess",
            "dataclasses",
        }
        assert not heavy & set(imported.split())
        assert torch == "False"

    def test_a_forked_child_looks_for_itself(self, service: Machine) -> None:
        script = (
            "import os, sys\n"
            "from compat_patches.patches.host_memory import HostMemory\n"
            "memory = HostMemory(sys.argv[1], lambda: (1, 1))\n"
            "memory(); parent = memory._view\n"
            "child = os.fork()\n"
            "if not child:\n"
            "    memory(); os._exit(memory._view is parent)\n"
            "print(os.waitpid(child, 0)[1], memory() and memory._view is parent)"
        )
        assert self.run(script, str(service.root)) == "0 True\n"
