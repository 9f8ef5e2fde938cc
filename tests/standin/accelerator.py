"""The names of torch._C behind torch.accelerator, answered as a build with the stand-in XPU would.

Out of reach, since they are C types that ask C++ for the accelerator of the build: ``torch.Event()``,
``torch.Stream()``, ``torch.accelerator.Graph()``, and so a stream that is made in code that Dynamo compiled.
"""

from __future__ import annotations

import operator
import sys
from typing import Any

from .bases import tuple_of
from .cnames import initialize_torch_xpu
from .runtime import StandinXpu
from .signatures import TorchFacts

# Used by torch.accelerator, and bound into a class before any stand-in can come.
OUT_OF_REACH = ("_acceleratorGraph",)

SUPPORTED_DTYPES = ("bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32")


def dynamo_names(accelerator: dict[str, Any]) -> dict[str, Any]:
    """The names of torch._C._dynamo.utils that ask C++ for the accelerator; torch 2.15 has one."""

    def get_current_stream(device: Any) -> Any:
        return accelerator["_accelerator_getStream"](-1 if device.index is None else device.index)

    known = {"get_current_stream": get_current_stream}
    there = vars(sys.modules["torch._C"]._dynamo.utils)
    return {name: value for name, value in known.items() if name in there}


def accelerator_names(standin: StandinXpu, facts: TorchFacts, stream_type: type) -> dict[str, Any]:
    """The names of torch._C that the torch.accelerator of ``facts`` uses, and torch.get_device_module's."""
    torch_c = sys.modules["torch._C"]

    class AcceleratorStream(stream_type):
        """A torch.Stream of the stand-in, with the methods whose C++ side would look for a real XPU."""

        def record_event(self, event: Any = None) -> Any:
            event = torch_c._XpuEventBase() if event is None else event
            event.record(self)
            return event

        def wait_event(self, event: Any) -> None:
            event.wait(self)

        def wait_stream(self, other: Any) -> None:
            event = torch_c._XpuEventBase()
            event.record(other)
            event.wait(self)

    def stream_of(queue: Any) -> Any:
        stream_id, device_index, device_type = tuple_of(queue)
        return AcceleratorStream(stream_id=stream_id, device_index=device_index, device_type=device_type)

    def _accelerator_getAccelerator() -> Any:
        return torch_c.device("xpu")

    def _get_accelerator(check: bool = False) -> Any:
        return torch_c.device("xpu")

    def _accelerator_setDeviceIndex(device_index: int) -> None:
        if operator.index(device_index) >= 0:
            initialize_torch_xpu()
            standin.exchange_device(device_index)

    def _accelerator_getDeviceIndex() -> int:
        initialize_torch_xpu()
        return standin.current_device_index

    def _accelerator_exchangeDevice(device_index: int) -> int:
        if operator.index(device_index) < 0:
            return -1
        initialize_torch_xpu()
        return standin.exchange_device(device_index)

    def _accelerator_maybeExchangeDevice(device_index: int) -> int:
        return _accelerator_exchangeDevice(device_index)

    def _accelerator_getDeviceCapability(device_index: int) -> dict[str, Any]:
        standin.device(device_index)
        return {"supported_dtypes": {getattr(sys.modules["torch"], name) for name in SUPPORTED_DTYPES}}

    def _accelerator_setStream(stream: Any) -> None:
        initialize_torch_xpu()
        standin.set_current_queue(standin.queue(stream.device_index, stream.stream_id))

    def _accelerator_getStream(device_index: int) -> Any:
        initialize_torch_xpu()
        return stream_of(standin.current_queue(device_index))

    def _accelerator_synchronizeDevice(device_index: int) -> None:
        if standin.initialized:
            standin.synchronize(device_index)

    def _accelerator_isAllocatorInitialized() -> bool:
        return standin.initialized

    def _accelerator_emptyCache() -> None:
        for device in standin.devices:
            device.memory.empty_cache()

    def _accelerator_emptyHostCache() -> None:
        """The stand-in pins no host memory, so there is none to release."""

    def _accelerator_getDeviceStats(device_index: int) -> dict[str, Any]:
        return standin.device(device_index).memory.statistics()

    def _accelerator_resetAccumulatedStats(device_index: int) -> None:
        standin.device(device_index).memory.reset_accumulated()

    def _accelerator_resetPeakStats(device_index: int) -> None:
        standin.device(device_index).memory.reset_peak()

    def _accelerator_getMemoryInfo(device_index: int) -> tuple[int, int]:
        initialize_torch_xpu()
        memory = standin.device(device_index).memory
        return memory.free, memory.total

    def _accelerator_getDefaultGenerator(device_index: int) -> Any:
        initialize_torch_xpu()
        return sys.modules["torch.xpu"].default_generators[standin.device(device_index).index]

    return {
        name: value
        for name, value in locals().items()
        if name == "_get_accelerator" or name in facts.used_by_accelerator
    }
