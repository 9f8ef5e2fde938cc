"""Frozen records: what :class:`typing.NamedTuple` is used for, at a tenth of the price of making the class.

The records of the engine are made in every process that imports torch, and of a fifth of a millisecond each that
:mod:`dataclasses` or a named tuple takes, the budget of ``import torch`` (1 %) has few to give.
"""

from __future__ import annotations

from typing import Any, ClassVar

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing_extensions import Self, dataclass_transform
else:

    def dataclass_transform(**_: Any) -> Any:
        return lambda cls: cls


@dataclass_transform(frozen_default=True)
class Frozen:
    """A record whose fields are the annotations of its class; those with a default may be left out.

    Two of one class are equal, and have one hash, where all of their fields do.

    Raises:
        TypeError: a field without a default is missing, or something is given that is no field.
    """

    fields: ClassVar[tuple[str, ...]] = ()
    """The names of the fields, in order."""
    _known: ClassVar[frozenset[str]] = frozenset()
    _required: ClassVar[frozenset[str]] = frozenset()

    def __init_subclass__(cls) -> None:
        cls.fields = tuple(cls.__annotations__)
        cls._known = frozenset(cls.fields)
        # What has a default is found in the class, by whoever looks for it in a record that was made without it.
        cls._required = cls._known - vars(cls).keys()

    def __init__(self, *values: Any, **named: Any) -> None:
        given = self.__dict__
        if values:
            given.update(zip(self.fields, values))  # noqa: B905 - what is too much is found below
        given.update(named)
        if len(given) != len(values) + len(named) or not self._required <= given.keys() <= self._known:
            raise TypeError(
                f"{type(self).__name__} takes {', '.join(self.fields)} ({', '.join(sorted(self._required))} at least), "
                f"each once; got {values} and {named}"
            )

    def replace(self, **changes: Any) -> Self:
        """Make a record that differs from this one in some fields."""
        return type(self)(**{**self.__dict__, **changes})

    def as_dict(self) -> dict[str, Any]:
        """All fields by name, the defaults included."""
        return {name: getattr(self, name) for name in self.fields}

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"a {type(self).__name__} cannot be changed; make another one with replace()")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"a {type(self).__name__} cannot be changed")

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return self.as_dict() == other.as_dict()

    def __hash__(self) -> int:
        return hash(tuple(self.as_dict().values()))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self.as_dict().items())})"
