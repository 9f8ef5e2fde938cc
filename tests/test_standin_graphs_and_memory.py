"""The graphs and the memory of the stand-in XPU behave as tests that use them take for granted."""

from __future__ import annotations

import pytest
from packaging.version import Version
from standin import StandinError
from standin.runtime import GIBIBYTE

torch = pytest.importorskip("torch")

TORCH = Version(torch.__version__)
needs_graphs = pytest.mark.skipif(not hasattr(torch.xpu, "XPUGraph"), reason="torch.xpu has graphs from 2.11")


# Graphs.


@needs_graphs
def test_a_graph_captures_without_running_and_replays_on_the_current_stream(standin_xpu):
    ran = []
    graph = torch.xpu.XPUGraph()
    with torch.xpu.graph(graph):
        assert torch.xpu.is_current_stream_capturing()
        standin_xpu.submit(lambda: ran.append("first"))
        standin_xpu.submit(lambda: ran.append("second"))
    assert not torch.xpu.is_current_stream_capturing()
    torch.xpu.synchronize()
    assert ran == []
    side = torch.xpu.Stream()
    with torch.xpu.stream(side):
        graph.replay()
    assert ran == []
    side.synchronize()
    assert ran == ["first", "second"]
    graph.replay()
    torch.xpu.synchronize()
    assert ran == ["first", "second"] * 2
    assert {work.stream_id for work in standin_xpu.executed} == {
        side.stream_id,
        torch.xpu.current_stream().stream_id,
    }


@needs_graphs
def test_events_in_a_graph_are_recorded_by_each_replay(standin_xpu):
    start, end = torch.xpu.Event(True), torch.xpu.Event(True)
    graph = torch.xpu.XPUGraph()
    with torch.xpu.graph(graph):
        start.record()
        standin_xpu.submit(seconds=0.5)
        end.record()
    with pytest.raises(RuntimeError, match="captured into a graph"):
        end.query()
    graph.replay()
    torch.xpu.synchronize()
    assert start.elapsed_time(end) == 500.0


@needs_graphs
def test_a_capture_takes_in_its_own_stream_only(standin_xpu):
    graph = torch.xpu.XPUGraph()
    side = torch.xpu.Stream()
    with torch.xpu.graph(graph):
        captured = standin_xpu.submit()
        live = standin_xpu.submit(stream=side)
        with pytest.raises(StandinError, match="captures a single stream"):
            side.wait_stream(torch.xpu.current_stream())
    side.synchronize()
    assert live.done
    assert not captured.done


@needs_graphs
def test_a_graph_refuses_what_a_real_one_refuses(standin_xpu):
    graph = torch.xpu.XPUGraph()
    for call, message in (
        (graph.replay, "without a preceding successful capture"),
        (graph.pool, "without a preceding successful capture"),
        (graph.instantiate, r"capture_end\(\) must have been called"),
    ):
        with pytest.raises(RuntimeError, match=message):
            call()
    with (
        pytest.warns(UserWarning, match="The XPU Graph is empty"),
        torch.xpu.graph(graph),
        pytest.raises(RuntimeError, match="captured into a graph"),
    ):
        torch.xpu.synchronize()
    with pytest.raises(RuntimeError, match="already owns a captured graph"):
        graph.capture_begin()
    with pytest.raises(TypeError):
        torch.xpu.XPUGraph().capture_begin(pool="mine")
    with pytest.raises(TypeError, match="capture_error_mode"):
        torch._C._XPUGraph().capture_begin(capture_error_mode="global")


@needs_graphs
def test_a_capture_ends_where_it_began(standin_xpu):
    graph = torch.xpu.XPUGraph()
    side = torch.xpu.Stream()
    with side:
        graph.capture_begin()
    with pytest.raises(RuntimeError, match="must end on the same stream"):
        graph.capture_end()


@needs_graphs
def test_graphs_share_a_pool_that_is_named(standin_xpu):
    shared = torch.xpu.graph_pool_handle()
    assert shared != torch.xpu.graph_pool_handle()
    first, second, third = (torch.xpu.XPUGraph(keep_graph=True) for _ in range(3))
    for graph, pool in ((first, shared), (second, shared), (third, None)):
        with torch.xpu.graph(graph, pool=pool):
            standin_xpu.submit()
    assert first.pool() == second.pool() == shared
    assert third.pool() != shared
    first.reset()
    with pytest.raises(RuntimeError, match="without a preceding successful capture"):
        first.replay()


# Memory.


def test_memory_info_is_free_and_total_of_the_device(standin_xpu):
    assert torch.xpu.mem_get_info() == (15 * GIBIBYTE, 16 * GIBIBYTE)
    assert torch.xpu.mem_get_info("xpu:1") == (10 * GIBIBYTE, 12 * GIBIBYTE)
    standin_xpu.devices[1].memory.used_by_others = 0
    assert torch.xpu.mem_get_info(1) == (12 * GIBIBYTE, 12 * GIBIBYTE)


def test_allocations_are_counted_as_the_caching_allocator_counts(standin_xpu):
    torch.xpu.init()
    memory = standin_xpu.devices[0].memory
    large, small = memory.allocate(3 << 20), memory.allocate(512)
    assert torch.xpu.memory_allocated() == (3 << 20) + 512
    assert torch.xpu.memory_stats()["allocated_bytes.large_pool.current"] == 3 << 20
    large.free()
    large.free()
    assert torch.xpu.memory_allocated() == 512
    assert torch.xpu.max_memory_allocated() == torch.xpu.memory_reserved() == (3 << 20) + 512
    assert torch.xpu.mem_get_info()[0] == 15 * GIBIBYTE - (3 << 20) - 512
    memory.allocate(2 << 20)
    assert torch.xpu.memory_reserved() == (3 << 20) + 512, "the cache had it"
    torch.xpu.empty_cache()
    assert torch.xpu.memory_reserved() == (2 << 20) + 512
    torch.xpu.reset_peak_memory_stats()
    assert torch.xpu.max_memory_allocated() == (2 << 20) + 512
    assert torch.xpu.memory_stats()["allocated_bytes.all.allocated"] == (5 << 20) + 512
    torch.xpu.reset_accumulated_memory_stats()
    assert torch.xpu.memory_stats()["allocated_bytes.all.allocated"] == 0
    assert torch.xpu.memory_allocated(1) == 0
    small.free()


def test_a_device_has_no_more_than_it_has(standin_xpu):
    memory = standin_xpu.devices[0].memory
    with pytest.raises(MemoryError, match="17179869184 bytes asked for"):
        memory.allocate(16 * GIBIBYTE)
    if TORCH.release >= (2, 10):
        torch.xpu.set_per_process_memory_fraction(0.5)
        assert torch.xpu.get_per_process_memory_fraction() == 0.5
        with pytest.raises(MemoryError, match="8589934592 allowed"):
            memory.allocate(9 * GIBIBYTE)
    memory.allocate(8 * GIBIBYTE)


def test_what_has_no_model_says_so(standin_xpu):
    with pytest.raises(StandinError, match="_xpu_getStreamFromExternal"):
        torch.xpu.get_stream_from_external(1)
