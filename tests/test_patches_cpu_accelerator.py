"""Accelerator code on a CPU host, on the torch that is installed."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest

torch = pytest.importorskip("torch")

from support import entries  # noqa: E402  # behind the importorskip on purpose

import compat_patches  # noqa: E402

PATCH = "cpu-accelerator"
RELEASE = tuple(int(part) for part in torch.__version__.split("+")[0].split(".")[:2])
CPU_BUILD = torch.version.cuda is None and torch.version.hip is None

pytestmark = pytest.mark.skipif(torch.accelerator.is_available(), reason="this host has an accelerator")

CALLS: dict[str, tuple[Callable[[], object], object]] = {
    "synchronize": (lambda: torch.accelerator.synchronize(), None),
    "synchronize an index": (lambda: torch.accelerator.synchronize(0), None),
    "empty_cache": (lambda: torch.accelerator.empty_cache(), None),
    "memory_allocated": (lambda: torch.accelerator.memory_allocated(), 0),
    "max_memory_allocated": (lambda: torch.accelerator.max_memory_allocated(), 0),
    "memory_reserved": (lambda: torch.accelerator.memory_reserved(0), 0),
    "max_memory_reserved": (lambda: torch.accelerator.max_memory_reserved("cpu"), 0),
    "memory_stats": (lambda: torch.accelerator.memory_stats()["allocated_bytes.all.current"], 0),
    "reset_peak_memory_stats": (lambda: torch.accelerator.reset_peak_memory_stats(), None),
    "reset_accumulated_memory_stats": (lambda: torch.accelerator.reset_accumulated_memory_stats(), None),
    "current_device_index": (lambda: torch.accelerator.current_device_index(), 0),
    "set_device_index": (lambda: torch.accelerator.set_device_index(0), None),
    "device_index": (lambda: torch.accelerator.device_index(0).__enter__(), None),
    "current_stream": (lambda: torch.accelerator.current_stream().device.type, "cpu"),
    "pin_memory": (lambda: torch.ones(2).pin_memory().tolist(), [1.0, 1.0]),
    "record_stream": (lambda: torch.ones(2).record_stream(torch.Stream("cpu")), None),
    "record": (lambda: torch.Event("cpu").record(), None),
}
if RELEASE >= (2, 12):
    CALLS["empty_host_cache"] = (lambda: torch.accelerator.empty_host_cache(), None)


def outcome_of(call: Callable[..., object], *arguments: object) -> tuple[str, str]:
    """What a call returned or raised, for comparison."""
    try:
        return "returned", str(call(*arguments))
    except Exception as error:
        return type(error).__name__, str(error)


@pytest.mark.parametrize("name", CALLS)
def test_a_call_answers_during_and_does_after_what_it_did_before(name: str) -> None:
    call, answer = CALLS[name]
    before = outcome_of(call)
    # A CUDA build answers some of these without a device.
    assert before[0] != "returned" or not CPU_BUILD
    with compat_patches.applied(PATCH) as (status,):
        assert status.state == "applied", status.reason
        assert call() == answer
    assert outcome_of(call) == before


def test_undoing_leaves_every_owner_as_it_was() -> None:
    owners = [torch, torch._C, torch.accelerator, torch.Tensor]
    before = [entries(owner) for owner in owners]
    assert "pin_memory" not in vars(torch.Tensor)
    with compat_patches.applied(PATCH):
        assert "pin_memory" in vars(torch.Tensor)
    assert "pin_memory" not in vars(torch.Tensor)
    assert [entries(owner) for owner in owners] == before


def test_the_time_between_two_events_is_that_of_the_clock() -> None:
    matrix = torch.ones(700, 700)
    with compat_patches.applied(PATCH):
        start, end = torch.Event(enable_timing=True), torch.Event("cpu", enable_timing=True)
        began = time.perf_counter()
        start.record()
        matrix @ matrix
        time.sleep(0.02)
        end.record()
        milliseconds = (time.perf_counter() - began) * 1e3
        assert start.elapsed_time(end) == pytest.approx(milliseconds, rel=0.05)
        assert end.query()
        end.synchronize()
        end.wait()


@pytest.mark.parametrize(
    ("timed", "recorded", "message"), [(False, True, "enable_timing=True"), (True, False, "must be recorded")]
)
def test_a_time_that_cannot_be_told_is_upstreams_error(timed: bool, recorded: bool, message: str) -> None:
    with compat_patches.applied(PATCH):
        start, end = torch.Event(enable_timing=timed), torch.Event(enable_timing=timed)
        if recorded:
            start.record()
            end.record()
        with pytest.raises(ValueError, match=message):
            start.elapsed_time(end)


def test_a_stream_is_current_inside_of_its_body_and_in_its_thread_alone() -> None:
    with compat_patches.applied(PATCH):
        default = torch.accelerator.current_stream()
        outer, inner = torch.Stream(), torch.Stream("cpu")
        assert len({default, outer, inner}) == 3
        seen: list[object] = []
        with outer:
            with inner as entered:
                assert entered is inner
                assert torch.accelerator.current_stream() == inner
                thread = threading.Thread(target=lambda: seen.append(torch.accelerator.current_stream()))
                thread.start()
                thread.join()
            assert torch.accelerator.current_stream() == outer
        assert torch.accelerator.current_stream() == default
        assert seen == [default]
        torch.accelerator.set_stream(inner)
        assert torch.accelerator.current_stream() == inner
        torch.accelerator.set_stream(default)


def test_a_stream_records_and_waits() -> None:
    with compat_patches.applied(PATCH):
        first, second = torch.Stream(), torch.Stream()
        event = first.record_event(torch.Event(enable_timing=True))
        second.wait_event(event)
        second.wait_stream(first)
        assert second.query()
        second.synchronize()
        assert event.elapsed_time(second.record_event(torch.Event(enable_timing=True))) >= 0
        assert isinstance(first.record_event(), torch.Event)


def test_another_device_keeps_upstreams_error() -> None:
    plain = outcome_of(torch.accelerator.synchronize, "meta")
    with compat_patches.applied(PATCH):
        patched = outcome_of(torch.accelerator.synchronize, "meta")
    assert patched == plain


def test_where_an_accelerator_is_available_upstream_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    plain, pinning = outcome_of(torch.accelerator.synchronize), outcome_of(torch.ones(2).pin_memory)
    monkeypatch.setattr(torch.accelerator, "is_available", lambda: True)
    with compat_patches.applied(PATCH):
        patched = outcome_of(torch.accelerator.synchronize)
        assert outcome_of(torch.ones(2).pin_memory) == pinning
    assert patched == plain


def test_each_target_has_an_object_of_its_own() -> None:
    names = ["synchronize", "set_device_index", "empty_cache", "reset_peak_memory_stats", "memory_allocated"]
    with compat_patches.applied(PATCH):
        assert len({id(getattr(torch.accelerator, name)) for name in names}) == len(names)


def test_together_with_the_other_event_patch_cuda_events_are_timed_on_the_cpu() -> None:
    for order in ((PATCH, "cuda-event-on-accelerator"), ("cuda-event-on-accelerator", PATCH)):
        with compat_patches.applied(*order):
            start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(True, True)
            start.record()
            end.record()
            assert 0 <= start.elapsed_time(end) < 1000


@pytest.mark.skipif(not CPU_BUILD, reason="on a CUDA build Dynamo asks for the driver")
def test_the_self_test_compiles_every_sample() -> None:
    for status in compat_patches.selftest(PATCH, "cuda-event-on-accelerator"):
        assert status.state == "applied", status.reason
        assert "torch.compile takes" in status.reason
