"""torch.cuda.Event as a class that makes events of the current accelerator."""

from __future__ import annotations

import logging
from typing import Any

from .stand_in_class import stand_in_metaclass

log = logging.getLogger("compat_patches")

_said: set[str] = set()


def event_of_accelerator(original: Any) -> Any:
    """Make a class that takes torch.cuda.Event's arguments and gives a ``torch.Event`` of the current accelerator.

    isinstance and issubclass say yes to ``torch.Event`` and to the original, so that code which looks at events that
    were made elsewhere, or before, goes on to work. A subclass makes instances of itself, which are torch.Events too.

    Args:
        original: ``torch.cuda.Event``.
    """
    import torch

    base = torch.Event

    class Event(base, metaclass=stand_in_metaclass(type(base), base, original)):  # type: ignore[misc]
        _stands_in = True

        def __new__(
            cls,
            enable_timing: bool = False,
            blocking: bool = False,
            interprocess: bool = False,
            external: bool = False,
        ) -> Any:
            if blocking:
                _say_once("torch.cuda.Event(blocking=True): torch.Event ignores blocking; who waits for it may spin")
            for name, value in (("interprocess", interprocess), ("external", external)):
                if value:
                    raise NotImplementedError(
                        f"torch.cuda.Event({name}=True): a torch.Event of the current accelerator has no such thing, "
                        f"and to drop the argument would change what the program does; leave it out, or leave the "
                        f"patch cuda-event-on-accelerator off"
                    )
            if cls is Event:
                # By its name, as another patch may have put a class of its own there meanwhile.
                return torch.Event(enable_timing=enable_timing, blocking=blocking)
            return base.__new__(cls, enable_timing=enable_timing, blocking=blocking)

    return Event


def _say_once(text: str) -> None:
    if text not in _said:
        _said.add(text)
        log.info("%s", text)
