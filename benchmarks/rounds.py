"""100,000 rounds of apply and revert: no growth of memory, of layers, or of ``sys.meta_path``.

After a tenth of the rounds, which fills every cache, and after all of them the same things are counted.

    python -m benchmarks.rounds [rounds]
"""

from __future__ import annotations

import contextlib
import gc
import sys
import time
import tracemalloc
import types

from compat_patches import importing, manifest
from compat_patches.engine import Engine

BUDGET_BYTES = 16 * 1024
"""What Python's own free lists vary by, however many rounds there are. One object a round, left behind, is 4 MB."""

TEXT = """
[manifest]
name = "bench"
schema = 1

[[patch]]
id = "p"
summary = "s"
why = "w"
upstream = ["u"]
remove_when = "r"
after = ["q"]

[[patch.step]]
target = "bench_target:f"
action = "wrap"
using = "bench_implementations:factory"

[[patch.step]]
target = "bench_target:table"
action = "set_item"
key = "a"
value = 1

[[patch.step]]
target = "bench_target:table"
action = "register"
using = "bench_implementations:registered"

[[patch]]
id = "q"
summary = "s"
why = "w"
upstream = ["u"]
remove_when = "r"
target = "bench_target:f"
action = "wrap"
using = "bench_implementations:factory"
"""


def factory(original):
    return lambda: original() + 1


@contextlib.contextmanager
def registered():
    yield


def main() -> int:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    target = types.ModuleType("bench_target")
    target.f, target.table = (lambda: 0), {}
    implementations = types.ModuleType("bench_implementations")
    implementations.factory, implementations.registered = factory, registered
    sys.modules.update(bench_target=target, bench_implementations=implementations)
    original = target.f
    engine = Engine()
    engine.open()
    engine.add(manifest.parse(TEXT.encode(), "bench"))

    def go(number: int) -> None:
        for _ in range(number):
            engine.apply("p", "q")
            engine.revert("q", "p")

    def counts() -> dict[str, int]:
        gc.collect()
        return {
            "bytes": tracemalloc.get_traced_memory()[0],
            "objects": len(gc.get_objects()),
            "layers": len(engine._settler.layers),
            "entries of sys.meta_path": len(sys.meta_path),
            "modules waited for": len(importing._watched),
        }

    go(1)
    assert target.f is original and target.table == {}
    tracemalloc.start()
    go(rounds // 10)
    before = counts()
    begin = time.perf_counter()
    go(rounds - rounds // 10)
    seconds = time.perf_counter() - begin
    after = counts()
    assert target.f is original and target.table == {}
    growth = {what: after[what] - before[what] for what in before}
    each = seconds / (rounds - rounds // 10) * 1e6
    print(f"{rounds} rounds of two patches in three slots and a registration, {each:.0f} us each, traced")
    for what, grown in growth.items():
        budget = BUDGET_BYTES if what == "bytes" else 0
        print(f"{what}: {before[what]} and then {after[what]}: grown by {grown}, budget {budget}")
    return int(growth.pop("bytes") > BUDGET_BYTES or any(grown > 0 for grown in growth.values()))


if __name__ == "__main__":
    sys.exit(main())
