"""A light replacement for `dataclasses.dataclass`, for classes that are needed at import.

`dataclasses` imports `inspect` and its dependencies, which would be most of the import time of this
package. Functions of `dataclasses`, such as `fields` and `asdict`, work with classes made here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

_MISSING: Any = object()


class _Field:
    """The default of a field that has a default factory."""

    def __init__(self, default_factory: Callable[[], Any]) -> None:
        self.default_factory = default_factory

    def __repr__(self) -> str:
        return "<factory>"


def field(*, default_factory: Callable[[], Any]) -> Any:
    """Declares a field whose default value is created by a factory for each object."""
    return _Field(default_factory)


class Fields(dict[str, Any]):
    """The value of `__dataclass_fields__`, filled when `dataclasses` first reads it.

    Creating `dataclasses.Field` objects needs the module that this one avoids importing.

    Args:
        types: The type of each field by name, as written in the source.
        defaults: The defaults of the fields that have one.
    """

    def __init__(self, types: dict[str, str], defaults: dict[str, Any] | None = None) -> None:
        super().__init__()
        self._types = types
        self._defaults = defaults or {}

    def names(self) -> Iterable[str]:
        """Returns the names of the fields."""
        return self._types

    def values(self) -> Any:
        """Returns the fields, creating them on the first call."""
        if not self:
            self.update((name, self._field(name)) for name in self._types)
        return super().values()

    def _field(self, name: str) -> Any:
        import dataclasses

        given = self._defaults.get(name, _MISSING)
        if given is _MISSING:
            found: Any = dataclasses.field()
        elif isinstance(given, _Field):
            found = dataclasses.field(default_factory=given.default_factory)
        else:
            found = dataclasses.field(default=given)
        found.name, found.type = name, self._types[name]
        # `dataclasses.fields` skips fields without this marker.
        found._field_type = dataclasses._FIELD  # type: ignore[attr-defined]
        return found


def dataclass(cls: Any = None, *, frozen: bool = False) -> Any:
    """Adds `__init__`, `__eq__` and `__repr__` to a class according to its annotations."""
    if cls is None:
        return lambda found: _made(found, frozen)
    return _made(cls, frozen)


def _made(cls: Any, frozen: bool) -> Any:
    types = {name: text for name, text in cls.__annotations__.items() if "ClassVar" not in text}
    defaults = {name: cls.__dict__[name] for name in types if name in cls.__dict__}
    for name, default in defaults.items():
        if isinstance(default, _Field):
            delattr(cls, name)
    cls.__dataclass_fields__ = Fields(types, defaults)
    setattr(cls, "__match_args__", tuple(types))  # noqa: B010 - mypy takes it for a constant
    cls.__init__ = _initializer(cls, types, defaults)
    if "__eq__" not in cls.__dict__:
        cls.__eq__ = _equal
        cls.__hash__ = _hash if frozen else None
    if "__repr__" not in cls.__dict__:
        cls.__repr__ = _repr
    if frozen:
        cls.__setattr__ = cls.__delattr__ = _refuse
    return cls


def _initializer(cls: Any, types: dict[str, str], defaults: dict[str, Any]) -> Any:
    """Returns an `__init__` that takes the fields as parameters."""
    scope: dict[str, Any] = {"_set": object.__setattr__, "_Field": _Field}
    arguments, lines = ["self"], []
    for name in types:
        text = name
        if name in defaults:
            scope[f"_default_{name}"] = defaults[name]
            text = f"{name}=_default_{name}"
        arguments.append(text)
        value = name
        if isinstance(defaults.get(name), _Field):
            value = f"{name}.default_factory() if isinstance({name}, _Field) else {name}"
        lines.append(f"    _set(self, {name!r}, {value})")
    if hasattr(cls, "__post_init__"):
        lines.append("    self.__post_init__()")
    source = f"def __init__({', '.join(arguments)}):\n" + "\n".join(lines or ["    pass"])
    exec(source, scope)
    made = scope["__init__"]
    made.__qualname__ = f"{cls.__qualname__}.__init__"
    made.__annotations__ = {**types, "return": "None"}
    return made


def _values(item: Any) -> tuple[Any, ...]:
    return tuple(getattr(item, name) for name in item.__match_args__)


def _equal(self: Any, other: object) -> Any:
    return _values(self) == _values(other) if type(other) is type(self) else NotImplemented


def _hash(self: Any) -> int:
    return hash(_values(self))


def _repr(self: Any) -> str:
    pairs = (f"{name}={getattr(self, name)!r}" for name in self.__match_args__)
    return f"{type(self).__qualname__}({', '.join(pairs)})"


def _refuse(self: Any, name: str, *_: Any) -> None:  # noqa: ARG001
    from dataclasses import FrozenInstanceError

    raise FrozenInstanceError(f"cannot assign to field {name!r}")
