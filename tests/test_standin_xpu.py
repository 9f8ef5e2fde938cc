"""The devices, streams and events of the stand-in XPU behave as tests that use them take for granted."""

from __future__ import annotations

import threading
from contextlib import nullcontext
from pathlib import Path

import pytest
from packaging.version import Version
from standin import StandinError
from standin.runtime import GIBIBYTE

torch = pytest.importorskip("torch")

TORCH = Version(torch.__version__)


# What torch says of the device.


def test_torch_has_an_xpu_with_two_devices(standin_xpu):
    assert torch.xpu.is_available()
    assert torch.version.xpu
    assert torch.xpu.device_count() == 2
    assert [torch.xpu.get_device_name(index) for index in range(2)] == ["Stand-in XPU 0", "Stand-in XPU 1"]
    assert torch.xpu.get_device_properties(1).total_memory == 12 * GIBIBYTE
    assert torch.xpu.get_device_capability()["has_fp64"] is True
    assert not torch.xpu.can_device_access_peer(0, 0) if hasattr(torch.xpu, "can_device_access_peer") else True


def test_torchs_own_modules_run_unchanged(standin_xpu):
    folder = Path(torch.__file__).parent / "xpu"
    for module in (torch.xpu, torch.xpu.streams, torch.xpu.memory, torch.xpu.random):
        assert Path(module.__file__).parent == folder
    assert torch.xpu.Stream.__mro__[1:3] == (torch._C._XpuStreamBase, torch.Stream)
    assert torch.xpu.Event.__mro__[1:3] == (torch._C._XpuEventBase, torch.Event)


def test_nothing_is_initialized_before_the_first_use(standin_xpu):
    assert not torch.xpu.is_initialized()
    torch.xpu.Stream()
    assert not standin_xpu.initialized
    torch.xpu.current_stream()
    assert torch.xpu.is_initialized()
    assert standin_xpu.initialized


def test_seeds_reach_each_device(standin_xpu):
    torch.xpu.manual_seed_all(7)
    assert [generator.initial_seed() for generator in torch.xpu.default_generators] == []
    torch.xpu.init()
    assert [generator.initial_seed() for generator in torch.xpu.default_generators] == [7, 7]


def test_a_device_that_is_not_there_is_an_error(standin_xpu):
    with pytest.raises(RuntimeError, match="device is out of range, device is 2"):
        torch.xpu.set_device(2)
    with pytest.raises(RuntimeError, match="Unrecognized stream 8888"):
        torch.xpu.Stream(stream_id=8888, device_index=0, device_type=12)


# Streams.


def test_work_of_a_stream_runs_in_order(standin_xpu):
    ran = []
    for number in range(5):
        standin_xpu.submit(lambda number=number: ran.append(number))
    assert ran == []
    torch.xpu.current_stream().synchronize()
    assert ran == [0, 1, 2, 3, 4]
    assert [work.done for work in standin_xpu.executed] == [True] * 5


def test_work_goes_to_the_stream_of_the_context(standin_xpu):
    side = torch.xpu.Stream()
    with torch.xpu.stream(side):
        inside = standin_xpu.submit()
    outside = standin_xpu.submit()
    assert inside.stream_id == side.stream_id != outside.stream_id
    assert outside.stream_id == torch.xpu.current_stream().stream_id


def test_a_context_that_selects_no_stream_shows(standin_xpu, monkeypatch):
    side = torch.xpu.Stream()

    def stream_of_work_inside_torch_cuda_stream():
        with torch.cuda.stream(side):
            return standin_xpu.submit().stream_id

    monkeypatch.setattr(torch.cuda, "stream", lambda stream: nullcontext())
    assert stream_of_work_inside_torch_cuda_stream() != side.stream_id
    monkeypatch.setattr(torch.cuda, "stream", lambda stream: torch.xpu.stream(stream))
    assert stream_of_work_inside_torch_cuda_stream() == side.stream_id


def test_a_stream_of_another_device_brings_its_device_and_both_come_back(standin_xpu):
    other = torch.xpu.Stream(device=1)
    before = torch.xpu.current_stream()
    assert other.device == torch.device("xpu", 1)
    for context in (torch.xpu.stream(other), other):
        with context:
            assert torch.xpu.current_device() == 1
            assert standin_xpu.submit().device_index == 1
        assert torch.xpu.current_device() == 0
        assert torch.xpu.current_stream() == before
        assert torch.xpu.current_stream(1) != other


def test_the_current_stream_is_each_threads_own(standin_xpu):
    side = torch.xpu.Stream()
    torch.xpu.set_stream(side)
    seen = []
    thread = threading.Thread(target=lambda: seen.append(torch.xpu.current_stream()))
    thread.start()
    thread.join()
    assert torch.xpu.current_stream() == side
    assert seen[0] != side


def test_streams_are_equal_by_what_they_stand_for(standin_xpu):
    side = torch.xpu.Stream()
    torch.xpu.set_stream(side)
    assert torch.xpu.current_stream() == side
    assert hash(torch.xpu.current_stream()) == hash(side)
    assert torch.xpu.Stream() != side
    assert isinstance(side, torch.Stream)


def test_priorities_are_brought_into_the_range(standin_xpu):
    assert torch.xpu.Stream.priority_range() == (1, -1)
    assert [torch.xpu.Stream(priority=wanted).priority for wanted in (-7, -1, 0, 7)] == [-1, -1, 0, 1]


def test_a_device_waits_for_its_own_streams_only(standin_xpu):
    works = [standin_xpu.submit(stream=torch.xpu.Stream(device=index)) for index in (0, 0, 1)]
    torch.xpu.synchronize(0)
    assert [work.done for work in works] == [True, True, False]
    torch.xpu.synchronize("xpu:1")
    assert works[2].done


def test_an_exception_of_work_comes_out_where_somebody_waits(standin_xpu):
    standin_xpu.submit(lambda: 1 / 0)
    after = standin_xpu.submit()
    with pytest.raises(ZeroDivisionError):
        torch.xpu.synchronize()
    torch.xpu.synchronize()
    assert after.done


# Events.


def test_an_event_completes_when_the_work_before_it_does(standin_xpu):
    event = torch.xpu.Event()
    assert event.query(), "nothing is recorded yet"
    assert event.device is None
    before = standin_xpu.submit()
    event.record()
    behind = standin_xpu.submit()
    assert event.device == torch.device("xpu", 0)
    assert not event.query()
    event.synchronize()
    assert event.query()
    assert before.done
    assert not behind.done


def test_polling_comes_to_its_end(standin_xpu):
    for _ in range(3):
        standin_xpu.submit()
    event = torch.xpu.current_stream().record_event()
    answers = []
    while not answers or not answers[-1]:
        answers.append(event.query())
    assert answers == [False] * 4 + [True]
    assert torch.xpu.current_stream().query()


def test_a_wait_orders_two_streams_and_a_missing_one_shows(standin_xpu):
    def consumed(ordered):
        produced = []
        producer, consumer = torch.xpu.Stream(), torch.xpu.Stream()
        standin_xpu.submit(lambda: produced.append("data"), stream=producer)
        if ordered:
            consumer.wait_event(producer.record_event())
        seen = []
        standin_xpu.submit(lambda: seen.extend(produced), stream=consumer)
        consumer.synchronize()
        return seen

    assert consumed(ordered=True) == ["data"]
    assert consumed(ordered=False) == []


def test_wait_stream_takes_in_what_was_submitted_so_far(standin_xpu):
    producer, consumer = torch.xpu.Stream(), torch.xpu.Stream()
    before = standin_xpu.submit(stream=producer)
    consumer.wait_stream(producer)
    behind = standin_xpu.submit(stream=producer)
    consumer.synchronize()
    assert before.done
    assert not behind.done


def test_a_long_chain_of_waits_is_followed(standin_xpu):
    streams = [torch.xpu.Stream(device=index % 2) for index in range(2)]
    first = standin_xpu.submit(stream=streams[0])
    for step in range(5000):
        streams[(step + 1) % 2].wait_stream(streams[step % 2])
    streams[0].synchronize()
    assert first.done


def test_elapsed_time_is_in_milliseconds(standin_xpu):
    start, end = torch.xpu.Event(enable_timing=True), torch.xpu.Event(True)
    start.record()
    standin_xpu.submit(seconds=0.25)
    standin_xpu.submit(seconds=0.125)
    end.record()
    end.synchronize()
    assert start.elapsed_time(end) == 375.0
    assert end.elapsed_time(start) == -375.0


def test_elapsed_time_counts_the_waiting_for_another_stream(standin_xpu):
    slow, side = torch.xpu.Stream(), torch.xpu.Stream()
    start, end = (torch.xpu.Event(enable_timing=True) for _ in range(2))
    start.record(side)
    standin_xpu.submit(stream=slow, seconds=2)
    side.wait_stream(slow)
    standin_xpu.submit(stream=side, seconds=1)
    end.record(side)
    side.synchronize()
    assert start.elapsed_time(end) == 3000.0


def test_elapsed_time_refuses_what_a_real_event_refuses(standin_xpu):
    plain, timed, never = torch.xpu.Event(), torch.xpu.Event(enable_timing=True), torch.xpu.Event(True)
    timed.record()
    plain.record()
    with pytest.raises(RuntimeError, match="must be recorded"):
        timed.elapsed_time(never)
    with pytest.raises(RuntimeError, match="must be completed"):
        timed.elapsed_time(plain)
    torch.xpu.synchronize()
    with pytest.raises(RuntimeError, match="enable_timing=True"):
        timed.elapsed_time(plain)


def test_an_event_stays_with_its_device_and_can_be_waited_for_anywhere(standin_xpu):
    other = torch.xpu.Stream(device=1)
    work = standin_xpu.submit()
    event = torch.xpu.current_stream().record_event()
    other.wait_event(event)
    other.synchronize()
    assert work.done
    with pytest.raises(RuntimeError, match=r"Event device 0 does not match recording stream's device 1"):
        event.record(other)


def test_an_event_takes_streams_of_the_xpu_only(standin_xpu):
    event = torch.xpu.Event()
    with pytest.raises(RuntimeError, match=r"expected stream to be a torch\.Stream"):
        event.record("main")
    with pytest.raises(RuntimeError, match="expected a stream of an XPU, got one of cpu"):
        event.record(torch.Stream(stream_id=0, device_index=-1, device_type=0))


def test_the_event_base_takes_what_the_installed_torch_declares(standin_xpu):
    base = torch._C._XpuEventBase
    base(True)
    base(enable_timing=True)
    for unknown in ("blocking", "external", "bloking"):
        with pytest.raises(TypeError, match=unknown):
            base(**{unknown: True})
    if TORCH.release >= (2, 15):
        base(enable_timing=False, interprocess=True)
        torch.xpu.Event(False, True, True)
    else:
        with pytest.raises(TypeError, match="interprocess"):
            base(interprocess=True)
        with pytest.raises(TypeError, match="blocking"):
            torch.xpu.Event(blocking=True)
        with pytest.raises(TypeError):
            torch.xpu.Event(False, False)
    with pytest.raises(TypeError):
        base(enable_timing="yes")


def test_nothing_runs_while_the_device_is_held(standin_xpu):
    work = standin_xpu.submit()
    event = torch.xpu.current_stream().record_event()
    with standin_xpu.held():
        torch.xpu.Stream().wait_event(event)
        assert [event.query() for _ in range(5)] == [False] * 5
        for wait in (event.synchronize, torch.xpu.synchronize, torch.xpu.current_stream().synchronize):
            with pytest.raises(StandinError, match="held"):
                wait()
    assert not work.done
    event.synchronize()
    assert work.done


@pytest.mark.skipif(TORCH.release < (2, 15), reason="torch.xpu._sleep came with 2.15")
def test_sleep_is_work_of_the_current_stream(standin_xpu):
    start, end = torch.xpu.Event(True), torch.xpu.Event(True)
    start.record()
    torch.xpu._sleep(3_000_000)
    end.record()
    torch.xpu.synchronize()
    assert start.elapsed_time(end) == 3.0
