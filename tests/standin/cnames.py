"""The names of torch._C that an XPU build has, over a StandinXpu: functions here, base classes in ``bases``.

Parameters are named as in torch's own stub, and errors that user code meets read as in the C++ sources
(torch/csrc/xpu, c10/xpu). What the stand-in has no model of is there and raises StandinError.
"""

from __future__ import annotations

import operator
import sys
import uuid
from typing import Any

from .bases import event_base, graph_base, stream_base, tuple_of
from .errors import StandinError
from .queues import NANOSECONDS
from .runtime import Device, StandinXpu
from .signatures import TorchFacts

NOT_MODELLED_FUNCTIONS = (
    "_xpu_getStreamFromExternal",
    "_xpu_memorySnapshot",
    "_xpu_recordMemoryHistory",
    "_xpu_customAllocator",
    "_xpu_changeCurrentAllocator",
    "_xpu_getAllocator",
    "_xpu_beginAllocateToPool",
    "_xpu_beginAllocateCurrentThreadToPool",
    "_xpu_endAllocateToPool",
    "_xpu_releasePool",
)
NOT_MODELLED_CLASSES = ("_xpu_XPUAllocator", "_XPUMemPool")

# Device cycles of torch.xpu._sleep per second of the virtual clock.
CYCLES_PER_SECOND = 1_000_000_000

_PROPERTIES: dict[str, Any] = {
    "name": "Stand-in XPU",
    "platform_name": "Stand-in Level-Zero",
    "vendor": "compat_patches tests",
    "device_id": 0x0BAD,
    "driver_version": "1.0.0",
    "version": "1.0",
    "max_compute_units": 448,
    "gpu_eu_count": 448,
    "max_work_group_size": 1024,
    "max_num_sub_groups": 64,
    "memory_clock_rate": 1600,
    "memory_bus_width": 1024,
    "sub_group_sizes": [16, 32],
    "local_mem_size": 131072,
    "last_level_cache_size": 201326592,
    "has_fp16": True,
    "has_fp64": True,
    "has_atomic64": True,
    "has_bfloat16_conversions": True,
    "has_subgroup_matrix_multiply_accumulate": True,
    "has_subgroup_matrix_multiply_accumulate_tensor_float32": True,
    "has_subgroup_2d_block_io": True,
    "is_integrated_gpu": False,
    "total_memory": 0,
    "gpu_subslice_count": 56,
    "architecture": 0,
    "type": "gpu",
    "uuid": None,
}


def modelled_names(standin: StandinXpu, facts: TorchFacts) -> dict[str, Any]:
    """The names that the stand-in answers, as far as the torch of ``facts`` has them."""
    stream_type = stream_base(standin)
    names = {
        "_XpuStreamBase": stream_type,
        "_XpuEventBase": event_base(standin, facts),
        "_XPUGraph": graph_base(standin),
        "_XpuDeviceProperties": _device_properties(facts),
        **_device_functions(standin),
        **_stream_functions(standin),
        **_memory_functions(standin),
    }
    names["_xpu_init"] = _init(standin, names["_XpuDeviceProperties"])
    return {name: value for name, value in names.items() if facts.expects(name)}


def refused_names(facts: TorchFacts) -> dict[str, Any]:
    """The names that the torch of ``facts`` has and the stand-in no model of: using one is a StandinError."""
    names: dict[str, Any] = {name: _refusal(name) for name in NOT_MODELLED_FUNCTIONS}
    names |= {name: type(name, (), {"__init__": _refusal(name)}) for name in NOT_MODELLED_CLASSES}
    return {name: value for name, value in names.items() if facts.expects(name)}


def _refusal(name: str) -> Any:
    def refuse(*args: Any, **kwargs: Any) -> None:
        raise StandinError(f"the stand-in XPU has no model of torch._C.{name}")

    return refuse


def initialize_torch_xpu() -> None:
    """What the C side does first wherever it needs the device."""
    sys.modules["torch.xpu"]._lazy_init()


def _index(argument: Any, function: str) -> int:
    try:
        return operator.index(argument)
    except TypeError:
        raise RuntimeError(f"invalid argument to {function}") from None


def _device_functions(standin: StandinXpu) -> dict[str, Any]:
    def _xpu_setDevice(device: int) -> None:
        standin.exchange_device(_index(device, "set_device"))

    def _xpu_exchangeDevice(device: int) -> int:
        if _index(device, "exchange_device") < 0:
            return -1
        initialize_torch_xpu()
        return standin.exchange_device(device)

    def _xpu_maybeExchangeDevice(device: int) -> int:
        if _index(device, "maybe_exchange_device") < 0:
            return -1
        initialize_torch_xpu()
        return standin.exchange_device(device)

    def _xpu_getDevice() -> int:
        return standin.current_device_index

    def _xpu_getDeviceCount() -> int:
        return len(standin.devices)

    def _xpu_getArchFlags() -> str:
        return "pvc bmg"

    def _xpu_isInBadFork() -> bool:
        return standin.in_bad_fork

    def _xpu_canDeviceAccessPeer(device: int, peer: int) -> bool:
        return standin.device(device) is not standin.device(peer)

    return _functions(locals())


def _stream_functions(standin: StandinXpu) -> dict[str, Any]:
    def _xpu_getCurrentStream(device: int) -> tuple[int, int, int]:
        return tuple_of(standin.current_queue(_index(device, "current_stream")))

    def _xpu_getCurrentRawStream(device: int) -> int:
        return id(standin.current_queue(_index(device, "getCurrentRawStream")))

    def _xpu_setStream(stream_id: int, device_index: int, device_type: int) -> None:
        queue = standin.queue(device_index, stream_id)
        if device_type != tuple_of(queue)[2]:
            raise RuntimeError(f"expected the device type of XPU, got {device_type}")
        standin.set_current_queue(queue)

    def _xpu_synchronize(device: int) -> None:
        standin.synchronize(_index(device, "synchronize"))

    def _xpu_sleep(cycles: int) -> None:
        duration = operator.index(cycles) * NANOSECONDS // CYCLES_PER_SECOND
        standin.scheduler.submit(standin.current_queue(), duration=duration, name="torch.xpu._sleep")

    def _xpu_isCurrentStreamCapturing() -> bool:
        return standin.current_queue().capture is not None

    pools = iter(range(1, sys.maxsize))

    def _xpu_graph_pool_handle() -> tuple[int, int]:
        return 0, next(pools)

    return _functions(locals())


def _memory_functions(standin: StandinXpu) -> dict[str, Any]:
    def _xpu_emptyCache() -> None:
        for device in standin.devices:
            device.memory.empty_cache()

    def _xpu_memoryStats(device: int) -> dict[str, Any]:
        return standin.device(_index(device, "memory_stats")).memory.statistics()

    def _xpu_resetAccumulatedMemoryStats(device: int) -> None:
        standin.device(_index(device, "reset_accumulated_memory_stats")).memory.reset_accumulated()

    def _xpu_resetPeakMemoryStats(device: int) -> None:
        standin.device(_index(device, "reset_peak_memory_stats")).memory.reset_peak()

    def _xpu_getMemoryInfo(device: int) -> tuple[int, int]:
        memory = standin.device(operator.index(device)).memory
        return memory.free, memory.total

    def _xpu_getMemoryFraction(device: int) -> float:
        return standin.device(operator.index(device)).memory.fraction

    def _xpu_setMemoryFraction(fraction: float, device: int) -> None:
        if not 0 <= fraction <= 1:
            raise RuntimeError(f"invalid fraction: {fraction}. Please set within [0, 1].")
        standin.device(operator.index(device)).memory.fraction = fraction

    return _functions(locals())


def _functions(defined: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in defined.items() if name.startswith("_xpu_")}


def _device_properties(facts: TorchFacts) -> type:
    """A class with the properties that this torch declares, as far as the stand-in knows a value for them."""
    declared = facts.attributes.get("_XpuDeviceProperties", ())
    values = {name: _PROPERTIES[name] for name in declared if name in _PROPERTIES}
    values["__repr__"] = lambda self: f"_XpuDeviceProperties(name={self.name!r})"
    return type("_XpuDeviceProperties", (), values)


def _init(standin: StandinXpu, properties_type: type) -> Any:
    def properties_of(device: Device) -> Any:
        properties = properties_type()
        properties.name = device.name
        properties.total_memory = device.memory.total
        properties.uuid = uuid.uuid5(uuid.NAMESPACE_OID, device.name)
        return properties

    def _xpu_init() -> None:
        standin.initialize()
        xpu = sys.modules["torch.xpu"]
        # A generator for the device type xpu needs an XPU build; these keep seeds and states just as well.
        xpu.default_generators = tuple(sys.modules["torch._C"].Generator() for _ in standin.devices)
        every = [properties_of(device) for device in standin.devices]
        xpu._get_device_properties = lambda device: every[standin.device(device).index]

    return _xpu_init
