"""What a process says of itself. Imported by the processes that the tests start, so it needs nothing but Python."""

from __future__ import annotations

import sys
from typing import Any


def look() -> dict[str, Any]:
    """Import torch, and tell how a patch of it stands.

    Returns:
        ``early``: whether torch had been imported before. ``state``: of a patch that is for every build and platform.
        ``most``: the largest number of layers that our patches have in one slot. ``wrappers``: how many wrappers of
        ours there are around the function that the patch is about.
    """
    early = "torch" in sys.modules
    import torch

    if "compat_patches" not in sys.modules:
        return {"early": early, "state": "not active", "most": 0, "wrappers": _wrappers(torch.xpu.streams.Event)}
    import compat_patches
    from compat_patches.process import current

    (status,) = compat_patches.status("xpu-event-blocking")
    slots = [layer.plan.slot.key for record in current()._records.values() for layer in record.layers]
    return {
        "early": early,
        "state": status.state,
        "most": max(map(slots.count, slots), default=0),
        "wrappers": _wrappers(torch.xpu.streams.Event),
    }


def _wrappers(event: Any) -> int:
    function, found = event.__new__, 0
    while function is not None:
        found += getattr(function, "__globals__", {}).get("__name__", "").startswith("compat_patches")
        function = getattr(function, "__wrapped__", None)
    return found


def main() -> None:
    """Print it as JSON."""
    import json

    print(json.dumps(look()))
