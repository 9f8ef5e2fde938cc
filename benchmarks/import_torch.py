"""What everything active adds to ``import torch``. The budget is 1 %, and no module but ours.

The store is warm, as in every process but the first after an upgrade.

    python -m benchmarks.import_torch [rounds]
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks._pairs import environment_with_ours, in_turns, milliseconds, plain_environment, ratio

BUDGET = 1.01
MODULES = "import json, sys, torch; print(json.dumps(sorted(sys.modules)))"


def modules(python: str, environment: dict[str, str]) -> set[str]:
    done = subprocess.run([python, "-c", MODULES], env=environment, check=True, stdout=subprocess.PIPE, text=True)
    return set(json.loads(done.stdout))


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        environment_with_ours(folder / "ours")
        python = str(folder / "ours/bin/python")
        plain = plain_environment(XDG_CACHE_HOME=str(folder / "cache"))
        on = {**plain, "COMPAT_PATCHES": "on"}
        command = [python, "-c", "import torch"]
        found = in_turns({"import torch": (command, plain), "with everything active": (command, on)}, rounds)
        difference = modules(python, on) ^ modules(python, plain)
    for title, runs in found.items():
        clock, processor = milliseconds(runs)
        print(f"{title:<24}{clock:9.1f} ms by the clock {processor:9.1f} ms of processor time")
    by_clock, by_processor = ratio(found["with everything active"], found["import torch"])
    print(f"ratio over {rounds} pairs: {by_clock:.4f} by the clock, {by_processor:.4f} of processor time")
    print(f"allowed: {BUDGET}")
    foreign = sorted(name for name in difference if name.partition(".")[0] != "compat_patches")
    print(f"modules more: {len(difference)}, of which not ours: {foreign or 'none'}")


if __name__ == "__main__":
    main()
