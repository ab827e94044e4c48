"""A framework of a page, which the profiler's tests run if the build has no embedded runtime.

It has tensors without elements, and a few operators under torch's names. It reaches the recorder
through the public door `mindprof.hosts` alone, as any framework does. A test that uses a name which
is not here needs the embedded runtime and is skipped.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from typing import Any, NoReturn

from mindprof import hosts, profiler

__all__ = ["REASON", "Tensor", "add", "float32", "ones", "profiler", "register", "zeros"]

REASON = "this build of mindprof has no embedded runtime"

float32 = "float32"

_ITEM_SIZE = 4

_live_bytes = 0


class StandIn(hosts.Framework):
    """The framework as recordings see it: one without devices."""


def register() -> None:
    """Has the framework told of recordings."""
    hosts.register(StandIn())


class Tensor:
    """A shape whose elements are all equal."""

    def __init__(self, shape: tuple[int, ...], value: float) -> None:
        self.shape = shape
        self.value = value
        self.dtype = float32
        self.input = hosts.TensorInput(shape, float32)
        self._report(math.prod(shape) * _ITEM_SIZE)

    def __del__(self) -> None:
        self._report(-math.prod(self.shape) * _ITEM_SIZE)

    def _report(self, change: int) -> None:
        global _live_bytes
        _live_bytes += change
        if change:
            hosts.report_memory(self.input_address, change, _live_bytes)

    @property
    def input_address(self) -> int:
        """The address of the storage that there would be."""
        return id(self.input)

    def stride(self) -> tuple[int, ...]:
        """Returns the strides of a contiguous tensor."""
        strides = [math.prod(self.shape[axis + 1 :]) for axis in range(len(self.shape))]
        return tuple(strides)

    def __add__(self, other: Any) -> Tensor:
        return add(self, other)

    def __sub__(self, other: Any) -> Tensor:
        result = lambda: Tensor(self.shape, self.value - _value(other))  # noqa: E731
        return _run("aten::sub", result, self, other, 1)

    def __mul__(self, other: Any) -> Tensor:
        return _run(
            "aten::mul", lambda: Tensor(self.shape, self.value * _value(other)), self, other
        )

    def __matmul__(self, other: Tensor) -> Tensor:
        shape = (*self.shape[:-1], *other.shape[1:])
        value = self.value * other.value * self.shape[-1]
        product = lambda: _run("aten::mm", lambda: Tensor(shape, value), self, other)  # noqa: E731
        return _run("aten::matmul", product, self, other)

    def sum(self) -> Tensor:
        """Returns the sum of all elements."""
        return _run("aten::sum", lambda: Tensor((), self.value * math.prod(self.shape)), self)

    def item(self) -> float:
        """Returns the only element."""
        return self.value

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):
            raise AttributeError(name)
        _need_runtime(f"Tensor.{name}")


def add(tensor: Tensor, other: Any) -> Tensor:
    """Adds a number or a tensor of the same shape."""
    result = lambda: Tensor(tensor.shape, tensor.value + _value(other))  # noqa: E731
    return _run("aten::add", result, tensor, other, 1)


def ones(*size: Any, requires_grad: bool = False, **options: Any) -> Tensor:
    """Returns a tensor of ones."""
    return _filled("aten::ones", size, 1.0, requires_grad, options)


def zeros(*size: Any, requires_grad: bool = False, **options: Any) -> Tensor:
    """Returns a tensor of zeros."""
    return _filled("aten::zeros", size, 0.0, requires_grad, options)


def _filled(
    name: str, size: tuple[Any, ...], value: float, requires_grad: bool, options: dict[str, Any]
) -> Tensor:
    if requires_grad or options:
        _need_runtime("gradients and dtypes")
    shape = tuple(size[0]) if size and isinstance(size[0], (tuple, list)) else size

    def allocate_and_fill() -> Tensor:
        tensor = _run("aten::empty", lambda: Tensor(shape, value), list(shape))
        return _run("aten::fill_", lambda: tensor, tensor, value)

    return _run(name, allocate_and_fill, list(shape))


def _run(name: str, action: Callable[[], Tensor], *inputs: Any) -> Tensor:
    given = [value.input if isinstance(value, Tensor) else value for value in inputs]
    with hosts.operator(name, *given):
        return action()


def _value(other: Any) -> float:
    return other.value if isinstance(other, Tensor) else float(other)


def _need_runtime(what: str) -> NoReturn:
    """Skips the test that runs; a program that is no test ends with an error."""
    if "pytest" not in sys.modules:
        raise ImportError(f"{REASON}: {what}")
    import pytest

    pytest.skip(f"{REASON}: {what}", allow_module_level=True)


def __getattr__(name: str) -> NoReturn:
    if name.startswith("__"):
        raise AttributeError(name)
    _need_runtime(name)
