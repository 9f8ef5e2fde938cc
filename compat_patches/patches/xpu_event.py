"""XPU events: take the arguments of torch.cuda.Event.

Only ``__new__`` is changed, so that the class object, its name, its subclasses, isinstance, pickling and unions stay
what they were.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable
from typing import Any

log = logging.getLogger("compat_patches")

_said: set[str] = set()


def drop_blocking(original: Callable[..., Any]) -> Callable[..., Any]:
    """Take torch.cuda.Event's arguments where torch.xpu.Event takes ``enable_timing`` alone (torch before 2.15).

    Args:
        original: ``torch.xpu.Event.__new__``.
    """

    def __new__(
        cls: type,
        enable_timing: bool = False,
        blocking: bool = False,
        interprocess: bool = False,
        external: bool = False,
    ) -> Any:
        if blocking:
            _say_once("blocking", "torch.xpu.Event: blocking=True has no effect; XPU events always wait the same way")
        if interprocess:
            _refuse("interprocess", "share an event between processes")
        if external:
            _refuse("external", "be recorded or waited for as an external node of a graph")
        return original(cls, enable_timing=enable_timing)

    return _with_own_signature(__new__)


def refuse_external(original: Callable[..., Any]) -> Callable[..., Any]:
    """Take torch.cuda.Event's ``external`` where torch.xpu.Event takes the other arguments (torch from 2.15).

    Args:
        original: ``torch.xpu.Event.__new__``.
    """

    def __new__(
        cls: type,
        enable_timing: bool = False,
        blocking: bool = False,
        interprocess: bool = False,
        external: bool = False,
    ) -> Any:
        if external:
            _refuse("external", "be recorded or waited for as an external node of a graph")
        return original(cls, enable_timing=enable_timing, blocking=blocking, interprocess=interprocess)

    return _with_own_signature(__new__)


def _with_own_signature(function: Callable[..., Any]) -> Callable[..., Any]:
    # __wrapped__ will lead to the original's signature, which is the very thing that is too narrow.
    function.__signature__ = inspect.signature(function)  # type: ignore[attr-defined]  # inspect reads it
    return function


def _refuse(argument: str, purpose: str) -> None:
    raise NotImplementedError(
        f"torch.xpu.Event({argument}=True): an XPU event of this torch cannot {purpose}. Dropping the argument would "
        f"change what the program does; leave it out where the device is an XPU"
    )


def _say_once(key: str, text: str) -> None:
    if key not in _said:
        _said.add(key)
        log.debug("%s", text)
