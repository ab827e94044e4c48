"""Context managers and decorators that enable or disable tracking."""

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
    """A context in which tracking is on or off; as a decorator, each call gets its own."""

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
    """Disables tracking for the operators inside.

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
        """Creates a context, or decorates a function if used without parentheses."""
        self = super().__new__(cls)
        return self if function is None else self(function)


class enable_grad(_GradMode):
    """Enables tracking for the operators inside, even within `no_grad`."""

    _mode = True

    @overload
    def __new__(cls) -> Self: ...
    @overload
    def __new__(cls, function: _Function) -> _Function: ...  # type: ignore[misc]
    def __new__(cls, function: Any = None) -> Any:
        """Creates a context, or decorates a function if used without parentheses."""
        self = super().__new__(cls)
        return self if function is None else self(function)


class inference_mode(_GradMode):
    """Disables tracking for the operators inside.

    Args:
        mode: Whether the context has an effect.
    """

    def __init__(self, mode: bool = True) -> None:
        self._mode = not mode and is_grad_enabled()


class set_grad_enabled(_GradMode):
    """Enables or disables tracking immediately; as a context manager, until the block ends.

    Args:
        mode: Whether operators are tracked.
    """

    def __init__(self, mode: bool) -> None:
        self._mode = mode
        self._before = _core._set_grad_enabled(mode)

    def __enter__(self) -> Self:
        return self


__all__ = ["enable_grad", "inference_mode", "is_grad_enabled", "no_grad", "set_grad_enabled"]
