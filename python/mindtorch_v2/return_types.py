"""The named tuples of values and indices that `max`, `median`, `sort` and others return."""

from __future__ import annotations

from typing import NamedTuple

from mindprof._core import Tensor


class max(NamedTuple):
    """The largest elements along a dimension, and their indices."""

    values: Tensor
    indices: Tensor

    def __repr__(self) -> str:
        return f"torch.return_types.max(\nvalues={self.values!r},\nindices={self.indices!r})"


class min(NamedTuple):
    """The smallest elements along a dimension, and their indices."""

    values: Tensor
    indices: Tensor

    def __repr__(self) -> str:
        return f"torch.return_types.min(\nvalues={self.values!r},\nindices={self.indices!r})"


class median(NamedTuple):
    """The medians along a dimension, and their indices."""

    values: Tensor
    indices: Tensor

    def __repr__(self) -> str:
        return f"torch.return_types.median(\nvalues={self.values!r},\nindices={self.indices!r})"


class sort(NamedTuple):
    """The sorted elements, and their original indices."""

    values: Tensor
    indices: Tensor

    def __repr__(self) -> str:
        return f"torch.return_types.sort(\nvalues={self.values!r},\nindices={self.indices!r})"


class topk(NamedTuple):
    """The largest or smallest elements, and their indices."""

    values: Tensor
    indices: Tensor

    def __repr__(self) -> str:
        return f"torch.return_types.topk(\nvalues={self.values!r},\nindices={self.indices!r})"


__all__ = ["max", "median", "min", "sort", "topk"]
