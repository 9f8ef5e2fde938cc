"""What activation costs a process that never imports torch, beside an empty hook. The budget is 1.5 times.

The empty hook is a ``.pth`` line that imports one small module, which puts one finder that finds nothing on
``sys.meta_path``. What each adds to a bare interpreter is printed too, and the same of the sitecustomize of
opentelemetry-instrument and of ddtrace-run, where their packages are found.

    python -m benchmarks.activation [rounds] [site-packages with opentelemetry and ddtrace]
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from benchmarks._pairs import (
    bare_environment,
    environment_with_ours,
    in_turns,
    milliseconds,
    plain_environment,
    ratio,
)

BUDGET = 1.5
EMPTY_HOOK = """
import sys


class Finder:
    def find_spec(self, name, path=None, target=None):
        return None


sys.meta_path.insert(0, Finder())
"""


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    others = Path(sys.argv[2]) if len(sys.argv) > 2 else None
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        bare_environment(folder / "bare")
        hook = bare_environment(folder / "hook")
        (hook / "empty_hook.py").write_text(EMPTY_HOOK)
        (hook / "empty_hook.pth").write_text("import empty_hook\n")
        environment_with_ours(folder / "ours")
        nothing = ["-c", "pass"]
        plain = plain_environment(XDG_CACHE_HOME=str(folder / "cache"))
        on = {**plain, "COMPAT_PATCHES": "on"}
        variants = {
            "bare interpreter": ([str(folder / "bare/bin/python"), *nothing], plain),
            "empty hook": ([str(folder / "hook/bin/python"), *nothing], plain),
            "installed, not on": ([str(folder / "ours/bin/python"), *nothing], plain),
            "active": ([str(folder / "ours/bin/python"), *nothing], on),
            "import compat_patches": ([str(folder / "ours/bin/python"), "-c", "import compat_patches"], plain),
        }
        found = in_turns(variants, rounds)
        if others is not None:
            heavy = {"bare interpreter, again": variants["bare interpreter"]}
            for title, inside in (
                ("opentelemetry-instrument", "opentelemetry/instrumentation/auto_instrumentation"),
                ("ddtrace-run", "ddtrace/bootstrap"),
            ):
                # Each as its own command makes it: the folder of its sitecustomize on PYTHONPATH.
                python = bare_environment(folder / title)
                (python / "aa_others.pth").write_text(f"{others}\n")
                path = {**plain, "PYTHONPATH": str(others / inside)}
                heavy[title] = ([str(folder / title / "bin/python"), *nothing], path)
            # They take so long that a few rounds tell.
            found |= in_turns(heavy, max(rounds // 10, 3))
    clock, processor = milliseconds(found["bare interpreter"])
    print(f"{'':<26}{'clock':>10}{'added':>9}{'processor':>12}{'added':>9}   milliseconds, {rounds} rounds")
    for title, runs in found.items():
        here = milliseconds(runs)
        print(f"{title:<26}{here[0]:10.2f}{here[0] - clock:+9.2f}{here[1]:12.2f}{here[1] - processor:+9.2f}")
    for title in ("installed, not on", "active"):
        by_clock, by_processor = ratio(found[title], found["empty hook"])
        print(
            f"{title} / empty hook: {by_clock:.3f} by the clock, {by_processor:.3f} of processor time; {BUDGET} allowed"
        )


if __name__ == "__main__":
    main()
