"""Functions of tensors that are made of others."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence

from mindprof import _core
from mindprof._core import OperatorScope, Tensor, cat

_threads: list[int] = []


def hstack(tensors: Sequence[Tensor]) -> Tensor:
    """Joins tensors side by side.

    >>> import mindtorch_v2 as torch
    >>> hstack([torch.ones(2), torch.zeros(1)])
    tensor([1., 1., 0.])
    """
    with OperatorScope("aten::hstack", list(tensors)):
        rows = [tensor.reshape(1) if tensor.dim() == 0 else tensor for tensor in tensors]
        return cat(rows, 0 if rows[0].dim() == 1 else 1)


def vstack(tensors: Sequence[Tensor]) -> Tensor:
    """Joins tensors one below the other.

    >>> import mindtorch_v2 as torch
    >>> vstack([torch.ones(2), torch.zeros(2)])
    tensor([[1., 1.],
            [0., 0.]])
    """
    with OperatorScope("aten::vstack", list(tensors)):
        return cat([t.reshape(1, -1) if t.dim() < 2 else t for t in tensors], 0)


def isfinite(input: Tensor) -> Tensor:
    """Returns which elements are finite numbers."""
    with OperatorScope("aten::isfinite", input):
        return (input == input) * (input.abs() != float("inf"))


def isinf(input: Tensor) -> Tensor:
    """Returns which elements are infinite."""
    with OperatorScope("aten::isinf", input):
        return input.abs() == float("inf")


def logical_not(input: Tensor) -> Tensor:
    """Returns which elements are zero."""
    with OperatorScope("aten::logical_not", input):
        return input == 0


def logical_and(input: Tensor, other: Tensor) -> Tensor:
    """Returns where both are not zero."""
    with OperatorScope("aten::logical_and", input, other):
        return (input != 0) * (other != 0)


def logical_or(input: Tensor, other: Tensor) -> Tensor:
    """Returns where one is not zero."""
    with OperatorScope("aten::logical_or", input, other):
        return (input != 0) | (other != 0)


def set_num_threads(int: int) -> None:
    """Sets how many threads large operators may use; to be called before the first of them."""
    if int <= 0:
        raise RuntimeError("set_num_threads expects a positive integer")
    if not _core.set_num_threads(int) and [int] != _threads[-1:]:
        warnings.warn(
            "set_num_threads() has no effect: threads have been started already, "
            "call it before the first large operator",
            stacklevel=2,
        )
        return
    _threads.append(int)


def get_num_threads() -> int:
    """Returns how many threads large operators may use."""
    return _threads[-1] if _threads else len(os.sched_getaffinity(0))
