"""Turning tracking on and off, as context managers and decorators."""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar, overload

from mindprof import _core
from mindprof._core import is_grad_enabled

if TYPE_CHECKING:
    from typing_extensions import Self

_Function = TypeVar("_Function", bound=Callable[..., Any])


class _GradMode:
    """A context in which tracking is on or off; a decorator gives each call one of its own."""

    _mode = True

    def __enter__(self) -> Self:
        self._before = _core._set_grad_enabled(self._mode)
        return self

    def __exit__(
        self,
        _type: type[BaseException] | None,
        _value: BaseException | None,
        _traceback: TracebackType | None,
    ) -> None:
        _core._set_grad_enabled(self._before)

    def __call__(self, function: _Function) -> _Function:
        mode = self._mode

        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            before = _core._set_grad_enabled(mode)
            try:
                return function(*args, **kwargs)
            finally:
                _core._set_grad_enabled(before)

        return call  # type: ignore[return-value]


class no_grad(_GradMode):
    """Operators inside are not tracked.

    >>> import mindtorch_v2 as torch
    >>> x = torch.ones(2, requires_grad=True)
    >>> with torch.no_grad():
    ...     (x * 2).requires_grad
    False
    """

    _mode = False

    @overload
    def __new__(cls) -> Self: ...
    @overload
    def __new__(cls, function: _Function) -> _Function: ...  # type: ignore[misc]
    def __new__(cls, function: Any = None) -> Any:
        """Makes a context, or decorates a function when used without parentheses."""
        self = super().__new__(cls)
        return self if function is None else self(function)


class enable_grad(_GradMode):
    """Operators inside are tracked, also within `no_grad`."""

    _mode = True

    @overload
    def __new__(cls) -> Self: ...
    @overload
    def __new__(cls, function: _Function) -> _Function: ...  # type: ignore[misc]
    def __new__(cls, function: Any = None) -> Any:
        """Makes a context, or decorates a function when used without parentheses."""
        self = super().__new__(cls)
        return self if function is None else self(function)


class inference_mode(_GradMode):
    """Operators inside are not tracked.

    Args:
        mode: Whether the context has an effect.
    """

    def __init__(self, mode: bool = True) -> None:
        self._mode = not mode and is_grad_enabled()


class set_grad_enabled(_GradMode):
    """Turns tracking on or off, at once; as a context manager until its end.

    Args:
        mode: Whether operators are tracked.
    """

    def __init__(self, mode: bool) -> None:
        self._mode = mode
        self._before = _core._set_grad_enabled(mode)

    def __enter__(self) -> Self:
        return self


__all__ = ["enable_grad", "inference_mode", "is_grad_enabled", "no_grad", "set_grad_enabled"]
