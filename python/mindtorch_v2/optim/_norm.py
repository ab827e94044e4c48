"""Norms that are rounded once, as in torch, for the optimizers that divide by them."""

from __future__ import annotations

import mindtorch_v2 as torch


def norm(tensor: torch.Tensor, dim: int | None = None) -> torch.Tensor:
    """Returns the Euclidean norm over a dimension, which is kept, or over all of them."""
    # The embedded runtime also rounds the squares and their sum, which leaves bfloat16 two digits.
    wide = tensor.float() if tensor.dtype == torch.bfloat16 else tensor
    found = wide.norm() if dim is None else wide.norm(dim=dim, keepdim=True)
    return found.to(torch.bfloat16) if tensor.dtype == torch.bfloat16 else found
