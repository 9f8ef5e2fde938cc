"""Control groups: which limits count, as seen from the machine, from a container, and from a namespace."""

from __future__ import annotations

import os

import pytest
from made_up_machine import V1_MOUNT, V2_MOUNT, GiB, Machine

from compat_patches.patches.control_groups import memory_groups


class TestCgroupV2:
    def test_a_limit_caps_both_and_usage_is_taken_off(self, service: Machine) -> None:
        service.v2("/sys/fs/cgroup/system.slice/llm.service", limit=8 * GiB, usage=3 * GiB)
        assert service.memory() == (5 * GiB, 8 * GiB)

    def test_inactive_page_cache_is_available(self, service: Machine) -> None:
        service.v2("/sys/fs/cgroup/system.slice/llm.service", limit=8 * GiB, usage=7 * GiB, inactive=4 * GiB)
        assert service.memory() == (5 * GiB, 8 * GiB)

    def test_high_below_max_is_the_limit(self, service: Machine) -> None:
        service.v2("/sys/fs/cgroup/system.slice/llm.service", limit=8 * GiB, high=6 * GiB, usage=GiB)
        assert service.memory() == (5 * GiB, 6 * GiB)

    def test_max_below_high_is_the_limit(self, service: Machine) -> None:
        service.v2("/sys/fs/cgroup/system.slice/llm.service", limit=6 * GiB, high=8 * GiB, usage=GiB)
        assert service.memory() == (5 * GiB, 6 * GiB)

    def test_high_alone_is_a_limit(self, service: Machine) -> None:
        service.v2("/sys/fs/cgroup/system.slice/llm.service", high=6 * GiB, usage=GiB)
        assert service.memory() == (5 * GiB, 6 * GiB)
        (service.root / "sys/fs/cgroup/system.slice/llm.service/memory.max").unlink()
        assert service.memory() == (5 * GiB, 6 * GiB)

    def test_the_limit_of_an_ancestor_counts(self, service: Machine) -> None:
        service.v2("/sys/fs/cgroup/system.slice", limit=4 * GiB, usage=3 * GiB)
        assert service.memory() == (1 * GiB, 4 * GiB)

    def test_total_and_available_may_come_from_different_levels(self, service: Machine) -> None:
        service.v2("/sys/fs/cgroup/system.slice", limit=16 * GiB, usage=15 * GiB)
        service.v2("/sys/fs/cgroup/system.slice/llm.service", limit=8 * GiB, usage=2 * GiB)
        assert service.memory() == (1 * GiB, 8 * GiB)

    def test_every_level_of_a_deep_tree_counts(self, machine: Machine) -> None:
        names = [f"level{count}" for count in range(12)]
        machine.process("0::/" + "/".join(names), V2_MOUNT.format(top="/", point="/sys/fs/cgroup"))
        for count in range(len(names) + 1):
            machine.v2("/sys/fs/cgroup/" + "/".join(names[:count]))
        for count in range(len(names) + 1):
            directory = "/sys/fs/cgroup/" + "/".join(names[:count])
            machine.v2(directory, limit=2 * GiB, usage=GiB)
            assert machine.memory() == (1 * GiB, 2 * GiB), directory
            machine.v2(directory)
            assert machine.memory() == (48 * GiB, 64 * GiB), directory

    def test_the_machine_has_the_last_word_on_what_is_available(self, service: Machine) -> None:
        service.v2("/sys/fs/cgroup/system.slice/llm.service", limit=60 * GiB)
        assert service.memory() == (48 * GiB, 60 * GiB)

    def test_a_limit_above_the_machine_is_none(self, service: Machine) -> None:
        service.v2("/sys/fs/cgroup/system.slice/llm.service", limit=65 * GiB, usage=64 * GiB)
        assert service.memory() == (48 * GiB, 64 * GiB)

    def test_a_group_over_its_limit_has_nothing_left(self, service: Machine) -> None:
        service.v2("/sys/fs/cgroup/system.slice/llm.service", high=2 * GiB, usage=3 * GiB)
        assert service.memory() == (0, 2 * GiB)

    def test_more_page_cache_than_usage_gives_no_more_than_the_limit(self, service: Machine) -> None:
        service.v2("/sys/fs/cgroup/system.slice/llm.service", limit=GiB, usage=5, inactive=GiB)
        assert service.memory() == (GiB, GiB)

    def test_a_limit_of_zero_is_a_limit(self, service: Machine) -> None:
        service.v2("/sys/fs/cgroup/system.slice/llm.service", limit=0)
        assert service.memory() == (0, 0)

    def test_swap_does_not_count(self, service: Machine) -> None:
        directory = "/sys/fs/cgroup/system.slice/llm.service"
        service.v2(directory, limit=8 * GiB)
        service.write(f"{directory}/memory.swap.max", GiB)
        service.write(f"{directory}/memory.low", GiB)
        assert service.memory() == (8 * GiB, 8 * GiB)

    def test_sibling_and_child_groups_do_not_count(self, service: Machine) -> None:
        service.v2("/sys/fs/cgroup/system.slice/other.service", limit=GiB)
        service.v2("/sys/fs/cgroup/system.slice/llm.service/worker", limit=GiB)
        assert service.memory() == (48 * GiB, 64 * GiB)

    def test_the_root_group_has_no_files_and_no_limit(self, service: Machine) -> None:
        service.write("/sys/fs/cgroup/cgroup.controllers", "cpu memory")
        service.v2("/sys/fs/cgroup/system.slice/llm.service", limit=8 * GiB)
        assert service.memory() == (8 * GiB, 8 * GiB)


class TestCgroupV1:
    def process(self, machine: Machine, path: str) -> None:
        machine.process(
            f"9:name=systemd:/\n4:cpuset:/elsewhere\n3:memory:{path}\n0::/unified\n",
            "33 31 0:30 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n",
            V1_MOUNT.format(top="/", point="/sys/fs/cgroup/memory"),
            V2_MOUNT.format(top="/", point="/sys/fs/cgroup/unified"),
        )

    def test_own_limit(self, machine: Machine) -> None:
        self.process(machine, "/job")
        machine.v1("/sys/fs/cgroup/memory")
        machine.v1("/sys/fs/cgroup/memory/job", limit=8 * GiB, usage=7 * GiB, inactive=4 * GiB)
        assert machine.memory() == (5 * GiB, 8 * GiB)

    def test_the_number_for_unlimited_is_no_limit(self, machine: Machine) -> None:
        self.process(machine, "/job")
        machine.v1("/sys/fs/cgroup/memory/job", usage=63 * GiB)
        assert machine.memory() == (48 * GiB, 64 * GiB)
        # With pages of 64 KiB it is another number.
        machine.v1("/sys/fs/cgroup/memory/job", limit=9223372036854710272, usage=63 * GiB)
        assert machine.memory() == (48 * GiB, 64 * GiB)

    def test_ancestors_and_different_levels(self, machine: Machine) -> None:
        self.process(machine, "/slurm/uid_1/job_2")
        machine.v1("/sys/fs/cgroup/memory/slurm", limit=32 * GiB, usage=31 * GiB)
        machine.v1("/sys/fs/cgroup/memory/slurm/uid_1")
        machine.v1("/sys/fs/cgroup/memory/slurm/uid_1/job_2", limit=16 * GiB, usage=2 * GiB)
        assert machine.memory() == (1 * GiB, 16 * GiB)

    def test_the_root_group_is_not_read(self, machine: Machine) -> None:
        """The kernel lets nobody limit it, so reading it would be time lost."""
        self.process(machine, "/job")
        machine.v1("/sys/fs/cgroup/memory")
        machine.v1("/sys/fs/cgroup/memory/job")
        machine.write("/sys/fs/cgroup/memory/cgroup.sane_behavior", 0)
        groups = memory_groups(str(machine.root), (machine.root / "proc/self/cgroup").read_bytes())
        directory = f"{machine.root}/sys/fs/cgroup/memory/job"
        assert [group.usage_file for group in groups] == [f"{directory}/memory.usage_in_bytes"]

    def test_the_soft_limit_is_no_limit(self, machine: Machine) -> None:
        self.process(machine, "/job")
        machine.v1("/sys/fs/cgroup/memory/job")
        machine.write("/sys/fs/cgroup/memory/job/memory.soft_limit_in_bytes", GiB)
        assert machine.memory() == (48 * GiB, 64 * GiB)

    def test_controllers_mounted_together(self, machine: Machine) -> None:
        machine.process(
            "5:cpu,memory,pids:/job\n",
            "35 31 0:32 / /cgroup/all rw shared:7 master:1 - cgroup none rw,cpu,memory,pids\n",
        )
        machine.v1("/cgroup/all/job", limit=8 * GiB)
        assert machine.memory() == (8 * GiB, 8 * GiB)

    def test_hybrid_with_memory_in_v2(self, machine: Machine) -> None:
        machine.process(
            "1:cpuset:/memory\n0::/memory\n",
            "33 31 0:30 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n",
            V2_MOUNT.format(top="/", point="/sys/fs/cgroup/unified"),
        )
        machine.v2("/sys/fs/cgroup/unified/memory", limit=8 * GiB)
        assert machine.memory() == (8 * GiB, 8 * GiB)

    def test_a_limit_at_the_root_of_another_hierarchy_is_not_ours(self, machine: Machine) -> None:
        self.process(machine, "/job")
        machine.v1("/sys/fs/cgroup/memory/job")
        machine.v2("/sys/fs/cgroup/unified/unified", limit=GiB)
        machine.v1("/sys/fs/cgroup/cpuset/elsewhere", limit=GiB)
        assert machine.memory() == (48 * GiB, 64 * GiB)


class TestContainers:
    def test_namespaced_v2_shows_its_own_group_as_root(self, machine: Machine) -> None:
        machine.process("0::/\n", V2_MOUNT.format(top="/", point="/sys/fs/cgroup"))
        machine.v2("/sys/fs/cgroup", limit=8 * GiB, usage=GiB)
        machine.write("/sys/fs/cgroup/cgroup.controllers", "cpu memory")
        assert machine.memory() == (7 * GiB, 8 * GiB)

    def test_bind_mount_of_the_own_group_without_a_namespace(self, machine: Machine) -> None:
        machine.process(
            "3:memory:/docker/0123abcd/worker\n",
            V1_MOUNT.format(top="/docker/0123abcd", point="/sys/fs/cgroup/memory"),
        )
        machine.v1("/sys/fs/cgroup/memory", limit=8 * GiB, usage=GiB)
        machine.v1("/sys/fs/cgroup/memory/worker", limit=9 * GiB, usage=3 * GiB)
        assert machine.memory() == (6 * GiB, 8 * GiB)

    def test_names_that_only_begin_alike_are_different_groups(self, machine: Machine) -> None:
        machine.process(
            "3:memory:/docker/0123\n",
            V1_MOUNT.format(top="/docker/01", point="/mnt/other"),
            V1_MOUNT.format(top="/docker/0123", point="/mnt/ours"),
        )
        machine.v1("/mnt/other", limit=GiB)
        machine.v1("/mnt/other/23", limit=GiB)
        machine.v1("/mnt/ours", limit=8 * GiB)
        assert machine.memory() == (8 * GiB, 8 * GiB)

    def test_the_mount_that_shows_most_ancestors_is_read(self, machine: Machine) -> None:
        machine.process(
            "0::/kubepods/pod1/ctr\n",
            V2_MOUNT.format(top="/kubepods/pod1/ctr", point="/sys/fs/cgroup"),
            V2_MOUNT.format(top="/", point="/host/sys/fs/cgroup"),
        )
        machine.v2("/sys/fs/cgroup", limit=16 * GiB)
        machine.v2("/host/sys/fs/cgroup/kubepods/pod1", limit=8 * GiB)
        machine.v2("/host/sys/fs/cgroup/kubepods/pod1/ctr", limit=16 * GiB)
        assert machine.memory() == (8 * GiB, 8 * GiB)

    def test_a_mount_that_is_mounted_over_is_not_read(self, machine: Machine) -> None:
        machine.process(
            "0::/pod/ctr\n",
            V2_MOUNT.format(top="/", point="/sys/fs/cgroup"),
            V2_MOUNT.format(top="/pod/ctr", point="/sys/fs/cgroup"),
        )
        machine.v2("/sys/fs/cgroup", limit=8 * GiB)
        assert machine.memory() == (8 * GiB, 8 * GiB)

    def test_a_mount_hidden_by_another_file_system_is_not_read(self, machine: Machine) -> None:
        machine.process(
            "0::/pod/ctr\n",
            V2_MOUNT.format(top="/", point="/hidden"),
            V2_MOUNT.format(top="/pod/ctr", point="/sys/fs/cgroup"),
        )
        machine.v2("/sys/fs/cgroup", limit=8 * GiB)
        assert machine.memory() == (8 * GiB, 8 * GiB)

    def test_a_mount_of_another_group_only_goes_by_the_top_of_the_mount(self, machine: Machine) -> None:
        machine.process("0::/docker/b\n", V2_MOUNT.format(top="/docker/a", point="/sys/fs/cgroup"))
        machine.v2("/sys/fs/cgroup", limit=8 * GiB)
        assert machine.memory() == (8 * GiB, 8 * GiB)

    def test_a_group_above_the_namespace_with_the_mount_made_outside(self, machine: Machine) -> None:
        machine.process("0::/../../init.scope\n", V2_MOUNT.format(top="/../..", point="/sys/fs/cgroup"))
        machine.v2("/sys/fs/cgroup/init.scope", limit=8 * GiB)
        assert machine.memory() == (8 * GiB, 8 * GiB)

    @pytest.mark.parametrize("path", ["/../..", "/../../elsewhere"])
    def test_a_group_outside_of_the_mount_goes_by_the_top_of_the_mount(self, machine: Machine, path: str) -> None:
        machine.process(f"0::{path}\n", V2_MOUNT.format(top="/", point="/sys/fs/cgroup"))
        machine.v2("/sys/fs", limit=GiB)
        machine.v2("/sys/fs/cgroup", limit=8 * GiB)
        assert machine.memory() == (8 * GiB, 8 * GiB)

    def test_a_path_of_the_host_in_a_mount_of_the_container(self, machine: Machine) -> None:
        machine.process("0::/kubepods/pod1/ctr\n", V2_MOUNT.format(top="/", point="/sys/fs/cgroup"))
        machine.v2("/sys/fs/cgroup", limit=8 * GiB)
        assert machine.memory() == (8 * GiB, 8 * GiB)

    @pytest.mark.parametrize(("own", "below"), [("/", ""), ("/worker", "/worker")])
    def test_hidden_names_are_found_by_our_process(self, machine: Machine, own: str, below: str) -> None:
        machine.process(f"0::{own}\n", V2_MOUNT.format(top="/../..", point="/sys/fs/cgroup"))
        for group, pid, limit in (("a/b", 1, GiB), ("kubepods/pod7", os.getpid(), 8 * GiB)):
            machine.v2(f"/sys/fs/cgroup/{group}{below}", limit=limit)
            machine.write(f"/sys/fs/cgroup/{group}{below}/cgroup.procs", f"0\n{pid}\n")
        machine.v2("/sys/fs/cgroup/kubepods", limit=16 * GiB, usage=15 * GiB)
        assert machine.memory() == (1 * GiB, 8 * GiB)

    def test_hidden_names_that_are_not_found_leave_the_top_of_the_mount(self, machine: Machine) -> None:
        machine.process("0::/\n", V2_MOUNT.format(top="/../..", point="/sys/fs/cgroup"))
        machine.v2("/sys/fs/cgroup", limit=8 * GiB)
        machine.v2("/sys/fs/cgroup/a/b", limit=GiB)
        assert machine.memory() == (8 * GiB, 8 * GiB)

    def test_blanks_colons_and_backslashes_in_names(self, machine: Machine) -> None:
        machine.process(
            "0::/a b:c\\d\n",
            V2_MOUNT.format(top="/", point=r"/mnt/my\040groups\134"),
        )
        machine.v2("/mnt/my groups\\/a b:c\\d", limit=8 * GiB)
        assert machine.memory() == (8 * GiB, 8 * GiB)
