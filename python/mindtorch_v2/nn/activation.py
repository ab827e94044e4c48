"""`ReLU`, `GELU`, `Tanh`, `Sigmoid` and `Softmax`."""

from __future__ import annotations

import mindtorch_v2 as torch
from mindtorch_v2.nn import functional
from mindtorch_v2.nn.module import Module


class ReLU(Module):
    """Sets negative values to zero.

    Args:
        inplace: Whether the input itself is changed.

    Example:
        >>> import mindtorch_v2 as torch
        >>> ReLU()(torch.tensor([-1.0, 2.0])).tolist()
        [0.0, 2.0]
    """

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """Cuts off below zero."""
        return functional.relu(input, self.inplace)

    def extra_repr(self) -> str:
        """Returns whether the input is changed."""
        return "inplace=True" if self.inplace else ""


class GELU(Module):
    """Weighs values by the probability that a normal variable is smaller.

    Args:
        approximate: "none" for the exact function, "tanh" for an approximation.
    """

    def __init__(self, approximate: str = "none") -> None:
        super().__init__()
        self.approximate = approximate

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """Weighs the values."""
        return functional.gelu(input, approximate=self.approximate)

    def extra_repr(self) -> str:
        """Returns the approximation."""
        return f"approximate={self.approximate!r}"


class Tanh(Module):
    """Computes the hyperbolic tangent."""

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """Computes it."""
        return torch.tanh(input)


class Sigmoid(Module):
    """Computes the logistic function, `1 / (1 + exp(-x))`."""

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """Computes it."""
        return torch.sigmoid(input)


class Softmax(Module):
    """Turns values into probabilities along a dimension.

    Args:
        dim: The dimension along which the results sum to one.

    Example:
        >>> import mindtorch_v2 as torch
        >>> Softmax(dim=0)(torch.zeros(4)).tolist()
        [0.25, 0.25, 0.25, 0.25]
    """

    def __init__(self, dim: int | None = None) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """Computes the probabilities."""
        return functional.softmax(input, self.dim)

    def extra_repr(self) -> str:
        """Returns the dimension."""
        return f"dim={self.dim}"
