"""`Dropout`: sets random values to zero in training."""

from __future__ import annotations

import mindtorch_v2 as torch
from mindtorch_v2.nn import functional
from mindtorch_v2.nn.module import Module


class Dropout(Module):
    """Sets random values to zero in training and scales up the rest.

    In evaluation mode it returns its input.

    Args:
        p: The probability of setting a value to zero.
        inplace: Whether to modify the input in place.

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
        """Applies dropout."""
        return functional.dropout(input, self.p, self.training, self.inplace)

    def extra_repr(self) -> str:
        """Returns the probability."""
        return f"p={self.p}, inplace={self.inplace}"
