"""How long `lint` takes on a tree, beside ruff alone on the same names and beside a plain search for them.

    python -m benchmarks.lint [TREE]

TREE is the installed torch by default. Every measurement is a fresh process, the three take turns, and the
ratio of each round counts, so that what else the machine does falls on all of them alike. Processor time is
less disturbed by that than time on the wall. "cold" drops the tree's files from the page cache first.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from compat_patches.lint.resolving import configuration, find_ruff
from compat_patches.lint.table import load_table

BUDGET = 2.0
"""lint beside ruff alone."""

_SEARCH = """
import os, re, sys
names = re.compile(sys.argv[2])
found = 0
for folder, folders, files in os.walk(sys.argv[1]):
    for file in files:
        if file.endswith(".py"):
            with open(os.path.join(folder, file), encoding="utf-8", errors="replace") as text:
                found += len(names.findall(text.read()))
print(found)
"""


def commands(tree: Path, folder: Path) -> dict[str, list[str]]:
    """Return what is measured: a name and its command line."""
    table = load_table()
    config = folder / "ruff.toml"
    config.write_text(configuration(table), encoding="utf-8")
    names = "|".join(sorted((name.replace(".", r"\.") for name in table.by_name), key=len, reverse=True))
    ruff = [
        find_ruff(),
        "check",
        f"--config={config}",
        "--no-cache",
        "--exit-zero",
        "--quiet",
        "--ignore-noqa",
    ]
    return {
        "search": [sys.executable, "-c", _SEARCH, str(tree), names],
        "ruff": [*ruff, "--output-format=json", str(tree)],
        "lint": [
            sys.executable,
            "-c",
            "from compat_patches.cli.lint import lint; lint()",
            "--format=json",
            "--min-torch=2.11",
            str(tree),
        ],
    }


def seconds(command: list[str]) -> tuple[float, float]:
    """Run a command; return its time on the wall and that of all its processors, in seconds."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    started = time.perf_counter()
    result = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False)
    elapsed = time.perf_counter() - started
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    # 1 says that there are findings.
    if result.returncode not in (0, 1):
        raise SystemExit(f"{command[0]} ended with {result.returncode}: {result.stderr.decode()}")
    return elapsed, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def forget(tree: Path) -> None:
    """Drop the tree's files from the page cache, which any user may do with files that are written out."""
    for path in tree.rglob("*.py"):
        if path.is_file():
            with path.open("rb") as file:
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def default_tree() -> Path:
    """Return the folder of the installed torch, which is not imported."""
    found = importlib.util.find_spec("torch")
    if found is None or not found.submodule_search_locations:
        raise SystemExit("there is no torch to look at; name a TREE")
    return Path(found.submodule_search_locations[0])


def main() -> None:
    parser = argparse.ArgumentParser(description="Time lint beside ruff alone and beside a plain search.")
    parser.add_argument("tree", type=Path, nargs="?")
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    tree = arguments.tree or default_tree()
    with tempfile.TemporaryDirectory() as folder:
        measured = commands(tree, Path(folder))
        for state in ("cold", "warm"):
            times: dict[str, list[tuple[float, float]]] = {name: [] for name in measured}
            for _ in range(arguments.rounds):
                for name, command in measured.items():
                    if state == "cold":
                        forget(tree)
                    times[name].append(seconds(command))
            for name, values in times.items():
                wall, processors = (statistics.median(column) for column in zip(*values, strict=True))
                print(f"{state} {name:7} {wall:.3f} s on the wall, {processors:.3f} s of processors")
            for other, budget in (("ruff", f"budget {BUDGET:.1f}"), ("search", "no budget")):
                pairs = list(zip(times["lint"], times[other], strict=True))
                wall, processors = (
                    statistics.median(lint[column] / beside[column] for lint, beside in pairs) for column in (0, 1)
                )
                said = f"{wall:.2f} on the wall, {processors:.2f} of processors"
                print(f"{state} lint / {other}: {said} ({budget})")


if __name__ == "__main__":
    main()
