"""`Enumeration`: enumerations that behave like torch's native ones, which are not `enum.Enum`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, SupportsIndex, SupportsInt

from mindprof._torch_classes import meet_torch, wait_for_torch

if TYPE_CHECKING:
    from typing_extensions import Self


def numbered(names: str) -> dict[str, int]:
    """Numbers the names in a space-separated text from zero."""
    return {name: number for number, name in enumerate(names.split())}


class _Member:
    """The class attribute of a member."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, _instance: object, cls: type[Enumeration]) -> Enumeration:
        meet_torch()
        member: Enumeration = cls.__members__[self._name]
        return member


class Enumeration:
    """A set of named integers, like an enumeration bound by pybind11.

    Members are attributes of the class, compare equal only to members of the same class and have
    no order. Any integer makes a value; one without a member prints as `???`.

    A subclass lists its members in the class statement, and names torch's module that has an
    enumeration of the same name if its members are to equal torch's. Once torch is imported, they
    are instances of both classes: torch's `==` is false for any other class.
        >>> class Color(Enumeration, members={"RED": 0, "GREEN": 1}):
        ...     RED: ClassVar[Color]
        >>> Color.RED, Color(1).name, int(Color.RED), Color.RED == 0
        (<Color.RED: 0>, 'GREEN', 0, False)
    """

    __members__: ClassVar[dict[str, Any]] = {}
    # The members in order of declaration. The list is changed in place when torch is imported.
    _in_order: ClassVar[list[Any]] = []
    # The class as declared, its subclass that is torch's too, and the classes with equal members.
    _declared: ClassVar[Any] = None
    _joint: ClassVar[Any] = None
    _kinds: ClassVar[tuple[type, ...]] = ()
    _value: int

    def __init_subclass__(
        cls, *, members: dict[str, int] | None = None, torch_module: str | None = None
    ) -> None:
        super().__init_subclass__()
        if members is None:
            return
        cls._declared, cls._kinds = cls, (cls,)
        cls.__members__ = {name: cls(value) for name, value in members.items()}
        cls._in_order = list(cls.__members__.values())
        for name in members:
            setattr(cls, name, _Member(name))
        if torch_module is not None:
            wait_for_torch(cls, torch_module, cls._join)

    @classmethod
    def _join(cls, theirs: Any) -> None:
        """Replaces the members with objects that are instances of torch's class as well."""

        def initialize(self: Any, value: SupportsInt | SupportsIndex) -> None:
            cls.__init__(self, value)
            theirs.__init__(self, self._value)

        namespace = {
            "__init__": initialize,
            "__hash__": Enumeration.__hash__,
            "__module__": cls.__module__,
            "__qualname__": cls.__qualname__,
            "_new": theirs.__new__,
        }
        cls._joint = type(theirs)(cls.__name__, (cls, theirs), namespace)
        cls._kinds = (cls, theirs)
        joint = {name: cls(member._value) for name, member in cls.__members__.items()}
        cls._in_order[:] = joint.values()
        cls.__members__.update(joint)

    def __new__(cls, *_args: Any, **_kwargs: Any) -> Self:
        if cls._joint is None:
            return super().__new__(cls)
        made: Self = cls._joint._new(cls._joint)
        return made

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
        number: Any = other
        return isinstance(other, self._kinds) and int(number) == self._value

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(self._value)

    def __str__(self) -> str:
        return f"{type(self).__name__}.{self.name}"

    def __repr__(self) -> str:
        return f"<{self}: {self._value}>"

    def __reduce__(self) -> tuple[type[Self], tuple[int]]:
        return self._declared, (self._value,)
