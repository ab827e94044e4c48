"""`autocast`: regions in which products run in `bfloat16` and losses in `float32`."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from mindprof import _core
from mindprof._core import clear_autocast_cache, device, dtype

if TYPE_CHECKING:
    from typing_extensions import Self

_Function = TypeVar("_Function", bound=Callable[..., Any])


class autocast:
    """Casts the operands of operators automatically; also a decorator.

    Args:
        device_type: The device whose operators cast; only `"cpu"` is supported.
        dtype: The dtype of products, `bfloat16` by default.
        enabled: Whether operators cast at all.
        cache_enabled: Whether a parameter is cast once per region; inherited by default.

    >>> import mindtorch_v2 as torch
    >>> x = torch.ones(2, 2)
    >>> with torch.autocast("cpu", dtype=torch.bfloat16):
    ...     (x @ x).dtype
    torch.bfloat16
    """

    def __init__(
        self,
        device_type: str,
        dtype: dtype | None = None,
        enabled: bool = True,
        cache_enabled: bool | None = None,
    ) -> None:
        if not isinstance(device_type, str):
            raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
        self.device = device_type
        self.fast_dtype = get_autocast_dtype(device_type) if dtype is None else dtype
        self._cache_enabled = (
            is_autocast_cache_enabled() if cache_enabled is None else cache_enabled
        )
        reason = _refusal(device_type, self.fast_dtype) if enabled else None
        if reason is not None:
            warnings.warn(reason, stacklevel=2)
        self._enabled = enabled and reason is None
        self._before: list[tuple[bool, _core.dtype, bool]] = []

    def __enter__(self) -> Self:
        setting = (self._enabled, self.fast_dtype, self._cache_enabled)
        if self.device != "cpu":
            around = _core._autocast()
            setting = (around[0], around[1], self._cache_enabled)
        self._before.append(_core._enter_autocast(setting))
        return self

    def __exit__(
        self,
        _type: type[BaseException] | None,
        _value: BaseException | None,
        _traceback: TracebackType | None,
    ) -> Literal[False]:
        _core._leave_autocast(self._before.pop())
        return False

    def __call__(self, func: _Function) -> _Function:
        """Returns a function that enters the region for each call."""

        @functools.wraps(func)
        def call(*args: Any, **kwargs: Any) -> Any:
            with self:
                return func(*args, **kwargs)

        return call  # type: ignore[return-value]


def is_autocast_available(device_type: str) -> bool:
    """Returns whether autocast supports a device."""
    return device_type == "cpu"


def is_autocast_enabled(device_type: str = "cuda") -> bool:
    """Returns whether autocast is enabled for a device."""
    return device_type == "cpu" and _core._autocast()[0]


def is_autocast_cache_enabled() -> bool:
    """Returns whether casts of parameters are cached."""
    return _core._autocast()[2]


def get_autocast_dtype(device_type: str) -> dtype:
    """Returns the dtype of products on a device."""
    if device_type != "cuda":
        # Rejects strings that do not name a device.
        device(device_type)
    return _core._autocast()[1]


def _refusal(device_type: str, fast_dtype: dtype) -> str | None:
    """Returns why a region is not supported, or `None` if it is."""
    if device_type == "cuda":
        return "CUDA is not available or torch_xla is imported. Disabling autocast."
    if fast_dtype != _core.dtype.bfloat16:
        return (
            "In CPU autocast, but the target dtype is not supported. Disabling autocast.\n"
            "CPU Autocast only supports dtypes of torch.bfloat16 currently."
        )
    return None


__all__ = [
    "autocast",
    "clear_autocast_cache",
    "get_autocast_dtype",
    "is_autocast_available",
    "is_autocast_cache_enabled",
    "is_autocast_enabled",
]
