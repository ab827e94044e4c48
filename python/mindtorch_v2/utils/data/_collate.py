"""Collation: combines examples into a batch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import mindtorch_v2 as torch


def default_collate(batch: Sequence[Any]) -> Any:
    """Stacks tensors and numbers, recursing into tuples, lists and mappings.

    >>> default_collate([(1, "a"), (2, "b")])
    [tensor([1, 2]), ('a', 'b')]
    """
    first = batch[0]
    if isinstance(first, torch.Tensor):
        return torch.stack(list(batch), 0)
    if hasattr(first, "__array__") and getattr(first, "shape", ()) != ():
        return torch.stack([torch.as_tensor(item) for item in batch], 0)
    if isinstance(first, float):
        return torch.tensor(batch, dtype=torch.float64)
    if isinstance(first, int) or hasattr(first, "__array__"):
        return torch.tensor(list(batch))
    if isinstance(first, (str, bytes)):
        return batch
    if isinstance(first, Mapping):
        return {key: default_collate([item[key] for item in batch]) for key in first}
    if isinstance(first, Sequence):
        if any(len(item) != len(first) for item in batch):
            raise RuntimeError("each element in list of batch should be of equal size")
        columns = [default_collate(column) for column in zip(*batch, strict=True)]
        return type(first)(*columns) if hasattr(first, "_fields") else columns
    raise TypeError(
        "default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; "
        f"found {type(first)}"
    )
