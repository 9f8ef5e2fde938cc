"""The stand-in XPU comes into a process whole, leaves nothing behind, and refuses an unknown torch."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest
from packaging.version import Version
from standin import StandinError, current, install, installed, run_program
from standin.runtime import GIBIBYTE
from standin.signatures import read_torch

torch = pytest.importorskip("torch")

TORCH = Version(torch.__version__)


# torch.accelerator.


def test_torch_accelerator_says_xpu(standin_accelerator):
    assert torch.accelerator.current_accelerator() == torch.device("xpu")
    assert torch.accelerator.is_available()
    assert torch.accelerator.device_count() == 2
    assert torch.get_device_module() is torch.xpu
    torch.accelerator.set_device_index(1)
    assert torch.accelerator.current_device_index() == torch.xpu.current_device() == 1


def test_torch_accelerator_shares_streams_with_torch_xpu(standin_accelerator):
    side = torch.xpu.Stream()
    torch.accelerator.set_stream(side)
    assert torch.xpu.current_stream() == side
    stream = torch.accelerator.current_stream()
    assert isinstance(stream, torch.Stream)
    assert stream == side
    work = standin_accelerator.submit()
    event = stream.record_event()
    assert not event.query()
    torch.accelerator.synchronize()
    assert work.done
    other = torch.accelerator.current_stream("xpu:1")
    assert other.device == torch.device("xpu", 1)
    late = standin_accelerator.submit(stream=side)
    other.wait_stream(stream)
    other.synchronize()
    assert late.done


def test_torch_accelerator_counts_the_same_memory(standin_accelerator):
    assert torch.accelerator.memory_stats() == {}, "the allocator is not initialized"
    torch.xpu.init()
    allocation = standin_accelerator.devices[0].memory.allocate(1000)
    assert torch.accelerator.memory_allocated() == 1000
    allocation.free()
    torch.accelerator.empty_cache()
    torch.accelerator.reset_peak_memory_stats()
    torch.accelerator.reset_accumulated_memory_stats()
    assert torch.accelerator.memory_reserved() == torch.accelerator.max_memory_allocated() == 0
    if TORCH.release >= (2, 10):
        assert torch.accelerator.get_memory_info("xpu:1") == (10 * GIBIBYTE, 12 * GIBIBYTE)
        assert torch.float16 in torch.accelerator.get_device_capability(0)["supported_dtypes"]


# Coming and going.


def state_of_torch():
    """All that the stand-in changes, by identity, and the whole of torch's modules that it comes near."""
    modules = {name: module for name, module in sys.modules.items() if name.startswith("torch.xpu")}
    watched = {**modules, "torch": torch, "torch._C": torch._C, "torch.version": torch.version}
    watched |= {"torch.cuda": torch.cuda, "torch.accelerator": torch.accelerator}
    watched["torch._C._dynamo.utils"] = torch._C._dynamo.utils
    return {name: (id(module), {k: id(v) for k, v in vars(module).items()}) for name, module in watched.items()}


@pytest.mark.parametrize("as_accelerator", [False, True])
def test_everything_is_as_before_afterwards(as_accelerator):
    before = state_of_torch()
    modules = set(sys.modules)
    for _ in range(3):
        with installed(as_accelerator=as_accelerator) as standin:
            assert state_of_torch() != before
            assert current() is standin
            torch.xpu.current_stream().synchronize()
            torch.xpu.get_device_capability()
        assert state_of_torch() == before
    with pytest.raises(ZeroDivisionError), installed(as_accelerator=as_accelerator):
        torch.xpu.Event().record()
        raise ZeroDivisionError
    assert state_of_torch() == before
    assert {name for name in set(sys.modules) - modules if "xpu" in name or name == "pyzes"} == set()
    assert not torch.xpu.is_available()
    with pytest.raises(RuntimeError, match="dummy base class"):
        torch.xpu.Event()
    with pytest.raises(StandinError, match="no stand-in XPU"):
        current()


def test_a_second_stand_in_is_refused(standin_xpu):
    with pytest.raises(StandinError, match="there already"), installed():
        pass
    assert current() is standin_xpu


def test_what_is_left_behind_in_torch_is_an_error():
    before = state_of_torch()
    event = torch.cuda.Event
    try:
        with pytest.raises(StandinError, match=r"left in torch\.cuda:Event;"), installed():
            torch.cuda.Event = torch.xpu.Event
    finally:
        torch.cuda.Event = event
    assert state_of_torch() == before


def takes_blocking():
    try:
        return isinstance(torch.xpu.Event(blocking=True), torch.xpu.Event)
    except TypeError:
        return False


@pytest.mark.skipif(TORCH.release >= (2, 15), reason="xpu-event-blocking is for torch before 2.15")
def test_patches_of_torch_xpu_are_undone_meanwhile_and_can_be_applied_inside():
    compat_patches = pytest.importorskip("compat_patches")
    with compat_patches.reverted("xpu-event-blocking"):
        unpatched = torch.xpu.Event.__new__
        with compat_patches.applied("xpu-event-blocking"):
            with installed():
                assert not takes_blocking()
                with compat_patches.applied("xpu-event-blocking"):
                    assert takes_blocking()
                assert not takes_blocking()
            assert [status.state for status in compat_patches.verify("xpu-event-blocking")] == ["applied"]
            assert torch.xpu.Event.__new__ is not unpatched
        assert torch.xpu.Event.__new__ is unpatched


@pytest.mark.skipif(TORCH.release >= (2, 15), reason="xpu-event-blocking is for torch before 2.15")
def test_a_patch_that_stays_applied_inside_is_an_error():
    compat_patches = pytest.importorskip("compat_patches")
    with compat_patches.reverted("xpu-event-blocking"):
        with pytest.raises(StandinError, match="revert xpu-event-blocking before"), installed():
            compat_patches.apply("xpu-event-blocking")
        compat_patches.revert("xpu-event-blocking")


# The installed torch is the measure.


@pytest.fixture
def changed_torch(tmp_path, monkeypatch):
    """A copy of what the stand-in reads of torch, and a function that replaces text in one of its files."""
    installed_torch = Path(torch.__file__).parent
    for folder in ("xpu", "accelerator"):
        shutil.copytree(installed_torch / folder, tmp_path / folder)
    (tmp_path / "_C").mkdir()
    for file in ("_C/__init__.pyi", "version.py"):
        shutil.copy(installed_torch / file, tmp_path / file)
    monkeypatch.setattr(install, "read_installed_torch", lambda: read_torch(tmp_path))

    def change(file, old, new):
        text = (tmp_path / file).read_text()
        assert old in text
        (tmp_path / file).write_text(text.replace(old, new))

    return change


@pytest.mark.parametrize(
    ("file", "old", "new", "message"),
    [
        pytest.param(
            "xpu/streams.py",
            "import ctypes\n",
            "import ctypes\ntorch._C._xpu_newName()\n",
            r"_xpu_newName is used in torch/xpu/streams\.py:\d+, and the stand-in has no such name",
            id="a name that is used",
        ),
        pytest.param(
            "xpu/streams.py",
            "import ctypes\n",
            "import ctypes\nfrom torch._C import _XpuFence\n",
            r"torch\._C\._XpuFence is used in torch/xpu/streams\.py:\d+",
            id="a name that is imported",
        ),
        pytest.param(
            "_C/__init__.pyi",
            "enable_timing: _bool = False",
            "enable_timing: _bool = False, priority: _int = 0",
            r"_XpuEventBase\.__new__.*priority.*and the stand-in knows .*enable_timing",
            id="a parameter of the event",
        ),
        pytest.param(
            "_C/__init__.pyi",
            "def _xpu_getMemoryInfo(device:",
            "def _xpu_getMemoryInfo(index:",
            r"torch declares torch\._C\._xpu_getMemoryInfo\(index\), and the stand-in knows \(device",
            id="a parameter of a function",
        ),
        pytest.param(
            "_C/__init__.pyi",
            "    sycl_queue: _int",
            "    sycl_queue: _int\n    fence: _int",
            r"_XpuStreamBase\.fence, and the stand-in has no such attribute",
            id="an attribute of the stream",
        ),
        pytest.param(
            "_C/__init__.pyi",
            "    gpu_eu_count: _int",
            "    eu: _int",
            r"_XpuDeviceProperties\.eu, and the stand-in has no such attribute",
            id="a property of the device",
        ),
    ],
)
def test_a_torch_that_it_does_not_know_is_named(changed_torch, file, old, new, message):
    before = state_of_torch()
    changed_torch(file, old, new)
    with pytest.raises(StandinError, match=message) as caught, installed():
        pass
    assert torch.__version__ in str(caught.value)
    assert state_of_torch() == before


def test_a_name_of_torch_accelerator_that_it_does_not_know_is_named(changed_torch):
    changed_torch("accelerator/memory.py", "_accelerator_emptyCache", "_accelerator_emptyCaches")
    with pytest.raises(StandinError, match="_accelerator_emptyCaches"), installed(as_accelerator=True):
        pass
    with installed():
        assert torch.xpu.is_available()


# Programs of their own.


def test_a_program_has_an_xpu_and_no_cuda_from_the_first_import_on():
    output = run_program(
        """
        import sys
        assert "torch" not in sys.modules
        import os, torch, standin
        assert torch.version.xpu and torch.version.cuda is None
        assert torch.xpu.is_available() and not torch.cuda.is_available()
        assert torch.xpu.device_count() == 1
        assert not torch.backends.cuda.is_built()
        assert standin.current() is standin_xpu
        try:
            torch.cuda.Event()
        except RuntimeError as error:
            print(error)
        work = standin_xpu.submit()
        torch.xpu.synchronize()
        print(work.done)
        child = os.fork()
        if not child:
            torch.xpu.init()                # must raise, so that the child ends with 1
            os._exit(0)
        print("child", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        """,
        device_count=1,
    )
    assert output.splitlines() == ["Tried to instantiate dummy base class Event", "True", "child 1"]


def test_dynamo_compiles_what_names_the_xpu():
    output = run_program(
        """
        import torch

        def on_the_current_stream(x):
            torch.xpu.set_stream(torch.xpu.current_stream())
            event = torch.xpu.Event()
            torch.xpu.mem_get_info()
            return x + 1

        print(torch.compile(on_the_current_stream, fullgraph=True, backend="eager")(torch.ones(2)).tolist())
        """,
        as_accelerator=True,
    )
    assert output.splitlines()[-1] == "[2.0, 2.0]"


def test_a_program_that_fails_says_all_that_it_wrote():
    with pytest.raises(AssertionError, match=r"ended with 3\n--- stdout\nout\n\n--- stderr\nerr"):
        run_program("import sys; print('out'); print('err', file=sys.stderr); sys.exit(3)")


def test_a_program_can_be_a_file(tmp_path, run_on_standin_xpu):
    program = tmp_path / "example.py"
    program.write_text("import sys\nprint(sys.argv == [__file__], len(standin_xpu.devices), __name__)")
    assert run_on_standin_xpu(program) == "True 2 __main__\n"
