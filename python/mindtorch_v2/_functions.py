"""Functions composed of other operators, recorded in scopes of their own."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from typing import Any

from mindprof import _core
from mindprof._core import OperatorScope, Tensor, cat, first_operand

_threads: list[int] = []


def concat(tensors: Sequence[Tensor], dim: int = 0) -> Tensor:
    """Concatenates tensors along a dimension.

    >>> import mindtorch_v2 as torch
    >>> concat([torch.ones(2), torch.zeros(1)])
    tensor([1., 1., 0.])
    """
    with OperatorScope("aten::concat", list(tensors), dim):
        return cat(tensors, dim)


def concatenate(tensors: Sequence[Tensor], dim: int = 0) -> Tensor:
    """Concatenates tensors along a dimension."""
    with OperatorScope("aten::concatenate", list(tensors), dim):
        return cat(tensors, dim)


def divide(input: Tensor | float, other: Tensor | float) -> Tensor:
    """Divides by a tensor or a number."""
    input = first_operand("divide", input)
    with OperatorScope("aten::divide", input, other):
        return input.div(other)


def true_divide(input: Tensor | float, other: Tensor | float) -> Tensor:
    """Divides by a tensor or a number."""
    input = first_operand("true_divide", input)
    with OperatorScope("aten::true_divide", input, other):
        return input.div(other)


def multiply(input: Tensor | float, other: Tensor | float) -> Tensor:
    """Multiplies by a tensor or a number."""
    input = first_operand("multiply", input)
    with OperatorScope("aten::multiply", input, other):
        return input.mul(other)


def subtract(input: Tensor | float, other: Tensor | float, *, alpha: float = 1) -> Tensor:
    """Subtracts `alpha` times a tensor or a number."""
    input = first_operand("subtract", input)
    with OperatorScope("aten::subtract", input, other, alpha):
        return input.sub(other, alpha=alpha)


def hstack(tensors: Sequence[Tensor]) -> Tensor:
    """Concatenates tensors horizontally.

    >>> import mindtorch_v2 as torch
    >>> hstack([torch.ones(2), torch.zeros(1)])
    tensor([1., 1., 0.])
    """
    with OperatorScope("aten::hstack", list(tensors)):
        with OperatorScope("aten::atleast_1d", list(tensors)):
            rows = [tensor.reshape(1) if tensor.dim() == 0 else tensor for tensor in tensors]
        return cat(rows, 0 if rows[0].dim() == 1 else 1)


def vstack(tensors: Sequence[Tensor]) -> Tensor:
    """Concatenates tensors vertically.

    >>> import mindtorch_v2 as torch
    >>> vstack([torch.ones(2), torch.zeros(2)])
    tensor([[1., 1.],
            [0., 0.]])
    """
    with OperatorScope("aten::vstack", list(tensors)):
        with OperatorScope("aten::atleast_2d", list(tensors)):
            rows = [t.reshape(1, -1) if t.dim() < 2 else t for t in tensors]
        return cat(rows, 0)


def isfinite(input: Tensor) -> Tensor:
    """Returns which elements are finite numbers."""
    with OperatorScope("aten::isfinite", input):
        bounded = input.abs() != float("inf")
        return (input == input) * bounded


def isinf(input: Tensor) -> Tensor:
    """Returns which elements are infinite."""
    with OperatorScope("aten::isinf", input):
        return input.abs() == float("inf")


def logical_not(input: Tensor) -> Tensor:
    """Returns which elements are zero."""
    with OperatorScope("aten::logical_not", input):
        return input == 0


def logical_and(input: Tensor, other: Tensor) -> Tensor:
    """Returns for which positions both elements are nonzero."""
    with OperatorScope("aten::logical_and", input, other):
        return (input != 0) * (other != 0)


def logical_or(input: Tensor, other: Tensor) -> Tensor:
    """Returns for which positions at least one element is nonzero."""
    with OperatorScope("aten::logical_or", input, other):
        return (input != 0) | (other != 0)


def meshgrid(*tensors: Any, indexing: str | None = None) -> tuple[Tensor, ...]:
    """Creates coordinate grids from vectors.

    Args:
        tensors: The vectors, or one list of them.
        indexing: `"ij"`, or `"xy"` to swap the first two dimensions.

    >>> import mindtorch_v2 as torch
    >>> meshgrid(torch.ones(2), torch.zeros(3), indexing="ij")[0].shape == (2, 3)
    True
    """
    if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)):
        tensors = tuple(tensors[0])
    if indexing is None:
        warnings.warn(
            "torch.meshgrid: in an upcoming release, it will be required to pass the indexing "
            "argument.",
            stacklevel=2,
        )
    if indexing not in (None, "ij", "xy"):
        raise RuntimeError(
            'torch.meshgrid: indexing must be one of "xy" or "ij", but received: ' + indexing
        )
    if not tensors:
        raise RuntimeError("meshgrid expects a non-empty TensorList")
    if any(vector.dim() > 1 for vector in tensors):
        raise RuntimeError("torch.meshgrid: Expected 0D or 1D tensor in the tensor list")
    if len({vector.dtype for vector in tensors}) > 1:
        raise RuntimeError("meshgrid expects all tensors to have the same dtype")
    shown = (list(tensors),) if indexing is None else (list(tensors), None)
    swaps = indexing == "xy" and len(tensors) >= 2
    with OperatorScope("aten::meshgrid", *shown):
        vectors = list(tensors)
        if swaps:
            vectors[:2] = vectors[1::-1]
        sizes = [vector.numel() for vector in vectors]
        grids = []
        for place, vector in enumerate(vectors):
            shape = [1] * len(vectors)
            shape[place] = sizes[place]
            grids.append(vector.view(shape).expand(sizes))
        if swaps:
            grids[:2] = grids[1::-1]
        return tuple(grids)


def set_num_threads(int: int) -> None:
    """Sets how many threads large operators may use. Call it before the first of them."""
    if int <= 0:
        raise RuntimeError("set_num_threads expects a positive integer")
    if not _core.set_num_threads(int) and [int] != _threads[-1:]:
        warnings.warn(
            "set_num_threads() has no effect after threads were started: "
            "call it before the first large operator",
            stacklevel=2,
        )
        return
    _threads.append(int)


def get_num_threads() -> int:
    """Returns how many threads large operators may use."""
    return _threads[-1] if _threads else len(os.sched_getaffinity(0))
