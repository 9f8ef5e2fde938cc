"""Classes that stand in for others: isinstance and issubclass go on to work with objects made by the others."""

from __future__ import annotations

from typing import Any


def stand_in_metaclass(kind: type, *originals: type) -> Any:
    """Make a metaclass for a class that stands in for ``originals``.

    The class that says ``_stands_in = True`` in its body counts instances and subclasses of the originals as its own.
    Classes that derive from it do not.

    Args:
        kind: the metaclass of the class that will be derived from.
        originals: what the class stands in for.
    """

    class StandIn(kind):  # type: ignore[misc, valid-type]  # a class that is a variable
        def __instancecheck__(cls, instance: Any) -> bool:
            return type.__instancecheck__(cls, instance) or (
                "_stands_in" in vars(cls) and isinstance(instance, originals)
            )

        def __subclasscheck__(cls, subclass: type) -> bool:
            return type.__subclasscheck__(cls, subclass) or (
                "_stands_in" in vars(cls) and issubclass(subclass, originals)
            )

    return StandIn
