"""torch.cuda names answered by torch.xpu, on the stand-in XPU: torch's own torch/xpu/*.py over a C side of ours."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator

import pytest

torch = pytest.importorskip("torch")

from support import entries  # noqa: E402  # behind the importorskip on purpose

import compat_patches  # noqa: E402
from compat_patches.env_override import engine  # noqa: E402

PATCH = "torch-cuda-on-xpu"
HAS_GRAPHS = tuple(int(part) for part in torch.__version__.split("+")[0].split(".")[:2]) >= (2, 11)
with_graphs = pytest.mark.skipif(not HAS_GRAPHS, reason="torch.xpu has graphs from 2.11")

PROGRAM = """
import inspect, compat_patches, torch
from standin import current

def use_torch_cuda():
    standin = current()
    for arguments in [(), (True,), (True, True), (False, False, False, False)]:
        torch.cuda.Event(*arguments)
    for keywords in [{"enable_timing": True}, {"blocking": True}, {"interprocess": False}, {"external": False}]:
        torch.cuda.Event(**keywords)
    side = torch.cuda.Stream()
    start, end = torch.cuda.Event(enable_timing=True, blocking=True), torch.cuda.Event(enable_timing=True)
    with torch.cuda.stream(side):
        assert torch.cuda.current_stream() == side
        assert torch.cuda.default_stream() != side
        start.record()
        work = standin.submit(seconds=0.010)
        end.record()
    assert work.stream_id == side.stream_id
    end.synchronize()
    assert start.elapsed_time(end) == 10.0
    assert torch.cuda.current_stream() == torch.cuda.default_stream()
    torch.cuda.set_stream(side)
    assert torch.cuda.current_stream() == side
    torch.cuda.set_stream(torch.cuda.default_stream())
    free, total = torch.cuda.mem_get_info()
    assert (free, total) == torch.xpu.mem_get_info()
    if hasattr(torch.xpu, "XPUGraph"):
        ran = []
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(cuda_graph=graph, pool=torch.cuda.graph_pool_handle(), capture_error_mode="global"):
            assert torch.cuda.is_current_stream_capturing()
            standin.submit(lambda: ran.append(1))
        assert not torch.cuda.is_current_stream_capturing() and not ran
        graph.replay()
        torch.xpu.synchronize()
        assert ran == [1]

def raises():
    try:
        use_torch_cuda()
    except Exception as error:
        return type(error).__name__
    return "nothing"

print("before", raises())
with compat_patches.applied("torch-cuda-on-xpu", force=True) as (status,):
    assert status.state == "applied", status.reason
    use_torch_cuda()
    print("inside it runs")
print("after", raises())
"""


def test_a_program_of_torch_cuda_names_runs_inside_and_raises_before_and_after(
    run_on_standin_xpu: Callable[..., str],
) -> None:
    lines = run_on_standin_xpu(PROGRAM).splitlines()
    assert lines[1] == "inside it runs"
    before, after = lines[0].split()[1], lines[2].split()[1]
    assert before == after
    assert before in ("RuntimeError", "AssertionError", "TypeError")


COMPILED = """
import torch
{dynamo_first}
import compat_patches

def compiles(statement, fullgraph):
    names = {{"torch": torch}}
    exec(f"def function(x):\\n    {{statement}}\\n    return x + 1\\n", names)
    torch._dynamo.reset()
    try:
        return torch.compile(names["function"], backend="eager", fullgraph=fullgraph)(torch.ones(1)).item() == 2
    except Exception as error:
        return f"{{type(error).__name__}}: {{error}}"

{body}
"""
STATEMENTS = [
    "torch.cuda.Event(enable_timing=True)",
    "torch.cuda.Stream()",
    "torch.cuda.stream(torch.cuda.current_stream())",
    "torch.cuda.current_stream()",
    "torch.cuda.set_stream(torch.cuda.current_stream())",
    "torch.cuda.mem_get_info()",
]
WITH_A_BREAK = ["torch.cuda.default_stream()"] + (
    ["torch.cuda.CUDAGraph()", "torch.cuda.graph_pool_handle()", "torch.cuda.is_current_stream_capturing()"]
    if HAS_GRAPHS
    else []
)
# Elsewhere the constructor of a stream asks C++ for a driver while it is being compiled, patch or no patch.
on_a_cpu_build = pytest.mark.skipif(torch.version.cuda is not None, reason="a CUDA build constructs streams in C++")


@on_a_cpu_build
@pytest.mark.parametrize("dynamo_first", ["", "import torch._dynamo"], ids=["patched first", "Dynamo first"])
def test_every_patched_name_goes_through_torch_compile(
    dynamo_first: str, run_on_standin_xpu: Callable[..., str]
) -> None:
    body = (
        f"with compat_patches.applied({PATCH!r}, force=True):\n"
        f"    for statement in {STATEMENTS}: print(statement, compiles(statement, True))\n"
        f"    for statement in {WITH_A_BREAK}: print(statement, compiles(statement, False))\n"
    )
    text = COMPILED.format(dynamo_first=dynamo_first, body=body)
    lines = run_on_standin_xpu(text, as_accelerator=True).splitlines()
    assert lines == [f"{statement} True" for statement in STATEMENTS + WITH_A_BREAK]


@pytest.mark.skipif(not torch.__version__.startswith("2.13."), reason="other releases get past one object of two names")
def test_one_object_under_two_names_makes_dynamo_assert(run_on_standin_xpu: Callable[..., str]) -> None:
    body = (
        "torch.cuda.current_stream = torch.xpu.current_stream\nprint(compiles('torch.cuda.current_stream()', True))\n"
    )
    printed = run_on_standin_xpu(COMPILED.format(dynamo_first="", body=body), as_accelerator=True)
    assert "Handler already registered" in printed


SELF_TEST = """
import compat_patches, torch
from compat_patches.env_override import engine
from compat_patches.predicates import Circumstances

# The stand-in makes an XPU build of this torch while it runs; its files say what it was built for.
engine().simulate(Circumstances(torch.__version__, "xpu"))
(status,) = compat_patches.selftest("torch-cuda-on-xpu")
print(status.state, status.reason)
"""


@on_a_cpu_build
def test_the_self_test_compiles_every_sample(run_on_standin_xpu: Callable[..., str]) -> None:
    printed = run_on_standin_xpu(SELF_TEST, as_accelerator=True)
    assert printed.startswith("applied")
    assert "torch.compile takes 6 of 6 samples" in printed


def owners() -> list[object]:
    return [torch.cuda, torch.cuda.streams, torch.cuda.memory, torch.cuda.graphs, torch.xpu, torch.xpu.streams]


@pytest.fixture
def unchanged(standin_xpu: object) -> Iterator[None]:
    """The test leaves every owner as it was."""
    before = [entries(owner) for owner in owners()]
    yield
    assert [entries(owner) for owner in owners()] == before


def test_leaving_restores_everything_after_an_exception_and_nested(unchanged: None) -> None:
    original = torch.cuda.Event
    with compat_patches.applied(PATCH, force=True):
        assert torch.cuda.Event is torch.xpu.Event
        with pytest.raises(KeyError), compat_patches.applied(PATCH, force=True):
            raise KeyError
        assert torch.cuda.Event is torch.xpu.Event
    assert torch.cuda.Event is original


def test_threads_that_enter_and_leave_at_random_leave_nothing_behind(unchanged: None) -> None:
    errors: list[BaseException] = []

    def enter_and_leave(seed: int) -> None:
        chance = random.Random(seed)
        try:
            for _ in range(1000):
                with compat_patches.applied(PATCH, force=True):
                    assert torch.cuda.Event is torch.xpu.Event
                    if chance.random() < 0.1:
                        with compat_patches.applied(PATCH, force=True):
                            assert torch.cuda.Stream is torch.xpu.Stream
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=enter_and_leave, args=(seed,)) for seed in (1, 2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []


def test_the_default_stream_is_the_one_that_a_thread_begins_with(standin_xpu: object) -> None:
    with compat_patches.applied(PATCH, force=True):
        side = torch.cuda.Stream()
        beginning = torch.cuda.current_stream()
        with torch.cuda.stream(side):
            assert torch.cuda.default_stream() == beginning


@with_graphs
@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"capture_error_mode": "thread_local"}, NotImplementedError),
        ({"capture_error_mode": "relaxed"}, NotImplementedError),
        ({"check_input_liveness": True}, NotImplementedError),
        ({"no_such_option": 1}, TypeError),
    ],
)
def test_a_graph_refuses_what_xpu_graphs_cannot_honour(
    options: dict[str, object], error: type[Exception], unchanged: None
) -> None:
    with compat_patches.applied(PATCH, force=True), pytest.raises(error):
        torch.cuda.graph(torch.cuda.CUDAGraph(), **options)


def test_a_build_without_xpu_support_is_left_alone() -> None:
    if torch.version.xpu:
        pytest.skip("this torch is built for XPU")
    with compat_patches.applied(PATCH) as (status,):
        assert (status.state, status.reason.endswith("wanted xpu")) == ("skipped", True)
    assert engine().status(PATCH)[0].state in ("skipped", "reverted")
