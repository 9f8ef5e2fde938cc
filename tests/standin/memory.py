"""The memory of one device of the stand-in XPU: byte counts as torch's caching allocator keeps them."""

from __future__ import annotations

from dataclasses import dataclass

LARGE_POOL_BYTES = 1 << 20
_KINDS = ("allocated_bytes", "reserved_bytes", "active_bytes", "requested_bytes")
_POOLS = ("all", "small_pool", "large_pool")


@dataclass
class _Statistic:
    current: int = 0
    peak: int = 0
    allocated: int = 0
    freed: int = 0

    def change(self, byte_count: int) -> None:
        self.current += byte_count
        self.peak = max(self.peak, self.current)
        if byte_count > 0:
            self.allocated += byte_count
        else:
            self.freed -= byte_count


class Allocation:
    """Bytes that ``DeviceMemory.allocate`` gave out, until ``free`` is called."""

    def __init__(self, memory: DeviceMemory, byte_count: int) -> None:
        self.byte_count = byte_count
        self._memory: DeviceMemory | None = memory

    def free(self) -> None:
        """Give the bytes back to the cache of their device; a second call does nothing."""
        if self._memory is not None:
            self._memory._change_allocated(-self.byte_count)
            self._memory = None


class DeviceMemory:
    """Allocates in numbers only, without rounding. All counts are bytes.

    ``used_by_others`` is what other processes hold; freed bytes stay reserved until ``empty_cache``.
    """

    def __init__(self, total: int, used_by_others: int) -> None:
        self.total = total
        self.used_by_others = used_by_others
        self.fraction = 1.0
        self._statistics = {(kind, pool): _Statistic() for kind in _KINDS for pool in _POOLS}

    @property
    def free(self) -> int:
        """Bytes that no process has reserved."""
        return self.total - self.used_by_others - self._current("reserved_bytes", "all")

    def allocate(self, byte_count: int) -> Allocation:
        """Allocate, from the cache first; MemoryError, with the counts, where the device has too little."""
        pool = _pool(byte_count)
        cached = self._current("reserved_bytes", pool) - self._current("allocated_bytes", pool)
        shortage = max(0, byte_count - cached)
        allowed = int(self.total * self.fraction) - self._current("reserved_bytes", "all")
        if shortage > min(self.free, allowed):
            raise MemoryError(f"{byte_count} bytes asked for, {cached} cached, {self.free} free, {allowed} allowed")
        self._change("reserved_bytes", pool, shortage)
        self._change_allocated(byte_count)
        return Allocation(self, byte_count)

    def empty_cache(self) -> None:
        for pool in ("small_pool", "large_pool"):
            cached = self._current("reserved_bytes", pool) - self._current("allocated_bytes", pool)
            self._change("reserved_bytes", pool, -cached)

    def reset_peak(self) -> None:
        for statistic in self._statistics.values():
            statistic.peak = statistic.current

    def reset_accumulated(self) -> None:
        for statistic in self._statistics.values():
            statistic.allocated = statistic.freed = 0

    def statistics(self) -> dict[str, dict[str, dict[str, int]]]:
        """The nested dictionary that torch._C's memory statistics functions return."""
        return {kind: {pool: dict(vars(self._statistics[kind, pool])) for pool in _POOLS} for kind in _KINDS}

    def _change_allocated(self, byte_count: int) -> None:
        for kind in ("allocated_bytes", "active_bytes", "requested_bytes"):
            self._change(kind, _pool(abs(byte_count)), byte_count)

    def _change(self, kind: str, pool: str, byte_count: int) -> None:
        if byte_count:
            self._statistics[kind, pool].change(byte_count)
            self._statistics[kind, "all"].change(byte_count)

    def _current(self, kind: str, pool: str) -> int:
        return self._statistics[kind, pool].current


def _pool(byte_count: int) -> str:
    return "large_pool" if byte_count >= LARGE_POOL_BYTES else "small_pool"
