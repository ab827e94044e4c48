"""What `max`, `min`, `sort` and `topk` return along a dimension: values, and where they are."""

from __future__ import annotations

from typing import NamedTuple

from mindprof._core import Tensor


class max(NamedTuple):
    """The largest elements along a dimension, and their places."""

    values: Tensor
    indices: Tensor

    def __repr__(self) -> str:
        return f"torch.return_types.max(\nvalues={self.values!r},\nindices={self.indices!r})"


class min(NamedTuple):
    """The smallest elements along a dimension, and their places."""

    values: Tensor
    indices: Tensor

    def __repr__(self) -> str:
        return f"torch.return_types.min(\nvalues={self.values!r},\nindices={self.indices!r})"


class sort(NamedTuple):
    """The elements in order, and the places that they came from."""

    values: Tensor
    indices: Tensor

    def __repr__(self) -> str:
        return f"torch.return_types.sort(\nvalues={self.values!r},\nindices={self.indices!r})"


class topk(NamedTuple):
    """The elements nearest to one end, and their places."""

    values: Tensor
    indices: Tensor

    def __repr__(self) -> str:
        return f"torch.return_types.topk(\nvalues={self.values!r},\nindices={self.indices!r})"


__all__ = ["max", "min", "sort", "topk"]
