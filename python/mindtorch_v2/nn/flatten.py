"""`Flatten`: merges dimensions."""

from __future__ import annotations

import mindtorch_v2 as torch
from mindtorch_v2.nn.module import Module


class Flatten(Module):
    """Merges dimensions into one, by default all except the first.

    Args:
        start_dim: The first dimension to merge.
        end_dim: The last dimension to merge.

    Example:
        >>> import mindtorch_v2 as torch
        >>> Flatten()(torch.ones(2, 3, 4)).shape == (2, 12)
        True
    """

    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        super().__init__()
        self.start_dim = start_dim
        self.end_dim = end_dim

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """Merges the dimensions."""
        return input.flatten(self.start_dim, self.end_dim)

    def extra_repr(self) -> str:
        """Returns the dimensions."""
        return f"start_dim={self.start_dim}, end_dim={self.end_dim}"
