"""Faults at random points of fresh processes: each exits as it would without us, and leaves its report.

A process runs a small program over stand-in packages, with patches of every action, and one fault: in the planning of
an action, in a write into a slot, in the import of an implementation, in the call of a factory, in a probe, where
something is registered or taken back, or in an import hook of somebody else's. The same program is run without us; what
it prints and how it exits has to be the same. An interrupt belongs to the program, wherever it comes; it has to end the
program as one does.

    python tests/fault_injection.py --count 200
"""

from __future__ import annotations

import argparse
import collections
import compileall
import functools
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# The checkout's own package, where this is run as a script.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from standins import ROOT, declaration

KINDS = ("Exception", "SystemExit", "KeyboardInterrupt", "MemoryError")
OURS = ("plan", "write", "implementation", "factory", "probe", "entering", "leaving")
HOOKS = ("finder", "loader")
MOST = {"implementation": 1, "entering": 2, "leaving": 2}
"""How often a program comes to a point at least, where that is less than a dozen times."""
ENDS = ("", "sys.exit(3)", "raise ValueError('of the program')", "sys.exit('told')")
EXPLAINED = ("pending", "skipped", "failed", "overlaid", "lost")
TIMEOUT = 120
"""Seconds. A process takes one; under load several."""

FAULTS = """
import builtins, json, os
point, number, kind = json.loads(os.environ["FAULT"])
calls, fired = 0, 0

def at(name):
    global calls, fired
    if name != point or fired:
        return
    calls += 1
    if calls == number:
        fired = 1
        raise getattr(builtins, kind)("injected")
"""

PROGRAM = """
import atexit, importlib.abc, json, os, sys
import faults

class Loader(importlib.abc.Loader):
    def __init__(self, loader):
        self.loader = loader
    def create_module(self, spec):
        return self.loader.create_module(spec)
    def exec_module(self, module):
        self.loader.exec_module(module)
        faults.at("loader")

class Finder:
    def find_spec(self, name, path=None, target=None):
        if name in ("pkg.one", "pkg.two"):
            faults.at("finder")
            from importlib.machinery import PathFinder
            spec = PathFinder.find_spec(name, path)
            spec.loader = Loader(spec.loader)
            return spec

sys.meta_path.insert(0, Finder())
import compat_patches

if os.environ["WITH_US"] == "yes":
    import compat_patches.report
    from compat_patches import actions, container_slots, target
    def faulty(name, function):
        def call(*args):
            faults.at(name)
            return function(*args)
        return call
    actions.plan = faulty("plan", actions.plan)
    for slot in (target.ModuleSlot, target.ClassSlot, container_slots.ItemSlot, container_slots.ElementSlot):
        slot.put = faulty("write", slot.put)

@atexit.register
def report():
    # Without us it is not to wake the engine: what Python compiles on the way makes it forget that it was interrupted.
    known = compat_patches.status() if os.environ["WITH_US"] == "yes" else []
    statuses = [[s.id, s.state, s.reason] for s in known if s.manifest == "faulty"]
    with open(os.environ["REPORT"], "w") as file:
        json.dump({"fired": faults.fired, "statuses": statuses}, file)

for name in ("pkg.one", "pkg.two", "pkg.one"):
    try:
        module = __import__(name, fromlist=["x"])
    except Exception as error:
        print(name, type(error).__name__, error)
    else:
        print(name, module.plain())
        for function in ("f", "g", "h"):
            getattr(module, function, int)()
compat_patches.revert("all")
compat_patches.apply("all")
print("end", [type(entry).__name__ for entry in sys.meta_path][-1])
"""

MODULE = """
table, flags, exports = {"a": 1}, ["x", "y"], []
constant = 1
def plain(): return "as it is"
def f(): return 1
def g(): return 2
def h(): return 3
class Class:
    def m(self): return 4
"""

IMPLEMENTATION = """
import contextlib
import faults
faults.at("implementation")
def factory(original):
    faults.at("factory")
    def call(*args):
        return original(*args)
    return call
def replacement(*args):
    return 7
@contextlib.contextmanager
def registered():
    faults.at("entering")
    yield
    faults.at("leaving")
def probe():
    faults.at("probe")
    return True, "the probe says so"
"""


def patches() -> list[dict[str, Any]]:
    made: list[dict[str, Any]] = []
    for module in ("one", "two"):
        changes = {
            "wrap": {"target": f"pkg.{module}:f", "action": "wrap", "using": f"impl_{module}:factory"},
            "method": {"target": f"pkg.{module}:Class.m", "action": "wrap", "using": f"impl_{module}:factory"},
            "replace": {"target": f"pkg.{module}:g", "action": "replace", "using": f"impl_{module}:replacement"},
            "inject": {"target": f"pkg.{module}:new", "action": "inject", "using": f"impl_{module}:replacement"},
            "alias": {"target": f"pkg.{module}:h", "action": "alias", "using": f"pkg.{module}:g"},
            "set": {"target": f"pkg.{module}:constant", "action": "set", "value": 2},
            "item": {"target": f"pkg.{module}:table", "action": "set_item", "key": "b", "value": 2},
            "element": {"target": f"pkg.{module}:flags", "action": "discard_item", "key": "x"},
            "register": {"target": f"pkg.{module}:f", "action": "register", "using": f"impl_{module}:registered"},
            "env": {"action": "env", "key": f"SET_BY_{module}", "value": "1"},
        }
        for name, change in changes.items():
            evidence = {"needed_if": {"probe": f"impl_{module}:probe"}} if name in ("wrap", "method", "replace") else {}
            made.append({"id": f"{name}-{module}", "groups": ["all"], **change, **evidence})
        steps = [
            {"target": f"pkg.{module}:f", "action": "wrap", "using": f"impl_{module}:factory"},
            {"target": f"pkg.{module}:table", "action": "set_item", "key": "c", "value": 3},
        ]
        made.append({"id": f"steps-{module}", "groups": ["all"], "step": steps})
    return made


@dataclass(frozen=True)
class Run:
    """One process: where the fault is, at which time of coming there, what it is, and how the program ends."""

    point: str
    number: int
    kind: str
    end: str


@dataclass(frozen=True)
class Outcome:
    status: int
    printed: str
    errors: str
    report: dict[str, Any] | None


class Bench:
    """A folder with the stand-in packages in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "pkg").mkdir()
        (folder / "pkg" / "__init__.py").touch()
        for module in ("one", "two"):
            (folder / "pkg" / f"{module}.py").write_text(MODULE)
            (folder / f"impl_{module}.py").write_text(IMPLEMENTATION)
        (folder / "faults.py").write_text(FAULTS)
        (folder / "faulty.toml").write_text(declaration("faulty", patches()))
        # Python forgets that it was interrupted where its exit handlers compile something, and exits with 1. So nothing
        # is left to be compiled by then; the program imports what makes classes for the same reason.
        compileall.compile_dir(str(ROOT / "compat_patches"), quiet=2)
        compileall.compile_dir(str(folder), quiet=2)
        self._controls = functools.lru_cache(maxsize=None)(self._control)

    def start(self, run: Run, *, with_us: bool) -> Outcome:
        report = Path(tempfile.mkstemp(suffix=".json", dir=self.folder)[1])
        report.write_text("")
        environment = {name: value for name, value in os.environ.items() if not name.startswith("COMPAT_PATCHES")}
        environment |= {
            "PYTHONPATH": os.pathsep.join([str(self.folder), str(ROOT)]),
            "PYTHONDONTWRITEBYTECODE": "1",
            # Not by COMPAT_PATCHES=on: a startup file would then activate us before the program's own finder is there.
            "WITH_US": "yes" if with_us else "no",
            **({} if with_us else {"COMPAT_PATCHES": "off"}),
            "COMPAT_PATCHES_MANIFEST": str(self.folder / "faulty.toml") if with_us else "",
            "FAULT": json.dumps([run.point, run.number, run.kind]),
            "REPORT": str(report),
        }
        code = PROGRAM + run.end
        if not with_us:
            code = code.replace('compat_patches.revert("all")\ncompat_patches.apply("all")\n', "")
        command = [sys.executable, "-c", code]
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=TIMEOUT, check=False, cwd=self.folder
        )
        text = report.read_text()
        return Outcome(done.returncode, done.stdout, done.stderr, json.loads(text) if text else None)

    def _control(self, point: str, number: int, kind: str, end: str) -> Outcome:
        return self.start(Run(point, number, kind, end), with_us=False)

    def faults_of(self, run: Run) -> list[str]:
        """What is wrong with a run; nothing where it was as it is to be."""
        outcome = self.start(run, with_us=True)
        if outcome.report is None:
            return [f"no report; {outcome.errors}"]
        fired, statuses = outcome.report["fired"], outcome.report["statuses"]
        failed = {name: reason for name, state, reason in statuses if state == "failed"}
        wrong = [f"{name}: {state} without a reason" for name, state, why in statuses if state in EXPLAINED and not why]
        if len(statuses) != len(patches()):
            wrong.append(f"reports {len(statuses)} patches")
        if run.point in OURS and run.kind == "KeyboardInterrupt" and fired:
            if outcome.status != -signal.SIGINT:
                wrong.append(f"exit status {outcome.status} after an interrupt")
            return wrong
        in_hook = run.point in HOOKS
        control = self._controls(*((run.point, run.number, run.kind) if in_hook else ("none", 0, "Exception")), run.end)
        if (outcome.status, outcome.printed) != (control.status, control.printed):
            wrong.append(
                f"exit status {outcome.status} and {outcome.printed!r}; without us {control.status} and "
                f"{control.printed!r}; {outcome.errors}"
            )
        if len(failed) > 1 or any("injected" not in reason for reason in failed.values()):
            wrong.append(f"failed: {failed}")
        return wrong


def runs(count: int, seed: int) -> list[Run]:
    """Random runs, each point and each kind of fault among them."""
    randomness = random.Random(seed)
    points = (*OURS, *HOOKS)
    return [
        Run(
            points[number % len(points)],
            randomness.randint(1, MOST.get(points[number % len(points)], 12)),
            KINDS[number // len(points) % len(KINDS)],
            randomness.choice(ENDS),
        )
        for number in range(count)
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    todo = runs(options.count, options.seed)
    wrong = 0
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(2) as pool:
        bench = Bench(Path(folder))
        for run, faults in zip(todo, pool.map(bench.faults_of, todo), strict=True):
            wrong += bool(faults)
            for fault in faults:
                print(f"{run}: {fault}")
    by_point = collections.Counter((run.point, run.kind) for run in todo)
    for (point, kind), number in sorted(by_point.items()):
        print(f"{number:3} with {kind} in {point}")
    print(f"{options.count} processes, {options.count - wrong} as without us and with their report, {wrong} not")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
