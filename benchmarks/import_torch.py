"""What everything active adds to ``import torch``. The budget is 1 %, and no module but ours.

The store is warm, as in every process but the first after an upgrade.

    python -m benchmarks.import_torch [rounds]
    python -m benchmarks.import_torch --instructions [rounds]

One run of ``import torch`` differs from the next by more than the budget, so the second form counts instructions, with
valgrind, which two runs agree upon to a millionth where addresses and hashes are fixed and OpenMP starts no threads.
What still moves is when the garbage collector makes its full passes: a few hundred objects more anywhere, and one comes
earlier or later, at a hundredth of the whole. It is counted once with the collector off, and then over rounds with
other numbers of objects.
"""

from __future__ import annotations

import json
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from benchmarks._pairs import environment_with_ours, in_turns, milliseconds, plain_environment, ratio

BUDGET = 1.01
STEADY = {"PYTHONHASHSEED": "0", "OMP_NUM_THREADS": "1"}
MODULES = "import json, sys, torch; print(json.dumps(sorted(sys.modules)))"


def modules(python: str, environment: dict[str, str]) -> set[str]:
    done = subprocess.run([python, "-c", MODULES], env=environment, check=True, stdout=subprocess.PIPE, text=True)
    return set(json.loads(done.stdout))


def instructions(python: str, environment: dict[str, str], code: str) -> int:
    """How many instructions a process takes in its own code, the kernel's left out.

    Raises:
        RuntimeError: valgrind or setarch is not here, or the program failed.
    """
    valgrind, setarch = shutil.which("valgrind"), shutil.which("setarch")
    if valgrind is None or setarch is None:
        raise RuntimeError("counting instructions takes valgrind and setarch (of util-linux); install them")
    command = [setarch, "-R", valgrind, "--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null"]
    done = subprocess.run([*command, python, "-c", code], env={**environment, **STEADY}, capture_output=True, text=True)
    counted = re.search(r"I\s+refs:\s+([\d,]+)", done.stderr)
    if done.returncode or counted is None:
        raise RuntimeError(f"{code!r} under valgrind failed: {done.stderr}")
    return int(counted[1].replace(",", ""))


def count(python: str, on: dict[str, str], plain: dict[str, str], rounds: int) -> None:
    subprocess.run([python, "-c", "import torch"], env=on, check=True)
    programs = {"without the collector": "import gc; gc.disable(); import torch"}
    for number in range(rounds):
        programs[f"{1000 * number} objects more"] = f"kept = [[] for _ in range({1000 * number})]; import torch"
    ratios = []
    with ThreadPoolExecutor(2) as pool:
        for title, code in programs.items():
            ours, bare = pool.map(lambda environment, code=code: instructions(python, environment, code), (on, plain))
            ratios.append(ours / bare)
            print(f"{title:<24}{bare:14,d} and {ours:14,d} instructions, ratio {ours / bare:.4f}", flush=True)
    if rounds:
        print(f"mean with the collector: {statistics.mean(ratios[1:]):.4f}")
    print(f"allowed: {BUDGET}")


def main() -> None:
    arguments = [argument for argument in sys.argv[1:] if argument != "--instructions"]
    counted = len(arguments) < len(sys.argv) - 1
    rounds = int(arguments[0]) if arguments else 6 if counted else 20
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        environment_with_ours(folder / "ours")
        python = str(folder / "ours/bin/python")
        plain = plain_environment(XDG_CACHE_HOME=str(folder / "cache"))
        on = {**plain, "COMPAT_PATCHES": "on"}
        if counted:
            count(python, on, plain, rounds)
            return
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
