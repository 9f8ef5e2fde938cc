"""Runs every benchmark, each in a process of its own, and passes on what it prints about its budget."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent


def main() -> int:
    """Returns the number of benchmarks that could not be run."""
    failed = 0
    for path in sorted(HERE.glob("[!_]*.py")):
        print(f"== {path.stem}", flush=True)
        arguments = ["--fast", "--quiet"] if "pyperf.Runner" in path.read_text(encoding="utf-8") else []
        done = subprocess.run([sys.executable, "-m", f"benchmarks.{path.stem}", *arguments], cwd=HERE.parent)
        failed += done.returncode != 0
    return failed


if __name__ == "__main__":
    sys.exit(main())
