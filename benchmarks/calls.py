"""What a patched call costs: a wrapped or aliased one beside a bare closure, a replaced or injected one beside itself.

Run with ``python -m benchmarks.calls``, or with pyperf's own options, e.g. ``--fast``.
"""

from __future__ import annotations

import functools
import sys
import types
from collections.abc import Callable
from typing import Any

import pyperf

from compat_patches import manifest
from compat_patches.engine import Engine

BUDGETS = {"wrapped": 1.2, "aliased": 1.2, "replaced": 1.05, "injected": 1.05}
"""Ratios. 1.05 stands for "no measurable cost": what two runs of one and the same function differ by here."""

PATCH = """
[[patch]]
id = "{name}"
summary = "s"
why = "w"
upstream = ["u"]
remove_when = "r"
target = "bench_target:{name}"
action = "{action}"
using = "{using}"
"""


def original(argument: int) -> int:
    return argument


def replacement(argument: int) -> int:
    return argument


def closure(function: Callable[[int], int]) -> Callable[[int], int]:
    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return call


def patched() -> types.ModuleType:
    """A module whose functions have been patched, each by one action."""
    module = types.ModuleType("bench_target")
    for name in ("wrapped", "replaced", "aliased"):
        setattr(module, name, types.FunctionType(original.__code__, {}, name))
    source = types.ModuleType("bench_implementations")
    vars(source).update(replacement=replacement, closure=closure, original=original)
    sys.modules.update(bench_target=module, bench_implementations=source)
    text = '[manifest]\nname = "bench"\nschema = 1\n' + "".join(
        PATCH.format(name=name, action=action, using=f"bench_implementations:{using}")
        for name, action, using in (
            ("wrapped", "wrap", "closure"),
            ("replaced", "replace", "replacement"),
            ("injected", "inject", "replacement"),
            ("aliased", "alias", "original"),
        )
    )
    engine = Engine()
    engine.open()
    engine.add(manifest.parse(text.encode(), "bench"))
    engine.start()
    assert {status.state for status in engine.status()} == {"applied"}, engine.status()
    return module


def main() -> None:
    runner = pyperf.Runner(program_args=("-m", "benchmarks.calls"))
    module = patched()
    # An alias is a function that calls another, as a bare closure is; the others are what they stand for.
    pairs = {
        "wrapped": (module.wrapped, closure(original)),
        "aliased": (module.aliased, closure(original)),
        "replaced": (module.replaced, replacement),
        "injected": (module.injected, replacement),
    }
    ratios = {}
    for name, (ours, theirs) in pairs.items():
        measured = runner.bench_func(f"{name} call", ours, 1), runner.bench_func(f"{name}: beside", theirs, 1)
        if all(measured):
            ratios[name] = measured[0].median() / measured[1].median()
    if not runner.args.worker:
        for name, ratio in ratios.items():
            print(f"{name} call: {ratio:.2f}x, budget {BUDGETS[name]:.2f}x")


if __name__ == "__main__":
    main()
