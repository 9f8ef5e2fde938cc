"""Host memory between two calls: limits and groups that change, and the files kept open meanwhile."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import psutil
import pytest
from made_up_machine import V2_MOUNT, GiB, Machine

import compat_patches.patches.host_memory as host_memory_module
from compat_patches.patches.control_groups import MemoryGroup, memory_groups


class TestChangesBetweenCalls:
    def test_a_changed_limit_is_seen(self, service: Machine) -> None:
        directory = "/sys/fs/cgroup/system.slice/llm.service"
        for limit in (8 * GiB, 4 * GiB, "max", 0, 16 * GiB):
            service.v2(directory, limit=limit, usage=0)
            expected = 64 * GiB if limit == "max" else limit
            assert service.memory() == (min(48 * GiB, expected), expected)

    def test_changed_usage_is_seen(self, service: Machine) -> None:
        directory = "/sys/fs/cgroup/system.slice/llm.service"
        for usage, inactive in ((GiB, 0), (3 * GiB, 0), (3 * GiB, GiB)):
            service.v2(directory, limit=8 * GiB, usage=usage, inactive=inactive)
            assert service.memory() == (8 * GiB - usage + inactive, 8 * GiB)

    def test_a_move_to_another_group_is_seen(self, service: Machine) -> None:
        assert service.memory() == (48 * GiB, 64 * GiB)
        service.v2("/sys/fs/cgroup/batch", limit=8 * GiB)
        service.write("/proc/self/cgroup", "0::/batch\n")
        assert service.memory() == (8 * GiB, 8 * GiB)
        service.write("/proc/self/cgroup", "0::/system.slice/llm.service\n")
        assert service.memory() == (48 * GiB, 64 * GiB)

    def test_files_of_the_old_group_are_closed_after_a_move(self, service: Machine) -> None:
        service.v2("/sys/fs/cgroup/batch", limit=8 * GiB)
        counts = set()
        for _ in range(50):
            for path in ("/batch", "/system.slice/llm.service"):
                service.write("/proc/self/cgroup", f"0::{path}\n")
                service.memory()
            counts.add(psutil.Process().num_fds())
        assert len(counts) == 1

    def test_a_group_made_anew_under_its_old_name_is_seen(self, service: Machine) -> None:
        directory = "/sys/fs/cgroup/system.slice/llm.service"
        service.v2(directory, limit=8 * GiB)
        assert service.memory() == (8 * GiB, 8 * GiB)
        for name in ("memory.max", "memory.high", "memory.current", "memory.stat"):
            (service.root / directory.lstrip("/") / name).unlink()
        assert service.memory() == (48 * GiB, 64 * GiB)
        service.v2(directory, limit=4 * GiB)
        assert service.memory() == (4 * GiB, 4 * GiB)

    def test_a_file_system_mounted_later_is_seen(self, machine: Machine) -> None:
        machine.process("0::/job\n")
        assert machine.memory() == (48 * GiB, 64 * GiB)
        machine.process("0::/job\n", V2_MOUNT.format(top="/", point="/sys/fs/cgroup"))
        machine.v2("/sys/fs/cgroup/job", limit=8 * GiB)
        assert machine.memory() == (8 * GiB, 8 * GiB)

    def test_a_controller_enabled_later_is_seen(self, machine: Machine) -> None:
        machine.process("0::/job\n", V2_MOUNT.format(top="/", point="/sys/fs/cgroup"))
        machine.write("/sys/fs/cgroup/job/cgroup.controllers", "cpu")
        machine.write("/sys/fs/cgroup/job/cgroup.events", "populated 1")
        assert machine.memory() == (48 * GiB, 64 * GiB)
        machine.v2("/sys/fs/cgroup/job", limit=8 * GiB)
        assert machine.memory() == (8 * GiB, 8 * GiB)

    def test_a_group_that_vanishes_in_mid_read_is_read_again(self, service: Machine) -> None:
        """The move comes after the membership was read: the old group's files die, the new one's count."""
        directory = "/sys/fs/cgroup/system.slice/llm.service"
        service.v2(directory, limit=8 * GiB)
        service.v2("/sys/fs/cgroup/batch", limit=4 * GiB)
        assert service.memory() == (8 * GiB, 8 * GiB)
        view = service.memory._view
        assert view is not None
        holds = view.holds

        def holds_and_is_moved_then() -> bool:
            answer = holds()
            service.write("/proc/self/cgroup", "0::/batch\n")
            for name in ("memory.max", "memory.high", "memory.current", "memory.stat"):
                (service.root / directory.lstrip("/") / name).unlink(missing_ok=True)
            return answer

        view.holds = holds_and_is_moved_then  # type: ignore[method-assign]
        assert service.memory() == (4 * GiB, 4 * GiB)

    def test_a_move_while_the_first_look_is_taken_is_seen(
        self, service: Machine, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        service.v2("/sys/fs/cgroup/system.slice/llm.service", limit=8 * GiB)
        service.v2("/sys/fs/cgroup/batch", limit=4 * GiB)

        def find_and_move(root: str, membership: bytes) -> list[MemoryGroup]:
            groups = memory_groups(root, membership)
            service.write("/proc/self/cgroup", "0::/batch\n")
            return groups

        monkeypatch.setattr(host_memory_module, "memory_groups", find_and_move)
        assert service.memory() == (4 * GiB, 4 * GiB)

    @pytest.mark.parametrize("names", [("cgroup", "memory.max", "memory.high"), ("memory.max",)])
    @pytest.mark.parametrize("limit", [8 * GiB, "max"])
    def test_descriptors_closed_and_used_by_others_are_noticed_and_left_alone(
        self, service: Machine, tmp_path: Path, limit: object, names: tuple[str, ...]
    ) -> None:
        """What a daemon does: close all there is, then open files of its own, which get the same numbers."""
        service.v2("/sys/fs/cgroup/system.slice/llm.service", limit=limit)
        expected = service.memory()
        view = service.memory._view
        assert view is not None
        files = view.files._files.items()
        descriptors = [file._descriptor for path, file in files if os.path.basename(path) in names]
        foreign = tmp_path / "daemon.pid"
        foreign.write_text("4711\n")
        source = os.open(foreign, os.O_RDONLY)
        try:
            for descriptor in descriptors:
                os.dup2(source, descriptor)
            assert service.memory() == expected
            assert service.memory._view is not view
            del view, files
            for descriptor in descriptors:
                assert os.path.sameopenfile(descriptor, source)
        finally:
            for descriptor in (source, *descriptors):
                os.close(descriptor)
        assert service.memory() == expected

    def test_closed_descriptors_are_opened_again(self, service: Machine) -> None:
        service.v2("/sys/fs/cgroup/system.slice/llm.service", limit=8 * GiB)
        assert service.memory() == (8 * GiB, 8 * GiB)
        view = service.memory._view
        assert view is not None
        for file in view.files._files.values():
            os.close(file._descriptor)
        assert service.memory() == (8 * GiB, 8 * GiB)

    def test_descriptors_are_not_inherited_by_other_programs(self, service: Machine) -> None:
        service.memory()
        view = service.memory._view
        assert view is not None and view.files._files
        assert not any(os.get_inheritable(file._descriptor) for file in view.files._files.values())

    def test_threads_get_the_same_answer_while_the_process_is_moved(self, service: Machine) -> None:
        service.v2("/sys/fs/cgroup/system.slice/llm.service", limit=8 * GiB)
        service.v2("/sys/fs/cgroup/system.slice/llm2service", limit=4 * GiB)
        answers, errors, done = set(), [], threading.Event()

        def ask() -> None:
            try:
                while not done.is_set():
                    answers.add(service.memory())
            except BaseException as error:
                errors.append(error)

        threads = [threading.Thread(target=ask) for _ in range(4)]
        for thread in threads:
            thread.start()
        # Written in place and of one length, so that no reader sees half of it.
        with open(service.root / "proc/self/cgroup", "r+b", buffering=0) as file:
            for count in range(300):
                os.pwrite(file.fileno(), b"0::/system.slice/llm%cservice\n" % b".2"[count % 2], 0)
        done.set()
        for thread in threads:
            thread.join()
        assert not errors
        assert answers <= {(8 * GiB, 8 * GiB), (4 * GiB, 4 * GiB)}
