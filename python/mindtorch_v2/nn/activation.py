"""Functions of each value, and `Softmax`."""

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


class LogSoftmax(Softmax):
    """Turns values into logarithms of probabilities along a dimension.

    Args:
        dim: The dimension along which the probabilities sum to one.
    """

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """Computes the logarithms."""
        return functional.log_softmax(input, self.dim)


class SiLU(ReLU):
    """Multiplies values by their logistic function.

    Args:
        inplace: Whether the input itself is changed.
    """

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """Computes it."""
        return functional.silu(input, self.inplace)


class LeakyReLU(Module):
    """Scales negative values down.

    Args:
        negative_slope: The factor for negative values.
        inplace: Whether the input itself is changed.
    """

    def __init__(self, negative_slope: float = 1e-2, inplace: bool = False) -> None:
        super().__init__()
        self.negative_slope = negative_slope
        self.inplace = inplace

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """Computes it."""
        return functional.leaky_relu(input, self.negative_slope, self.inplace)

    def extra_repr(self) -> str:
        """Returns the factor, and whether the input is changed."""
        inplace = ", inplace=True" if self.inplace else ""
        return f"negative_slope={self.negative_slope}{inplace}"


class ELU(Module):
    """Bends negative values towards `-alpha`.

    Args:
        alpha: How far below zero values get.
        inplace: Whether the input itself is changed.
    """

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__()
        self.alpha = alpha
        self.inplace = inplace

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """Computes it."""
        return functional.elu(input, self.alpha, self.inplace)

    def extra_repr(self) -> str:
        """Returns the depth, and whether the input is changed."""
        return f"alpha={self.alpha}{', inplace=True' if self.inplace else ''}"


class Softplus(Module):
    """Smooths the corner of `ReLU`.

    Args:
        beta: How sharp the corner is.
        threshold: From where on values stay as they are.
    """

    def __init__(self, beta: float = 1.0, threshold: float = 20.0) -> None:
        super().__init__()
        self.beta = beta
        self.threshold = threshold

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """Computes it."""
        return functional.softplus(input, self.beta, self.threshold)

    def extra_repr(self) -> str:
        """Returns sharpness and threshold."""
        return f"beta={self.beta}, threshold={self.threshold}"


class Identity(Module):
    """Returns what it is given, whatever it was made with.

    Args:
        args: Are passed over.
        kwargs: Are passed over.
    """

    def __init__(self, *args: object, **kwargs: object) -> None:
        del args, kwargs
        super().__init__()

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """Returns the input."""
        return input
