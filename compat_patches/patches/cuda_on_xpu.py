"""torch.cuda on an XPU: what torch.xpu has no counterpart for, made from what it has."""

from __future__ import annotations

import threading
from typing import Any

_default_streams: dict[int, Any] = {}


def default_stream(device: Any = None) -> Any:
    """Return the default stream of an XPU, as torch.cuda.default_stream does for CUDA; torch.xpu has no such function.

    The current stream belongs to the thread, and a thread begins with the default stream of each device. So a new
    thread is asked for its current one, once for each device.

    Args:
        device: a ``torch.device``, an index, or None for the current device.

    Returns:
        A ``torch.xpu.Stream``.
    """
    import torch

    index = torch.xpu._utils._get_device_index(device, optional=True)
    if index not in _default_streams:
        answers: list[Any] = []
        thread = threading.Thread(target=lambda: answers.append(torch.xpu.current_stream(index)), daemon=True)
        thread.start()
        thread.join()
        if not answers:
            # It raised, as it would here; without an XPU, say.
            return torch.xpu.current_stream(index)
        _default_streams[index] = answers[0]
    return _default_streams[index]


def graph(original: Any) -> Any:
    """Make a ``torch.xpu.graph`` that takes torch.cuda.graph's arguments.

    Args:
        original: ``torch.cuda.graph``.
    """
    import torch

    class graph_on_xpu(torch.xpu.graph):  # type: ignore[misc]  # torch is untyped here
        """Captures XPU work into a graph, taking the arguments of torch.cuda.graph.

        Args:
            cuda_graph: the ``torch.xpu.XPUGraph`` to capture into.
            pool: a memory pool of another graph, or of ``graph_pool_handle()``.
            stream: the stream to capture on; one of the class's own where there is none.
            capture_error_mode: ``"global"``, which is torch.cuda's default; XPU graphs have no other.
            options: torch.cuda.graph's other options; only their default, False, can be honoured.

        Raises:
            NotImplementedError: an option has a value that XPU graphs cannot honour.
        """

        def __init__(
            self,
            cuda_graph: Any,
            pool: Any = None,
            stream: Any = None,
            capture_error_mode: str = "global",
            **options: Any,
        ) -> None:
            if capture_error_mode != "global":
                raise NotImplementedError(
                    f"torch.cuda.graph(capture_error_mode={capture_error_mode!r}): XPU graphs know no error modes, and "
                    f"capture as 'global' says; leave the argument out where the device is an XPU"
                )
            for name, value in options.items():
                if name not in ("enable_annotations", "check_input_liveness"):
                    raise TypeError(f"torch.cuda.graph() got an unexpected keyword argument {name!r}")
                if value:
                    raise NotImplementedError(f"torch.cuda.graph({name}={value!r}): XPU graphs have no such thing")
            super().__init__(cuda_graph, pool=pool, stream=stream)

    return graph_on_xpu
