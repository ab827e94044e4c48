"""`Enumeration`: enumerations that behave like torch's native ones, which are not `enum.Enum`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, SupportsIndex, SupportsInt

if TYPE_CHECKING:
    from typing_extensions import Self


def numbered(names: str) -> dict[str, int]:
    """Numbers the names in a space-separated text from zero."""
    return {name: number for number, name in enumerate(names.split())}


class Enumeration:
    """A set of named integers, like an enumeration bound by pybind11.

    Members are attributes of the class, compare equal only to members of the same class and have
    no order. Any integer makes a value; one without a member prints as `???`.

    A subclass lists its members in the class statement:
        >>> class Color(Enumeration, members={"RED": 0, "GREEN": 1}):
        ...     RED: ClassVar[Color]
        >>> Color.RED, Color(1).name, int(Color.RED), Color.RED == 0
        (<Color.RED: 0>, 'GREEN', 0, False)
    """

    __slots__ = ("_value",)
    __members__: ClassVar[dict[str, Any]] = {}
    _value: int

    def __init_subclass__(cls, *, members: dict[str, int]) -> None:
        super().__init_subclass__()
        cls.__members__ = {name: cls(value) for name, value in members.items()}
        for name, member in cls.__members__.items():
            setattr(cls, name, member)

    def __init__(self, value: SupportsInt | SupportsIndex) -> None:
        if not isinstance(value, (int, SupportsIndex)):
            raise TypeError(
                "__init__(): incompatible constructor arguments. The following argument types are "
                f"supported:\n    1. {type(self).__name__}(value: int)\n\nInvoked with: {value!r}"
            )
        self._value = int(value)

    @property
    def name(self) -> str:
        """The name of the member."""
        for name, member in self.__members__.items():
            if member._value == self._value:
                return name
        return "???"

    @property
    def value(self) -> int:
        """The number of the member."""
        return self._value

    def __int__(self) -> int:
        return self._value

    def __index__(self) -> int:
        return self._value

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other._value == self._value

    def __hash__(self) -> int:
        return hash(self._value)

    def __str__(self) -> str:
        return f"{type(self).__name__}.{self.name}"

    def __repr__(self) -> str:
        return f"<{self}: {self._value}>"

    def __reduce__(self) -> tuple[type[Self], tuple[int]]:
        return type(self), (self._value,)
