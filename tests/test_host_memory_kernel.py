"""Host memory in real control groups, where this machine lets us make some."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

MiB = 1 << 20


def own_groups() -> dict[int, Path]:
    """Return the directory of our group in each hierarchy that has the memory controller, by its version."""
    try:
        lines = Path("/proc/self/cgroup").read_text().splitlines()
    except OSError:
        return {}
    groups = {}
    for line in lines:
        number, controllers, path = line.split(":", 2)
        if "memory" in controllers.split(","):
            groups[1] = Path("/sys/fs/cgroup/memory" + path)
        elif number == "0" and Path("/sys/fs/cgroup/cgroup.controllers").exists():
            groups[2] = Path("/sys/fs/cgroup" + path)
    return groups


@pytest.fixture
def real_group(request: pytest.FixtureRequest) -> object:
    """A control group of our own with two groups below each other, or a skip that says why there is none."""
    groups = own_groups()
    if not groups:
        pytest.skip("no memory control group is mounted under /sys/fs/cgroup")
    version, own = min(groups.items())
    # In v2 a group with processes in it cannot hand its controllers down, so ours is made at the top.
    parent = own if version == 1 else Path("/sys/fs/cgroup")
    outer = parent / f"compat-patches-test-{os.getpid()}"
    inner = outer / "inner"
    try:
        outer.mkdir()
    except OSError as error:
        pytest.skip(f"cannot make a control group under {parent}: {error}")
    try:
        if version == 2:
            (outer / "cgroup.subtree_control").write_text("+memory")
        inner.mkdir()
        limit = "memory.limit_in_bytes" if version == 1 else "memory.max"
        if not (inner / limit).exists():
            pytest.skip(f"the memory controller is not handed down to groups under {parent}")
        yield outer, inner, limit
    except OSError as error:
        pytest.skip(f"cannot set up {outer}: {error}")
    finally:
        for group in (inner, outer):
            if group.exists():
                group.rmdir()


class TestRealControlGroup:
    """The kernel's own files: each script moves itself into a group, and out of it before it ends."""

    HEAD = (
        "import json, os, sys\n"
        "from compat_patches.patches.host_memory import HostMemory, host_memory\n"
        "outer, inner, limit, work = sys.argv[1:]\n"
        "def write(path, text):\n"
        "    with open(path, 'w') as file: file.write(str(text))\n"
        "def move(group): write(f'{group}/cgroup.procs', os.getpid())\n"
        "MiB = 1 << 20\n"
        "answers = [host_memory()]\n"
        "def ask(): answers.append(host_memory())\n"
    )

    def run(self, real_group: tuple[Path, Path, str], work: Path, body: str) -> list[list[int]]:
        outer, inner, limit = real_group
        done = subprocess.run(
            [
                sys.executable,
                "-c",
                f"{self.HEAD}{body}\nprint(json.dumps(answers))",
                outer,
                inner,
                limit,
                work,
            ],
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, "")
        return json.loads(done.stdout)

    def test_moves_and_changed_limits_are_seen(self, real_group: tuple[Path, Path, str], tmp_path: Path) -> None:
        body = (
            "move(inner); ask()\n"
            "write(f'{inner}/{limit}', 512 * MiB); ask()\n"
            "write(f'{outer}/{limit}', 256 * MiB); ask()\n"
            "write(f'{inner}/{limit}', 128 * MiB); ask()\n"
        )
        before, moved, own, ancestors, own_again = self.run(real_group, tmp_path, body)
        assert moved[1] == before[1]
        assert [total // MiB for _, total in (own, ancestors, own_again)] == [512, 256, 128]
        for available, total in (own, ancestors, own_again):
            assert total - 64 * MiB < available < total

    def test_memory_in_use_counts_and_page_cache_does_not(
        self, real_group: tuple[Path, Path, str], tmp_path: Path
    ) -> None:
        body = (
            "move(inner); write(f'{inner}/{limit}', 512 * MiB); ask()\n"
            "block = bytearray(b'x') * (100 * MiB); ask(); del block; ask()\n"
            "with open(f'{work}/pages', 'wb') as file:\n"
            "    file.write(bytes(100 * MiB)); file.flush(); os.fsync(file.fileno())\n"
            "ask()\n"
            "usage = 'memory.usage_in_bytes' if limit == 'memory.limit_in_bytes' else 'memory.current'\n"
            "with open(f'{inner}/{usage}') as file: answers.append([int(file.read()), 0])\n"
        )
        _, empty, full, freed, cached, (usage, _) = self.run(real_group, tmp_path, body)
        assert 95 * MiB < empty[0] - full[0] < 105 * MiB
        assert abs(empty[0] - freed[0]) < 5 * MiB
        if usage < 95 * MiB:
            pytest.skip("the pages of the file were not charged to the group")
        assert abs(empty[0] - cached[0]) < 10 * MiB

    def test_a_child_in_another_group_than_its_parent(self, real_group: tuple[Path, Path, str], tmp_path: Path) -> None:
        body = (
            "write(f'{inner}/{limit}', 128 * MiB)\n"
            "reading, writing = os.pipe()\n"
            "child = os.fork()\n"
            "if not child:\n"
            "    move(inner); ask(); os.write(writing, json.dumps(answers[-1]).encode()); os._exit(0)\n"
            "os.waitpid(child, 0); answers.append(json.loads(os.read(reading, 999))); ask()\n"
        )
        before, child, parent = self.run(real_group, tmp_path, body)
        assert child[1] == 128 * MiB
        assert parent[1] == before[1]

    def test_a_group_deleted_and_made_anew_under_its_name(
        self, real_group: tuple[Path, Path, str], tmp_path: Path
    ) -> None:
        body = (
            "move(inner); ask()\n"
            "move(outer if limit == 'memory.limit_in_bytes' else os.path.dirname(outer))\n"
            "os.rmdir(inner); os.mkdir(inner); write(f'{inner}/{limit}', 128 * MiB)\n"
            "move(inner); ask()\n"
        )
        before, first, anew = self.run(real_group, tmp_path, body)
        assert first[1] == before[1]
        assert anew[1] == 128 * MiB

    def test_a_cgroup_namespace_hides_names_but_not_limits(
        self, real_group: tuple[Path, Path, str], tmp_path: Path
    ) -> None:
        body = (
            "import ctypes\n"
            "move(inner); write(f'{inner}/{limit}', 256 * MiB); write(f'{outer}/{limit}', 128 * MiB)\n"
            "CLONE_NEWCGROUP = 0x02000000\n"
            "libc = ctypes.CDLL(None, use_errno=True)\n"
            "if libc.unshare(CLONE_NEWCGROUP):\n"
            "    answers.append(ctypes.get_errno())\n"
            "else:\n"
            "    with open('/proc/self/cgroup') as file: answers.append(file.read())\n"
            "    ask()\n"
            "    write(f'{outer}/{limit}', 512 * MiB); ask()\n"
        )
        _, shown, *answers = self.run(real_group, tmp_path, body)
        if isinstance(shown, int):
            pytest.skip(f"no cgroup namespace can be made: {os.strerror(shown)}")
        assert any(line.endswith(":/") for line in shown.splitlines())
        assert [total // MiB for _, total in answers] == [128, 256]
