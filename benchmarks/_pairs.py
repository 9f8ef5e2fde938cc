"""Paired fresh processes: two programs are started in turns, so that what else the machine does meets both alike.

Whole processes are what is measured, since starting one is what costs. On a machine that others use too, seconds of
processor time tell more than the clock; both are printed.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
import venv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class Run:
    """One process: seconds by the clock, and of processor time, its children included."""

    clock: float
    processor: float


def run(command: Sequence[str], environment: Mapping[str, str]) -> Run:
    """Start a process, wait for it, and say what it took.

    Raises:
        RuntimeError: it failed.
    """
    started = time.perf_counter()
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    assert process.stderr is not None
    errors = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    taken = time.perf_counter() - started
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"{command} failed: {errors.decode(errors='replace')}")
    return Run(taken, usage.ru_utime + usage.ru_stime)


def in_turns(variants: Mapping[str, tuple[Sequence[str], Mapping[str, str]]], rounds: int) -> dict[str, list[Run]]:
    """Run each variant once a round; who goes first changes from round to round. One round more warms the caches."""
    found: dict[str, list[Run]] = {name: [] for name in variants}
    names = list(variants)
    for number in range(rounds + 1):
        for name in names[number % len(names) :] + names[: number % len(names)]:
            taken = run(*variants[name])
            if number:
                found[name].append(taken)
    return found


def ratio(ours: Sequence[Run], base: Sequence[Run]) -> tuple[float, float]:
    """The median over the rounds of ours by the base: of the clock, and of processor time."""
    pairs = list(zip(ours, base, strict=True))
    return (
        statistics.median(mine.clock / theirs.clock for mine, theirs in pairs),
        statistics.median(mine.processor / theirs.processor for mine, theirs in pairs),
    )


def milliseconds(runs: Sequence[Run]) -> tuple[float, float]:
    """The medians: of the clock, and of processor time."""
    return (
        1e3 * statistics.median(taken.clock for taken in runs),
        1e3 * statistics.median(taken.processor for taken in runs),
    )


def environment_with_ours(folder: Path) -> Path:
    """Make a virtual environment with this checkout installed as a wheel, and what else this Python finds.

    Returns:
        Its ``site-packages``.
    """
    site_packages = bare_environment(folder)
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    wheels = folder / "wheels"
    subprocess.run(
        [*pip, "wheel", "--no-deps", "--no-index", "--no-build-isolation", "--wheel-dir", wheels, ROOT], check=True
    )
    (wheel,) = wheels.glob("*.whl")
    python = folder / "bin" / "python"
    subprocess.run([*pip, "--python", python, "install", "--no-deps", "--no-index", wheel], check=True)
    return site_packages


def bare_environment(folder: Path) -> Path:
    """Make a virtual environment that finds what this Python finds, but reads none of its startup files."""
    import sysconfig

    venv.create(folder, with_pip=False, symlinks=True)
    site_packages = folder / "lib" / "python{}.{}".format(*sys.version_info[:2]) / "site-packages"
    (site_packages / "zz_base.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return site_packages


def plain_environment(**variables: str) -> dict[str, str]:
    """This environment without what tells Python or compat_patches anything, and with ``variables``."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "COMPAT_PATCHES", "VIRTUAL_ENV"))}
    return {**kept, **variables}
