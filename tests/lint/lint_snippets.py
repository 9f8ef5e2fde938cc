"""Snippets of code, each with what `lint` finds in it and what `fix` makes of it.

The table that tests/lint/test_lint_snippets.py runs. In `found`, a line is "row name", with " note" behind a
note. `fixed` is the code after `fix`, None where it stays as it is. `left` holds, for each finding that
stays, a part of the reason.
"""

from __future__ import annotations

from dataclasses import dataclass
from textwrap import dedent


@dataclass(frozen=True)
class Snippet:
    name: str
    code: str
    found: tuple[str, ...] = ()
    fixed: str | None = None
    left: tuple[str, ...] = ()
    min_torch: tuple[int, int] = (2, 15)


def _snippet(
    name: str,
    code: str,
    found: str = "",
    fixed: str | None = None,
    left: tuple[str, ...] = (),
    min_torch: tuple[int, int] = (2, 15),
) -> Snippet:
    return Snippet(
        name,
        dedent(code).lstrip("\n"),
        tuple(line.strip() for line in found.split(",") if line.strip()),
        None if fixed is None else dedent(fixed).lstrip("\n"),
        left,
        min_torch,
    )


REACHED = [
    _snippet(
        "plain attribute",
        """
        import torch
        torch.cuda.synchronize()
        """,
        "2 torch.cuda.synchronize",
        """
        import torch
        torch.accelerator.synchronize()
        """,
    ),
    _snippet(
        "every finding of a file and not the first",
        """
        import torch
        torch.cuda.synchronize(); torch.cuda.empty_cache()
        torch.cuda.synchronize()
        """,
        "2 torch.cuda.synchronize, 2 torch.cuda.empty_cache, 3 torch.cuda.synchronize",
        """
        import torch
        torch.accelerator.synchronize(); torch.accelerator.empty_cache()
        torch.accelerator.synchronize()
        """,
    ),
    _snippet(
        "torch under another name",
        """
        import torch as th
        th.cuda.synchronize()
        """,
        "2 torch.cuda.synchronize",
        """
        import torch as th
        th.accelerator.synchronize()
        """,
    ),
    _snippet(
        "torch bound by the import of a part of it",
        """
        import torch.nn
        torch.cuda.synchronize()
        """,
        "2 torch.cuda.synchronize",
        """
        import torch.nn
        torch.accelerator.synchronize()
        """,
    ),
    _snippet(
        "the import of torch.cuda itself is no finding",
        """
        import torch.cuda
        torch.cuda.synchronize()
        """,
        "2 torch.cuda.synchronize",
        """
        import torch.cuda
        torch.accelerator.synchronize()
        """,
    ),
    _snippet(
        "from torch import cuda, with torch imported",
        """
        import torch
        from torch import cuda
        cuda.synchronize()
        """,
        "3 torch.cuda.synchronize",
        """
        import torch
        torch.accelerator.synchronize()
        """,
    ),
    _snippet(
        "an import that is no longer needed, with a comment",
        """
        import torch
        # the GPU
        from torch import cuda
        from torch.cuda import memory  # its memory
        cuda.synchronize()
        memory.empty_cache()
        """,
        "5 torch.cuda.synchronize, 6 torch.cuda.memory.empty_cache",
        """
        import torch
        # the GPU
        from torch import cuda
        from torch.cuda import memory  # its memory
        torch.accelerator.synchronize()
        torch.accelerator.empty_cache()
        """,
    ),
    _snippet(
        "from torch import cuda, without torch",
        """
        from torch import cuda
        cuda.synchronize()
        """,
        "2 torch.cuda.synchronize",
        """
        import torch
        torch.accelerator.synchronize()
        """,
    ),
    _snippet(
        "from torch import cuda, beside another name that stays",
        """
        from torch import cuda, nn  # both of them
        cuda.synchronize()
        layer = nn.Linear(1, 1)
        """,
        "2 torch.cuda.synchronize",
        """
        import torch
        from torch import nn  # both of them
        torch.accelerator.synchronize()
        layer = nn.Linear(1, 1)
        """,
    ),
    _snippet(
        "from torch import cuda, still needed for something else",
        """
        import torch
        from torch import cuda
        cuda.synchronize()
        cuda.nvtx.range_push("x")
        """,
        "3 torch.cuda.synchronize",
        """
        import torch
        from torch import cuda
        torch.accelerator.synchronize()
        cuda.nvtx.range_push("x")
        """,
    ),
    _snippet(
        "import torch.cuda as",
        """
        import torch.cuda as tc
        def f():
            tc.synchronize()
        """,
        "3 torch.cuda.synchronize",
        """
        import torch
        def f():
            torch.accelerator.synchronize()
        """,
    ),
    _snippet(
        "import torch.cuda as, inside a function",
        """
        def f():
            import torch.cuda as tc
            tc.synchronize()
        """,
        "3 torch.cuda.synchronize",
        """
        def f():
            import torch
            torch.accelerator.synchronize()
        """,
    ),
    _snippet(
        "import torch.cuda as, the only statement of its block",
        """
        import torch
        if True:
            import torch.cuda as tc
        tc.synchronize()
        """,
        "4 torch.cuda.synchronize",
        """
        import torch
        if True:
            pass
        torch.accelerator.synchronize()
        """,
    ),
    _snippet(
        "from torch.cuda import a name, which keeps its local name",
        """
        from torch.cuda import Event
        e = Event(enable_timing=True)
        """,
        "1 torch.cuda.Event, 2 torch.cuda.Event",
        """
        from torch import Event
        e = Event(enable_timing=True)
        """,
    ),
    _snippet(
        "from torch.cuda import a name under another",
        """
        from torch.cuda import Event as E
        e = E(True)
        """,
        "1 torch.cuda.Event, 2 torch.cuda.Event",
        """
        from torch import Event as E
        e = E(enable_timing=True)
        """,
    ),
    _snippet(
        "from torch.cuda import several names in parentheses",
        """
        from torch.cuda import (
            Event,
            current_device,
            nvtx,
            synchronize,
        )
        e = Event()
        synchronize(current_device())
        nvtx.range_push("x")
        """,
        """
        2 torch.cuda.Event, 3 torch.cuda.current_device, 5 torch.cuda.synchronize,
        7 torch.cuda.Event, 8 torch.cuda.synchronize, 8 torch.cuda.current_device
        """,
        """
        from torch import Event
        from torch.accelerator import current_device_index as current_device, synchronize
        from torch.cuda import (
            nvtx,
        )
        e = Event()
        synchronize(current_device())
        nvtx.range_push("x")
        """,
    ),
    _snippet(
        "an import with comments inside stays, its uses do not",
        """
        import torch
        from torch.cuda import (
            synchronize,  # for the timer
        )
        synchronize()
        """,
        "3 torch.cuda.synchronize, 5 torch.cuda.synchronize",
        """
        import torch
        from torch.cuda import (
            synchronize,  # for the timer
        )
        torch.accelerator.synchronize()
        """,
        left=("comments inside",),
    ),
    _snippet(
        "an imported name that one use still needs",
        """
        from torch.cuda import Event
        a = Event()
        b = Event(blocking=True)
        """,
        "1 torch.cuda.Event, 2 torch.cuda.Event, 3 torch.cuda.Event",
        """
        import torch
        from torch.cuda import Event
        a = torch.Event()
        b = Event(blocking=True)
        """,
        left=("line 3 still needs it", "blocking=True"),
    ),
    _snippet(
        "an imported name that is exported",
        """
        from torch.cuda import Event
        __all__ = ["Event"]
        e = Event()
        """,
        "1 torch.cuda.Event, 3 torch.cuda.Event",
        """
        import torch
        from torch.cuda import Event
        __all__ = ["Event"]
        e = torch.Event()
        """,
        left=("import it from here",),
    ),
    _snippet(
        "an imported name that is not used",
        """
        from torch.cuda import Event
        """,
        "1 torch.cuda.Event",
        left=("import it from here",),
    ),
    _snippet(
        "an imported module of torch.cuda",
        """
        import torch
        from torch.cuda import memory
        memory.empty_cache()
        """,
        "3 torch.cuda.memory.empty_cache",
        """
        import torch
        torch.accelerator.empty_cache()
        """,
    ),
    _snippet(
        "everything from torch.cuda",
        """
        from torch.cuda import *
        synchronize()
        """,
        "1 torch.cuda note",
    ),
    _snippet(
        "line continuations",
        """
        import torch
        torch \\
            .cuda \\
            .synchronize()
        """,
        "2 torch.cuda.synchronize",
        """
        import torch
        torch.accelerator.synchronize()
        """,
    ),
    _snippet(
        "parentheses over several lines, with a comment",
        """
        import torch
        (torch
            .cuda  # the GPU
            .synchronize())
        """,
        "2 torch.cuda.synchronize",
        left=("comment inside the name",),
    ),
    _snippet(
        "inside an f-string",
        """
        import torch
        text = f"{torch.cuda.memory_allocated()} bytes of « memory »"
        """,
        "2 torch.cuda.memory_allocated",
        """
        import torch
        text = f"{torch.accelerator.memory_allocated()} bytes of « memory »"
        """,
    ),
    _snippet(
        "behind characters outside ASCII",
        """
        import torch
        text = "«»"; torch.cuda.synchronize()
        """,
        "2 torch.cuda.synchronize",
        """
        import torch
        text = "«»"; torch.accelerator.synchronize()
        """,
    ),
    _snippet(
        "a variable for the module",
        """
        import torch
        cuda = torch.cuda
        cuda.synchronize()
        """,
        "3 torch.cuda.synchronize",
        left=("variable cuda, which line 2 sets",),
    ),
    _snippet(
        "a variable for a name of it",
        """
        import torch
        Event = torch.cuda.Event
        e = Event(True)
        """,
        "2 torch.cuda.Event, 3 torch.cuda.Event",
        left=("gets another name here", "variable Event, which line 2 sets"),
    ),
    _snippet(
        "a variable that may be either of two devices",
        """
        import torch
        module = torch.cuda if torch.cuda.is_available() else torch.xpu
        module.synchronize()
        """,
        "2 torch.cuda note, 3 torch.cuda.synchronize",
        left=("may mean something else",),
    ),
    _snippet(
        "an attribute for the module",
        """
        import torch
        class Device:
            def __init__(self):
                self.module = torch.cuda
        """,
        "4 torch.cuda note",
    ),
    _snippet(
        "getattr of the module",
        """
        import torch
        getattr(torch, "cuda").synchronize()
        """,
        "2 torch.cuda.synchronize",
        left=("getattr",),
    ),
    _snippet(
        "getattr of a name",
        """
        import torch
        getattr(torch.cuda, "synchronize")()
        getattr(torch.cuda, "mem_get_info", None)
        """,
        "2 torch.cuda.synchronize, 3 torch.cuda.mem_get_info",
        left=("getattr", "getattr"),
    ),
    _snippet(
        "a module that is imported by its name",
        """
        import importlib
        import pytest
        torch = pytest.importorskip("torch")
        torch.cuda.synchronize()
        importlib.import_module("torch.cuda").synchronize()
        """,
        "4 torch.cuda.synchronize, 5 torch.cuda.synchronize",
        left=("variable torch, which line 3 sets", "import_module"),
    ),
    _snippet(
        "torch that may be missing",
        """
        try:
            import torch
        except ImportError:
            torch = None
        def f():
            torch.cuda.synchronize()
        """,
        "6 torch.cuda.synchronize",
        """
        try:
            import torch
        except ImportError:
            torch = None
        def f():
            torch.accelerator.synchronize()
        """,
    ),
    _snippet(
        "a name that may mean either of two modules",
        """
        import torch
        try:
            import torch.cuda as device
        except ImportError:
            import fake as device
        if torch:
            from torch.cuda import Event
        else:
            from fake import Event
        device.synchronize()
        e = Event()
        """,
        "7 torch.cuda.Event, 10 torch.cuda.synchronize, 11 torch.cuda.Event",
        left=("bound elsewhere", "something else", "something else"),
    ),
    _snippet(
        "a global that a function imports, without torch",
        """
        def load():
            global tc
            import torch.cuda as tc
        def f():
            tc.synchronize()
        """,
        "5 torch.cuda.synchronize",
        left=("sets a global",),
    ),
    _snippet(
        "torch is read and never bound",
        """
        from torch import cuda
        cuda.synchronize()
        torch.cuda.synchronize()
        """,
        "2 torch.cuda.synchronize",
        left=("nothing there binds it",),
    ),
    _snippet(
        "torch is bound further down",
        """
        torch.cuda.synchronize()
        class A:
            x = torch.cuda.current_device()
            def f(self):
                torch.cuda.synchronize()
        import torch
        """,
        "5 torch.cuda.synchronize",
        """
        torch.cuda.synchronize()
        class A:
            x = torch.cuda.current_device()
            def f(self):
                torch.accelerator.synchronize()
        import torch
        """,
    ),
    _snippet(
        "torch is there under a condition only",
        """
        from torch import cuda
        if debug:
            import torch
        cuda.synchronize()
        """,
        "4 torch.cuda.synchronize",
        left=("not there for certain",),
    ),
    _snippet(
        "an import behind another statement",
        """
        import os; from torch import cuda
        cuda.synchronize()
        if os: from torch.cuda import Event
        Event()
        """,
        "2 torch.cuda.synchronize, 3 torch.cuda.Event, 4 torch.cuda.Event",
        left=("shares its line", "shares its line", "shares its line"),
    ),
    _snippet(
        "f-strings over several lines",
        """
        import torch
        text = (f"{x:>{torch.cuda.device_count()}}" "b"
            f'''{x!r}
            {torch.cuda.memory_allocated(device="cuda")} { torch.cuda.current_device() = }''')
        """,
        "2 torch.cuda.device_count, 4 torch.cuda.memory_allocated, 4 torch.cuda.current_device",
        """
        import torch
        text = (f"{x:>{torch.accelerator.device_count()}}" "b"
            f'''{x!r}
            {torch.accelerator.memory_allocated("cuda")} { torch.accelerator.current_device_index() = }''')
        """,
    ),
    _snippet(
        "torch for the type checker, something lazy otherwise",
        """
        from typing import TYPE_CHECKING
        if TYPE_CHECKING:
            import torch
        else:
            torch = LazyLoader("torch", globals(), "torch")
        def f():
            torch.cuda.synchronize()
        """,
        "7 torch.cuda.synchronize",
        """
        from typing import TYPE_CHECKING
        if TYPE_CHECKING:
            import torch
        else:
            torch = LazyLoader("torch", globals(), "torch")
        def f():
            torch.accelerator.synchronize()
        """,
    ),
    _snippet(
        "torch that a function imports for the module",
        """
        def load():
            global torch
            import torch
        def f():
            torch.cuda.synchronize()
        """,
        "5 torch.cuda.synchronize",
        """
        def load():
            global torch
            import torch
        def f():
            torch.accelerator.synchronize()
        """,
    ),
]

NOT_REACHED = [
    _snippet(
        "comments, texts and docstrings",
        '''
        """Calls torch.cuda.synchronize()."""
        import torch
        # torch.cuda.synchronize()
        text = "torch.cuda.synchronize"
        help = f"call torch.cuda.synchronize {text}"
        ''',
    ),
    _snippet(
        "a parameter that is called torch",
        """
        import torch
        def f(torch):
            torch.cuda.synchronize()
        """,
    ),
    _snippet(
        "a local variable that is called torch",
        """
        import torch
        def f():
            torch = flashlight()
            torch.cuda.synchronize()
        """,
    ),
    _snippet(
        "an attribute of a class that is called torch",
        """
        import torch
        class A:
            torch = flashlight()
            def f(self):
                self.torch.cuda.synchronize()
        """,
    ),
    _snippet(
        "a name of a class is not seen from its methods",
        """
        import torch
        class A:
            torch = flashlight()
            def f(self):
                torch.cuda.synchronize()
        """,
        "5 torch.cuda.synchronize",
        """
        import torch
        class A:
            torch = flashlight()
            def f(self):
                torch.accelerator.synchronize()
        """,
    ),
    _snippet(
        "a loop variable of a comprehension",
        """
        import torch
        x = [torch.cuda.synchronize() for torch in lights]
        torch.cuda.synchronize()
        """,
        "3 torch.cuda.synchronize",
        """
        import torch
        x = [torch.cuda.synchronize() for torch in lights]
        torch.accelerator.synchronize()
        """,
    ),
    _snippet(
        "the method of a tensor",
        """
        import torch
        x = torch.ones(1).cuda()
        y = x.cuda(non_blocking=True)
        """,
    ),
    _snippet(
        "a module of one's own that is called cuda",
        """
        import torch
        from mine import cuda
        cuda.synchronize()
        """,
    ),
    _snippet(
        "names that have no device-neutral form",
        """
        import torch
        torch.cuda.manual_seed(0)
        torch.cuda.get_device_properties(0)
        torch.cuda.get_device_capability()
        torch.cuda.is_available()
        torch.cuda.default_stream()
        with torch.cuda.nvtx.range("x"), torch.cuda.graph(g):
            pass
        """,
    ),
    _snippet(
        "names that do not exist",
        """
        import torch
        torch.cuda.frobnicate()
        torch.cuda.nvtx.Event
        """,
    ),
    _snippet(
        "asking whether there is a name",
        """
        import torch
        hasattr(torch.cuda, "synchronize")
        """,
    ),
]

REPLACED = [
    _snippet(
        "mock.patch by name",
        """
        from unittest import mock
        with mock.patch("torch.cuda.synchronize"):
            pass
        """,
        "2 torch.cuda.synchronize note",
    ),
    _snippet(
        "mock.patch.object and monkeypatch",
        """
        import torch
        from unittest import mock
        @mock.patch.object(torch.cuda, "empty_cache")
        def test(monkeypatch):
            monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)
            monkeypatch.setattr("torch.cuda.device_count", lambda: 2)
        """,
        "3 torch.cuda.empty_cache note, 5 torch.cuda.synchronize note, 6 torch.cuda.device_count note",
    ),
    _snippet(
        "assignment to the module",
        """
        import torch
        torch.cuda.Event = Fake
        del torch.cuda.synchronize
        """,
        "2 torch.cuda.Event note, 3 torch.cuda.synchronize note",
    ),
    _snippet(
        "what the same file replaces",
        """
        import torch
        from unittest import mock
        with mock.patch("torch.cuda.streams.Event"):
            torch.cuda.Event()
            torch.cuda.synchronize()
        """,
        "3 torch.cuda.streams.Event note, 4 torch.cuda.Event, 5 torch.cuda.synchronize",
        """
        import torch
        from unittest import mock
        with mock.patch("torch.cuda.streams.Event"):
            torch.cuda.Event()
            torch.accelerator.synchronize()
        """,
        left=("line 3 puts something else in its place",),
    ),
    _snippet(
        "mock.patch of what has no other form",
        """
        from unittest import mock
        mock.patch("torch.cuda.is_available", return_value=False)
        """,
    ),
]

EVENTS = [
    _snippet(
        "no arguments",
        """
        import torch
        e = torch.cuda.Event()
        """,
        "2 torch.cuda.Event",
        """
        import torch
        e = torch.Event()
        """,
    ),
    _snippet(
        "by the module that defines it",
        """
        import torch
        e = torch.cuda.streams.Event()
        """,
        "2 torch.cuda.streams.Event",
        """
        import torch
        e = torch.Event()
        """,
    ),
    _snippet(
        "enable_timing by keyword",
        """
        import torch
        e = torch.cuda.Event(enable_timing = True)  # times
        """,
        "2 torch.cuda.Event",
        """
        import torch
        e = torch.Event(enable_timing = True)  # times
        """,
    ),
    _snippet(
        "enable_timing by position",
        """
        import torch
        e = torch.cuda.Event(True)
        f = torch.cuda.Event(timing, False)
        """,
        "2 torch.cuda.Event, 3 torch.cuda.Event",
        """
        import torch
        e = torch.Event(enable_timing=True)
        f = torch.Event(enable_timing=timing)
        """,
    ),
    _snippet(
        "flags that are off anyway",
        """
        import torch
        e = torch.cuda.Event(blocking=False, enable_timing=True, interprocess=False)
        f = torch.cuda.Event(blocking=False)
        g = torch.cuda.Event(
            enable_timing=True,
            blocking=False,
        )
        """,
        "2 torch.cuda.Event, 3 torch.cuda.Event, 4 torch.cuda.Event",
        """
        import torch
        e = torch.Event(enable_timing=True)
        f = torch.Event()
        g = torch.Event(
            enable_timing=True,
        )
        """,
    ),
    _snippet(
        "flags that torch.Event does not honour",
        """
        import torch
        a = torch.cuda.Event(blocking=True)
        b = torch.cuda.Event(False, True)
        c = torch.cuda.Event(interprocess=True)
        d = torch.cuda.Event(external=True)
        e = torch.cuda.Event(blocking=self.blocking)
        f = torch.cuda.Event(**options)
        g = torch.cuda.Event(*flags)
        """,
        ", ".join(f"{row} torch.cuda.Event" for row in range(2, 9)),
        left=(
            "blocking=True",
            "blocking=True",
            "interprocess=True",
            "external=True",
            "blocking may be true",
            "**arguments",
            "*arguments",
        ),
    ),
    _snippet(
        "timing events stay together",
        """
        import torch
        start = torch.cuda.Event(enable_timing=True, blocking=True)
        end = torch.cuda.Event(enable_timing=True)
        other = torch.cuda.Event()
        start.elapsed_time(end)
        """,
        "2 torch.cuda.Event, 3 torch.cuda.Event, 4 torch.cuda.Event",
        """
        import torch
        start = torch.cuda.Event(enable_timing=True, blocking=True)
        end = torch.cuda.Event(enable_timing=True)
        other = torch.Event()
        start.elapsed_time(end)
        """,
        left=("blocking=True", "line 2 stays a torch.cuda.Event"),
    ),
    _snippet(
        "an event whose handle is read",
        """
        import torch
        e = torch.cuda.Event()
        launch(e.cuda_event)
        """,
        "2 torch.cuda.Event",
        left=("line 3 reads cuda_event",),
    ),
    _snippet(
        "a subclass",
        """
        import torch
        class Timer(torch.cuda.Event):
            pass
        """,
        "2 torch.cuda.Event",
        left=("base of a class",),
    ),
    _snippet(
        "the class as a value",
        """
        import torch
        pool = Pool(torch.cuda.Event)
        """,
        "2 torch.cuda.Event",
        left=("handed on as a value",),
    ),
    _snippet(
        "a class method",
        """
        import torch
        e = torch.cuda.Event.from_ipc_handle(device, handle)
        """,
        "2 torch.cuda.Event",
        left=("its attribute from_ipc_handle",),
    ),
    _snippet(
        "isinstance",
        """
        import torch
        isinstance(x, torch.cuda.Event)
        isinstance(x, (int, torch.cuda.Event))
        """,
        "2 torch.cuda.Event, 3 torch.cuda.Event",
        """
        import torch
        isinstance(x, torch.Event)
        isinstance(x, (int, torch.Event))
        """,
    ),
    _snippet(
        "annotations of every kind",
        """
        import torch
        from typing import Optional
        Events = dict[str, torch.cuda.Event]
        class A:
            event: torch.cuda.Event | None = None
            def f(self, *e: torch.cuda.Event, x: Optional[torch.cuda.Event] = None) -> list[torch.cuda.Event]:
                pass
        """,
        """
        3 torch.cuda.Event, 5 torch.cuda.Event, 6 torch.cuda.Event, 6 torch.cuda.Event, 6 torch.cuda.Event
        """,
        """
        import torch
        from typing import Optional
        Events = dict[str, torch.Event]
        class A:
            event: torch.Event | None = None
            def f(self, *e: torch.Event, x: Optional[torch.Event] = None) -> list[torch.Event]:
                pass
        """,
    ),
    _snippet(
        "quoted annotations",
        """
        import torch
        def f(a: "torch.cuda.Event", b: 'X[torch.cuda.Stream, torch.cuda.Event]') -> list["torch.cuda.Event"]:
            pass
        """,
        "2 torch.cuda.Event, 2 torch.cuda.Stream, 2 torch.cuda.Event, 2 torch.cuda.Event",
        """
        import torch
        def f(a: "torch.Event", b: 'X[torch.Stream, torch.Event]') -> list["torch.Event"]:
            pass
        """,
    ),
    _snippet(
        "a quoted annotation with an imported name",
        """
        import torch
        from torch import cuda as c
        def f(a: "c.Event") -> None:
            pass
        """,
        "3 torch.cuda.Event",
        """
        import torch
        def f(a: "torch.Event") -> None:
            pass
        """,
    ),
    _snippet(
        "a literal type and metadata are texts",
        """
        import torch
        from typing import Annotated, Literal
        def f(a: Literal["torch.cuda.Event"], b: Annotated[int, "torch.cuda.Event"]):
            pass
        """,
    ),
]

DEVICES = [
    _snippet(
        "device by keyword, which is positional-only afterwards",
        """
        import torch
        torch.cuda.synchronize(device=d)
        torch.cuda.mem_get_info(device = d)
        torch.cuda.set_device(d)
        """,
        "2 torch.cuda.synchronize, 3 torch.cuda.mem_get_info, 4 torch.cuda.set_device",
        """
        import torch
        torch.accelerator.synchronize(d)
        torch.accelerator.get_memory_info(d)
        torch.accelerator.set_device_index(d)
        """,
    ),
    _snippet(
        "arguments that are not known",
        """
        import torch
        torch.cuda.synchronize(*args)
        torch.cuda.synchronize(**kwargs)
        torch.cuda.synchronize(-1)
        """,
        "2 torch.cuda.synchronize, 3 torch.cuda.synchronize, 4 torch.cuda.synchronize",
        left=("one plain device", "one plain device", "negative"),
    ),
    _snippet(
        "a function as a value",
        """
        import torch
        timer(sync=torch.cuda.synchronize)
        atexit.register(torch.cuda.empty_cache)
        """,
        "2 torch.cuda.synchronize, 3 torch.cuda.empty_cache",
        """
        import torch
        timer(sync=torch.cuda.synchronize)
        atexit.register(torch.accelerator.empty_cache)
        """,
        left=("handed on as a value",),
    ),
    _snippet(
        "nested calls",
        """
        import torch
        torch.cuda.synchronize(device=torch.cuda.current_device())
        """,
        "2 torch.cuda.synchronize, 2 torch.cuda.current_device",
        """
        import torch
        torch.accelerator.synchronize(torch.accelerator.current_device_index())
        """,
    ),
    _snippet(
        "a device guard with an index",
        """
        import torch
        def f(index: int, count):
            with torch.cuda.device(0), torch.cuda.device(device=index) as _:
                pass
            for i in range(count):
                with torch.cuda.device(i):
                    pass
            with torch.cuda.device(torch.cuda.current_device()):
                pass
        """,
        """
        3 torch.cuda.device, 3 torch.cuda.device, 6 torch.cuda.device, 8 torch.cuda.device,
        8 torch.cuda.current_device
        """,
        """
        import torch
        def f(index: int, count):
            with torch.accelerator.device_index(0), torch.accelerator.device_index(index) as _:
                pass
            for i in range(count):
                with torch.accelerator.device_index(i):
                    pass
            with torch.accelerator.device_index(torch.accelerator.current_device_index()):
                pass
        """,
    ),
    _snippet(
        "a device guard with a device that is written out",
        """
        import torch
        with torch.cuda.device("cuda:1"): pass
        with torch.cuda.device(torch.device("cuda:1")): pass
        with torch.cuda.device(torch.device("cuda", 2)): pass
        """,
        "2 torch.cuda.device, 3 torch.cuda.device, 4 torch.cuda.device",
        """
        import torch
        with torch.accelerator.device_index(1): pass
        with torch.accelerator.device_index(1): pass
        with torch.accelerator.device_index(2): pass
        """,
    ),
    _snippet(
        "a device guard with a torch.device",
        """
        import torch
        def f(device: torch.device, x: torch.Tensor):
            with torch.cuda.device(device):
                pass
            with torch.cuda.device(x.device):
                pass
        """,
        "3 torch.cuda.device, 5 torch.cuda.device",
        """
        import torch
        def f(device: torch.device, x: torch.Tensor):
            with torch.accelerator.device_index(device.index):
                pass
            with torch.accelerator.device_index(x.device.index):
                pass
        """,
    ),
    _snippet(
        "a device guard with something unknown",
        """
        import torch
        def f(device, maybe: torch.device | None):
            with torch.cuda.device(device):
                pass
            with torch.cuda.device(maybe):
                pass
            with torch.cuda.device("cuda"):
                pass
            for i in range(-1, 4):
                with torch.cuda.device(i):
                    pass
        """,
        "3 torch.cuda.device, 5 torch.cuda.device, 7 torch.cuda.device, 10 torch.cuda.device",
        left=("not known", "not known", "not known", "not known"),
    ),
    _snippet(
        "an index that may be something else",
        """
        import torch
        def f(x):
            index = 0
            index = x.device
            with torch.cuda.device(index):
                pass
        """,
        "5 torch.cuda.device",
        left=("not known",),
    ),
    _snippet(
        "inside a function that torch.jit compiles",
        """
        import torch
        @torch.jit.script
        def f(x):
            torch.cuda.synchronize()
        """,
        "4 torch.cuda.synchronize",
        left=("torch.jit",),
    ),
]

STREAMS = [
    _snippet(
        "a stream whose kind does not matter",
        """
        import torch
        torch.cuda.current_stream().synchronize()
        torch.cuda.current_stream(device=d).wait_stream(s)
        """,
        "2 torch.cuda.current_stream, 3 torch.cuda.current_stream",
        """
        import torch
        torch.accelerator.current_stream().synchronize()
        torch.accelerator.current_stream(d).wait_stream(s)
        """,
    ),
    _snippet(
        "a stream whose kind matters",
        """
        import torch
        torch.cuda.current_stream().cuda_stream
        torch.cuda.current_stream().wait_event(e)
        torch.cuda.current_stream().record_event()
        s = torch.cuda.current_stream()
        """,
        ", ".join(f"{row} torch.cuda.current_stream" for row in range(2, 6)),
        left=(
            "cuda_stream is read",
            "wait_event is used",
            "record_event is used",
            "what becomes of the stream",
        ),
    ),
    _snippet(
        "making a stream",
        """
        import torch
        s: torch.cuda.Stream = torch.cuda.Stream(device=0)
        isinstance(s, torch.cuda.Stream)
        """,
        "2 torch.cuda.Stream, 2 torch.cuda.Stream, 3 torch.cuda.Stream",
        """
        import torch
        s: torch.Stream = torch.cuda.Stream(device=0)
        isinstance(s, torch.cuda.Stream)
        """,
        left=("no cuda_stream", "lets more objects through"),
    ),
    _snippet(
        "a stream as a context",
        """
        import torch
        with torch.cuda.stream(s):
            pass
        """,
        "2 torch.cuda.stream",
        left=("torch.cuda.stream(None)",),
    ),
    _snippet(
        "setting a stream",
        """
        import torch
        def f(known: torch.Stream, unknown, maybe: torch.cuda.Stream | None):
            torch.cuda.set_stream(known)
            torch.cuda.set_stream(stream=torch.cuda.default_stream())
            torch.cuda.set_stream(unknown)
            torch.cuda.set_stream(maybe)
        """,
        """
        2 torch.cuda.Stream, 3 torch.cuda.set_stream, 4 torch.cuda.set_stream, 5 torch.cuda.set_stream,
        6 torch.cuda.set_stream
        """,
        """
        import torch
        def f(known: torch.Stream, unknown, maybe: torch.Stream | None):
            torch.accelerator.set_stream(known)
            torch.accelerator.set_stream(stream=torch.cuda.default_stream())
            torch.cuda.set_stream(unknown)
            torch.cuda.set_stream(maybe)
        """,
        left=("may be None", "may be None"),
    ),
]

MEMORY = [
    _snippet(
        "statistics",
        """
        import torch
        torch.cuda.memory_allocated(), torch.cuda.memory.max_memory_allocated(0)
        torch.cuda.memory_reserved(), torch.cuda.max_memory_reserved(device=0)
        torch.cuda.reset_peak_memory_stats(), torch.cuda.reset_accumulated_memory_stats()
        torch.cuda.memory_cached(), torch.cuda.reset_max_memory_allocated()
        """,
        """
        2 torch.cuda.memory_allocated, 2 torch.cuda.memory.max_memory_allocated, 3 torch.cuda.memory_reserved,
        3 torch.cuda.max_memory_reserved, 4 torch.cuda.reset_peak_memory_stats,
        4 torch.cuda.reset_accumulated_memory_stats, 5 torch.cuda.memory_cached,
        5 torch.cuda.reset_max_memory_allocated
        """,
        """
        import torch
        torch.accelerator.memory_allocated(), torch.accelerator.max_memory_allocated(0)
        torch.accelerator.memory_reserved(), torch.accelerator.max_memory_reserved(0)
        torch.accelerator.reset_peak_memory_stats(), torch.accelerator.reset_accumulated_memory_stats()
        torch.accelerator.memory_reserved(), torch.accelerator.reset_peak_memory_stats()
        """,
    ),
    _snippet(
        "a dictionary of statistics",
        """
        import torch
        torch.cuda.memory_stats()["allocated_bytes.all.peak"]
        torch.cuda.memory_stats(d).get("num_ooms", 0)
        torch.cuda.memory_stats()["requested_bytes.all.peak"]
        stats = torch.cuda.memory_stats()
        """,
        ", ".join(f"{row} torch.cuda.memory_stats" for row in range(2, 6)),
        """
        import torch
        torch.accelerator.memory_stats()["allocated_bytes.all.peak"]
        torch.accelerator.memory_stats(d).get("num_ooms", 0)
        torch.cuda.memory_stats()["requested_bytes.all.peak"]
        stats = torch.cuda.memory_stats()
        """,
        left=("which of its keys", "which of its keys"),
    ),
    _snippet(
        "running out of memory",
        """
        import torch
        try:
            pass
        except (RuntimeError, torch.cuda.OutOfMemoryError) as error:
            pass
        """,
        "4 torch.cuda.OutOfMemoryError",
        """
        import torch
        try:
            pass
        except (RuntimeError, torch.OutOfMemoryError) as error:
            pass
        """,
    ),
    _snippet(
        "host memory",
        """
        import torch
        torch._C._host_emptyCache()
        """,
        "2 torch._C._host_emptyCache",
        """
        import torch
        torch.accelerator.empty_host_cache()
        """,
    ),
    _snippet(
        "a graph",
        """
        import torch
        g = torch.cuda.CUDAGraph()
        """,
        "2 torch.cuda.CUDAGraph",
        left=("its own context manager",),
    ),
]

VERSIONS = [
    _snippet(
        "what is there from 2.10 on, with 2.9",
        """
        import torch
        torch.cuda.mem_get_info()
        torch.cuda.empty_cache()
        """,
        "2 torch.cuda.mem_get_info note, 3 torch.cuda.empty_cache",
        """
        import torch
        torch.cuda.mem_get_info()
        torch.accelerator.empty_cache()
        """,
        min_torch=(2, 9),
    ),
    _snippet(
        "what is there from 2.9 on, with 2.8",
        """
        import torch
        torch.cuda.empty_cache()
        torch.cuda.synchronize()
        """,
        "2 torch.cuda.empty_cache note, 3 torch.cuda.synchronize",
        """
        import torch
        torch.cuda.empty_cache()
        torch.accelerator.synchronize()
        """,
        min_torch=(2, 8),
    ),
    _snippet(
        "what is there from 2.12 on, with 2.11",
        """
        import torch
        torch.cuda.CUDAGraph()
        """,
        "2 torch.cuda.CUDAGraph note",
        min_torch=(2, 11),
    ),
]

COMMENTS = [
    _snippet(
        "a finding that is allowed with a reason",
        """
        import torch
        e = torch.cuda.Event()  # compat: ignore[torch-cuda-event] handed to a CUDA kernel
        torch.cuda.synchronize()
        """,
        "3 torch.cuda.synchronize",
        """
        import torch
        e = torch.cuda.Event()  # compat: ignore[torch-cuda-event] handed to a CUDA kernel
        torch.accelerator.synchronize()
        """,
    ),
    _snippet(
        "a comment that allows two rules",
        """
        import torch
        f(torch.cuda.Event, torch.cuda.Stream)  # compat: ignore[torch-cuda-event, torch-cuda-stream] both
        """,
    ),
    _snippet(
        "a comment behind another",
        """
        import torch
        torch.cuda.synchronize()  # noqa: E501  # compat: ignore[torch-cuda-synchronize] - a reason
        """,
    ),
    _snippet(
        "a comment without a reason allows nothing",
        """
        import torch
        torch.cuda.synchronize()  # compat: ignore[torch-cuda-synchronize]
        """,
        "2 torch.cuda.synchronize, 2 ignore-without-reason",
        """
        import torch
        torch.accelerator.synchronize()  # compat: ignore[torch-cuda-synchronize]
        """,
    ),
    _snippet(
        "a comment that nothing needs",
        """
        import torch
        x = 1  # compat: ignore[torch-cuda-event] a reason
        torch.cuda.synchronize()  # compat: ignore[torch-cuda-event] the wrong one
        """,
        "2 ignore-unused, 3 torch.cuda.synchronize, 3 ignore-unused",
        """
        import torch
        x = 1  # compat: ignore[torch-cuda-event] a reason
        torch.accelerator.synchronize()  # compat: ignore[torch-cuda-event] the wrong one
        """,
    ),
    _snippet(
        "a comment that names no rule, or none that there is",
        """
        import torch
        torch.cuda.synchronize()  # compat: ignore because
        x = 1  # compat: ignore[torch-cuda-evnt] a reason
        """,
        "2 torch.cuda.synchronize, 2 ignore-without-rule, 3 ignore-unknown-rule",
        """
        import torch
        torch.accelerator.synchronize()  # compat: ignore because
        x = 1  # compat: ignore[torch-cuda-evnt] a reason
        """,
    ),
    _snippet(
        "a text that looks like a comment",
        """
        import torch
        text = "# compat: ignore[torch-cuda-event]"
        """,
    ),
    _snippet(
        "noqa is for other rules",
        """
        import torch
        # ruff: noqa
        torch.cuda.synchronize()  # noqa
        """,
        "3 torch.cuda.synchronize",
        """
        import torch
        # ruff: noqa
        torch.accelerator.synchronize()  # noqa
        """,
    ),
]

SNIPPETS = [
    *REACHED,
    *NOT_REACHED,
    *REPLACED,
    *EVENTS,
    *DEVICES,
    *STREAMS,
    *MEMORY,
    *VERSIONS,
    *COMMENTS,
]
