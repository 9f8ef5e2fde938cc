"""What 10,000 patches over 1,000 modules cost who imports a module that nobody waits for: at most 2 us more.

Empty modules are imported with our finder and without it, in turns, in one process, so that what else the machine does
meets both alike; compared is the processor time of the quickest quarter. The growth is measured from 1,000 to 10,000
patches, each in a process of its own: to load and start the manifest should take ten times as long, and one look of the
finder no longer at all.

    python -m benchmarks.scale [rounds]
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PATCHES, MODULES, UNRELATED = 10_000, 1_000, 2_000
BUDGET_MICROSECONDS = 2.0
BUDGET_GROWTH = 1.5
"""How many times the cost of one patch may rise from a tenth of the patches to all of them; linear is 1."""

CHILD = """
import importlib, json, statistics, sys, time, timeit

sys.path[:0] = {paths!r}
from compat_patches import importing, manifest
from compat_patches.engine import Engine

data = open({manifest!r}, "rb").read()
begin = time.perf_counter()
declared = manifest.parse(data, "bench")
loaded = time.perf_counter()
engine = Engine()
engine.open()
engine.add(declared)
engine.start()
started = time.perf_counter()
states = {{status.state for status in engine.status()}}
assert states <= {{"pending"}}, states

times = [[], []]
for number in range({unrelated}):
    # Every second one without the finder; which of the two goes first changes.
    absent = (number + number // 2) % 2
    if absent:
        sys.meta_path.remove(importing.FINDER)
    begin_import = time.thread_time()
    importlib.import_module(f"unrelated_{{number}}")
    times[absent].append(time.thread_time() - begin_import)
    if absent:
        sys.meta_path.insert(0, importing.FINDER)
look = min(timeit.repeat(lambda: importing.FINDER.find_spec("unrelated_0"), number=10000, repeat=5)) / 10000
present, absent = (statistics.quantiles(column)[0] for column in times)
print(json.dumps([loaded - begin, started - loaded, absent, present, look]))
"""


def text_of(patches: int) -> str:
    lines = ['[manifest]\nname = "bench"\nschema = 1\n']
    lines += [
        f'[[patch]]\nid = "p{number}"\nsummary = "s"\nwhy = "w"\nupstream = ["u"]\nremove_when = "r"\n'
        f'target = "bench_package.module_{number % MODULES}:f{number}"\naction = "noop"\n'
        for number in range(patches)
    ]
    return "\n".join(lines)


def measured(folder: Path, patches: int) -> tuple[float, ...]:
    """Seconds: to load the manifest, to start, to import a module without and with the finder, for one look of it."""
    path = folder / f"{patches}.toml"
    path.write_text(text_of(patches), encoding="utf-8")
    code = CHILD.format(paths=[str(folder), str(ROOT)], manifest=str(path), unrelated=UNRELATED)
    done = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True)
    return tuple(json.loads(done.stdout))


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    counts = (PATCHES // 10, PATCHES)
    results: dict[int, list[tuple[float, ...]]] = {count: [] for count in counts}
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        for number in range(UNRELATED):
            (folder / f"unrelated_{number}.py").touch()
        measured(folder, 1)  # Compiles the modules.
        for number in range(rounds):
            for count in counts if number % 2 else reversed(counts):
                results[count].append(measured(folder, count))
    for count, rows in results.items():
        load, start, without, imported, look = (statistics.median(column) for column in zip(*rows, strict=True))
        print(
            f"{count:6} patches: load {load * 1e3:.0f} ms, start {start * 1e3:.0f} ms, import {imported * 1e6:.1f} us, "
            f"without the finder {without * 1e6:.1f} us, one look of the finder {look * 1e9:.0f} ns"
        )
    dearer = statistics.median(imported - without for _, _, without, imported, _ in results[PATCHES])
    print(f"an unrelated import: {dearer * 1e6:+.2f} us dearer, budget {BUDGET_MICROSECONDS:.2f} us")
    few, many = (statistics.median(row[0] + row[1] for row in results[count]) for count in counts)
    print(
        f"growth of load and start: {many / few / (counts[1] / counts[0]):.2f}x of linear, budget {BUDGET_GROWTH:.2f}x"
    )


if __name__ == "__main__":
    main()
