"""A stand-in XPU for tests: torch's own torch/xpu/*.py, unchanged, over a C side written in Python.

Three ways in. The fixture ``standin_xpu`` (or ``with installed() as standin_xpu:``) is for what runs eagerly,
in this process, and undoes itself exactly. ``run_program`` is for what must see an XPU from the first import
on: Dynamo, and activation of compat_patches. The fixture ``standin_accelerator`` (or ``as_accelerator=True``)
makes torch.accelerator say xpu too::

    def test_work_goes_to_the_chosen_stream(standin_xpu):
        side = torch.xpu.Stream()
        with torch.xpu.stream(side):
            work = standin_xpu.submit(seconds=0.010)      # a kernel launch on the current stream
        end = side.record_event()
        assert work.stream_id == side.stream_id
        assert not end.query()                            # nothing runs before somebody waits
        end.synchronize()
        assert work.done

The device runs only what somebody waits for, on a virtual clock (see ``queues``), so times are exact and a
missing wait between two streams shows each time. The parameters of the C side come from the installed torch's
stub, and a torch that uses what the stand-in does not know is a StandinError that names the difference.

Importing this package does not import torch.
"""

from .errors import StandinError
from .install import current, installed
from .program import run_program
from .runtime import StandinXpu

__all__ = ["StandinError", "StandinXpu", "current", "installed", "run_program"]
