"""`Flatten`: several dimensions made one."""

from __future__ import annotations

import mindtorch_v2 as torch
from mindtorch_v2.nn.module import Module


class Flatten(Module):
    """Makes one dimension of several, by default of all but the first.

    Args:
        start_dim: The first of them.
        end_dim: The last of them.

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
        """Joins the dimensions."""
        return input.flatten(self.start_dim, self.end_dim)

    def extra_repr(self) -> str:
        """Returns the dimensions."""
        return f"start_dim={self.start_dim}, end_dim={self.end_dim}"
