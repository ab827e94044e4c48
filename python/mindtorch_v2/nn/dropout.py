"""`Dropout`: values left out at random while training."""

from __future__ import annotations

import mindtorch_v2 as torch
from mindtorch_v2.nn import functional
from mindtorch_v2.nn.module import Module


class Dropout(Module):
    """Sets values to zero at random while training and scales up the rest.

    In evaluation mode it gives its input on.

    Args:
        p: How probable it is for a value to become zero.
        inplace: Whether the input itself is changed.

    Example:
        >>> import mindtorch_v2 as torch
        >>> Dropout(0.5).eval()(torch.ones(3)).tolist()
        [1.0, 1.0, 1.0]
    """

    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        super().__init__()
        if not 0 <= p <= 1:
            raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
        self.p = p
        self.inplace = inplace

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """Leaves values out."""
        return functional.dropout(input, self.p, self.training, self.inplace)

    def extra_repr(self) -> str:
        """Returns the probability."""
        return f"p={self.p}, inplace={self.inplace}"
