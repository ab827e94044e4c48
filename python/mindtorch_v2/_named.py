"""Tuples with names: sizes, and what `max` and `min` return along a dimension."""

from __future__ import annotations

from typing import NamedTuple

from mindprof._core import Tensor


class Size(tuple[int, ...]):
    """The sizes of a tensor.

    >>> Size((2, 3)).numel()
    6
    """

    def numel(self) -> int:
        """Returns the number of elements that a tensor with these sizes has."""
        count = 1
        for size in self:
            count *= size
        return count

    def __repr__(self) -> str:
        return f"torch.Size({list(self)})"


class ValuesAndIndices(NamedTuple):
    """Elements that were chosen along a dimension, and their places."""

    values: Tensor
    indices: Tensor
