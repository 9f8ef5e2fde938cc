"""``demo``: on the torch that is installed, calls that fail without the patches, work with them, and fail again."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import click

import compat_patches


@dataclass(frozen=True)
class Demonstration:
    """A call, and the patches of which one makes it work."""

    title: str
    patches: tuple[str, ...]
    call: Callable[[], Any]

    def attempt(self) -> tuple[bool, str]:
        """Make the call. Returns whether it worked, and its result or what it raised, in one line."""
        try:
            return True, str(self.call())
        except Exception as error:
            text = f"{type(error).__name__}: {error}".strip()
            # Dynamo puts what went wrong into the second line, behind the name of the backend.
            return False, " ".join(text.splitlines()[:2])


def _memory() -> str:
    import torch

    available, total = torch.accelerator.get_memory_info()
    return f"{available} bytes available of {total}"


def _xpu_event() -> Any:
    import torch

    return torch.xpu.Event(blocking=True)


def _compile_with_cyclic_key() -> str:
    """The failure of the FX graph cache through the public API: a custom pass whose uuid contains itself."""
    import torch
    from torch._dynamo.utils import counters
    from torch._inductor.custom_graph_pass import CustomGraphPass

    class Pass(CustomGraphPass):
        def __call__(self, graph: Any) -> None:
            pass

        def uuid(self) -> Any:
            cyclic: dict[str, Any] = {}
            cyclic["self"] = cyclic
            return cyclic

    torch._dynamo.reset()
    counters.clear()
    with torch._inductor.config.patch(post_grad_custom_post_pass=Pass()):
        result = torch.compile(lambda x: x + 1)(torch.ones(2))
    return f"{result.tolist()}, cache bypassed {counters['inductor']['fxgraph_cache_bypass']} time(s)"


def _demonstrations() -> list[Demonstration]:
    import torch

    found = [
        Demonstration(
            "torch.accelerator.get_memory_info() on a CPU host",
            ("cpu-memory-info", "cpu-memory-info-backport"),
            _memory,
        )
    ]
    if torch.xpu.is_available():
        found.append(
            Demonstration("torch.xpu.Event(blocking=True)", ("xpu-event-blocking", "xpu-event-external"), _xpu_event)
        )
    if any(s.state != "skipped" for s in compat_patches.status("inductor")):
        found.append(
            Demonstration(
                "torch.compile with a cache key that contains itself",
                ("fxgraph-cache-value-error", "fxgraph-cache-pickling-errors"),
                _compile_with_cyclic_key,
            )
        )
    return found


@click.command()
def demo() -> None:
    """Show a call that fails without the patches and works with them, and take the patches back.

    Runs as a CPU host: CUDA devices are hidden from this process. Exit status 1: nothing behaved as it should.
    """
    os.environ["CUDA_VISIBLE_DEVICES"] = os.environ["HIP_VISIBLE_DEVICES"] = ""
    try:
        import torch
    except ImportError as error:
        raise click.ClickException(f"the demo needs torch, of any release from 2.8: {error}") from None
    import logging

    # Upstream logs a warning with a traceback for each key that it cannot pickle, and here that is done on purpose.
    logging.getLogger("torch._inductor.codecache").setLevel(logging.ERROR)
    click.echo(f"torch {torch.__version__}, Python {sys.version.split()[0]}")
    as_expected = [_show(demonstration) for demonstration in _demonstrations()]
    if not any(as_expected):
        sys.exit(1)


def _show(demonstration: Demonstration) -> bool:
    """Make the call without, with and again without the patches. Returns whether it failed, worked and failed."""
    click.echo(f"\n{demonstration.title}")
    with compat_patches.reverted(*demonstration.patches):
        before = demonstration.attempt()
    _line("without patches", before)
    during = demonstration.attempt()
    for status in compat_patches.status(*demonstration.patches):
        if status.state == "applied":
            click.echo(f"  {status.id} is applied: {status.reason}")
    _line("with patches", during)
    undone = compat_patches.revert(*demonstration.patches)
    after = demonstration.attempt()
    _line(f"undone ({', '.join(s.id for s in undone if s.state == 'reverted')})", after)
    return (before[0], during[0], after[0]) == (False, True, False)


def _line(when: str, attempt: tuple[bool, str]) -> None:
    worked, text = attempt
    click.echo(f"  {when}: " + click.style("works, " if worked else "fails, ", fg="green" if worked else "red") + text)
