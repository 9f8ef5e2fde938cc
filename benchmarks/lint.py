"""How long `lint` takes on a tree, beside ruff alone on the same names and beside a plain search for them.

    python benchmarks/lint.py TREE

Every measurement is a fresh process, the three take turns, and the ratio of each round counts, so that what
else the machine does falls on all of them alike. "cold" drops the tree's files from the page cache first.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from compat_patches.lint.resolving import configuration, find_ruff
from compat_patches.lint.table import load_table

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


def seconds(command: list[str]) -> float:
    """Run a command and return how long it took, in seconds. Its exit code may be 0 or 1."""
    started = time.perf_counter()
    result = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False)
    elapsed = time.perf_counter() - started
    if result.returncode not in (0, 1):
        raise SystemExit(f"{command[0]} ended with {result.returncode}: {result.stderr.decode()}")
    return elapsed


def forget(tree: Path) -> None:
    """Drop the tree's files from the page cache, which any user may do with files that are written out."""
    for path in tree.rglob("*.py"):
        if path.is_file():
            with path.open("rb") as file:
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def main() -> None:
    parser = argparse.ArgumentParser(description="Time lint beside ruff alone and beside a plain search.")
    parser.add_argument("tree", type=Path)
    parser.add_argument("--rounds", type=int, default=7)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        measured = commands(arguments.tree, Path(folder))
        for state in ("cold", "warm"):
            times: dict[str, list[float]] = {name: [] for name in measured}
            for _ in range(arguments.rounds):
                for name, command in measured.items():
                    if state == "cold":
                        forget(arguments.tree)
                    times[name].append(seconds(command))
            for name, values in times.items():
                print(f"{state} {name:7} median {statistics.median(values):.3f} s, best {min(values):.3f} s")
            for other in ("ruff", "search"):
                ratios = [lint / beside for lint, beside in zip(times["lint"], times[other], strict=True)]
                print(
                    f"{state} lint / {other}: median {statistics.median(ratios):.2f}, "
                    f"from {min(ratios):.2f} to {max(ratios):.2f}"
                )


if __name__ == "__main__":
    main()
