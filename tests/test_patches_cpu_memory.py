"""torch.accelerator.get_memory_info on a CPU host, on the torch that is installed."""

from __future__ import annotations

import inspect
import sys
from types import ModuleType

import pytest

torch = pytest.importorskip("torch")

from support import printed, python  # noqa: E402  # behind the importorskip on purpose

import compat_patches  # noqa: E402
from compat_patches.patches.host_memory import host_memory  # noqa: E402

HAS_FUNCTION = tuple(int(part) for part in torch.__version__.split("+")[0].split(".")[:2]) >= (2, 10)
PATCH = "cpu-memory-info" if HAS_FUNCTION else "cpu-memory-info-backport"

pytestmark = pytest.mark.skipif(torch.accelerator.is_available(), reason="this host has an accelerator")


def get_memory_info(*arguments: object) -> tuple[int, int]:
    found: tuple[int, int] = torch.accelerator.get_memory_info(*arguments)
    return found


@pytest.mark.parametrize("arguments", [(), (None,), (0,), (3,), ("cpu",), ("cpu:0",), (torch.device("cpu"),)])
def test_a_host_is_answered_with_its_memory_in_bytes(arguments: tuple[object, ...]) -> None:
    with compat_patches.applied(PATCH):
        available, total = get_memory_info(*arguments)
    assert type(available) is int
    assert type(total) is int
    assert 0 < available <= total == host_memory()[1]


@pytest.mark.parametrize("argument", ["cuda", "cuda:0", "meta", "no such device", -1])
def test_another_device_keeps_upstreams_error(argument: object) -> None:
    plain = error_of(argument) if HAS_FUNCTION else None
    with compat_patches.applied(PATCH):
        patched = error_of(argument)
    if HAS_FUNCTION:
        assert patched == plain
    else:
        assert patched[0] in (RuntimeError, ValueError)


def error_of(argument: object) -> tuple[type, str]:
    with pytest.raises(Exception) as raised:  # which one it is, is the question
        get_memory_info(argument)
    return type(raised.value), str(raised.value)


def test_the_parameter_stays_positional_only() -> None:
    with compat_patches.applied(PATCH):
        signature = inspect.signature(torch.accelerator.get_memory_info)
        with pytest.raises(TypeError):
            torch.accelerator.get_memory_info(device_index=0)
    assert [p.kind for p in signature.parameters.values()] == [inspect.Parameter.POSITIONAL_ONLY]


def test_both_names_hold_one_object_before_and_during_and_after() -> None:
    modules = [torch.accelerator, torch.accelerator.memory]

    def held() -> set[object]:
        return {vars(module).get("get_memory_info") for module in modules}

    # Importing compat_patches has applied it already, unless another test has undone that.
    with compat_patches.reverted(PATCH):
        before = held()
        with compat_patches.applied(PATCH):
            during = held()
        assert held() == before
    assert len(before) == len(during) == 1
    assert during != before


def test_where_an_accelerator_is_available_upstream_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    device = torch.device("cuda")
    monkeypatch.setattr(torch.accelerator, "is_available", lambda: True)
    monkeypatch.setattr(torch.accelerator, "current_accelerator", lambda *_: device)
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda index=None: (10, 20))
    monkeypatch.setattr(torch.accelerator, "current_device_index", lambda: 0)
    if HAS_FUNCTION:
        monkeypatch.setattr(torch._C, "_accelerator_getMemoryInfo", lambda index: (10, 20))
    with compat_patches.applied(PATCH):
        assert get_memory_info() == (10, 20)
        assert get_memory_info("cuda:0") == (10, 20)
        with pytest.raises(ValueError, match="doesn't match the current accelerator"):
            get_memory_info("cpu")


def test_nothing_is_asked_of_a_device_before_the_call(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    monkeypatch.setattr(torch.accelerator, "is_available", lambda: asked.append("is_available"))
    with compat_patches.applied(PATCH):
        assert asked == []
        get_memory_info()
        assert asked == ["is_available"]


@pytest.mark.skipif(not HAS_FUNCTION, reason="there is no function to fail")
def test_the_plain_call_raises_and_the_patched_one_answers_whenever_we_are_imported() -> None:
    call = "import torch; print(*torch.accelerator.get_memory_info())"
    assert "RuntimeError" in python("-c", call).stderr
    for program in (f"import compat_patches; {call}", f"import torch, compat_patches; {call}"):
        available, total = map(int, printed("-c", program).split())
        assert 0 < available <= total


@pytest.mark.skipif(HAS_FUNCTION, reason="the function is there")
def test_the_injected_name_is_exported_and_goes_away_again() -> None:
    modules: list[ModuleType] = [torch.accelerator, sys.modules["torch.accelerator.memory"]]
    before = [list(module.__all__) for module in modules]
    with compat_patches.applied(PATCH):
        assert all("get_memory_info" in module.__all__ for module in modules)
    assert [module.__all__ for module in modules] == before
    assert not any(hasattr(module, "get_memory_info") for module in modules)
