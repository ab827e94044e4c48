"""Activation functions, `Softmax` and `Identity`."""

from __future__ import annotations

import mindtorch_v2 as torch
from mindtorch_v2.nn import functional
from mindtorch_v2.nn.module import Module


class ReLU(Module):
    """Replaces negative values with zero.

    Args:
        inplace: Whether to modify the input in place.

    Example:
        >>> import mindtorch_v2 as torch
        >>> ReLU()(torch.tensor([-1.0, 2.0])).tolist()
        [0.0, 2.0]
    """

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """Applies the function to each element."""
        return functional.relu(input, self.inplace)

    def extra_repr(self) -> str:
        """Returns whether the input is modified in place."""
        return "inplace=True" if self.inplace else ""


class GELU(Module):
    """Multiplies values by the probability that a standard normal variable is smaller.

    Args:
        approximate: `"none"` for the exact function, `"tanh"` for an approximation.
    """

    def __init__(self, approximate: str = "none") -> None:
        super().__init__()
        self.approximate = approximate

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """Applies the function to each element."""
        return functional.gelu(input, approximate=self.approximate)

    def extra_repr(self) -> str:
        """Returns the approximation."""
        return f"approximate={self.approximate!r}"


class Tanh(Module):
    """Computes the hyperbolic tangent."""

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """Applies the function to each element."""
        return torch.tanh(input)


class Sigmoid(Module):
    """Computes the logistic sigmoid, `1 / (1 + exp(-x))`."""

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """Applies the function to each element."""
        return torch.sigmoid(input)


class Softmax(Module):
    """Computes the softmax along a dimension.

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
        """Computes the softmax."""
        return functional.softmax(input, self.dim)

    def extra_repr(self) -> str:
        """Returns the dimension."""
        return f"dim={self.dim}"


class LogSoftmax(Softmax):
    """Computes the logarithm of the softmax along a dimension.

    Args:
        dim: The dimension along which the probabilities sum to one.
    """

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """Computes the logarithm of the softmax."""
        return functional.log_softmax(input, self.dim)


class SiLU(ReLU):
    """Multiplies values by their sigmoid.

    Args:
        inplace: Whether to modify the input in place.
    """

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """Applies the function to each element."""
        return functional.silu(input, self.inplace)


class LeakyReLU(Module):
    """Multiplies negative values by a small slope.

    Args:
        negative_slope: The factor for negative values.
        inplace: Whether to modify the input in place.
    """

    def __init__(self, negative_slope: float = 1e-2, inplace: bool = False) -> None:
        super().__init__()
        self.negative_slope = negative_slope
        self.inplace = inplace

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """Applies the function to each element."""
        return functional.leaky_relu(input, self.negative_slope, self.inplace)

    def extra_repr(self) -> str:
        """Returns the slope, and whether the input is modified in place."""
        inplace = ", inplace=True" if self.inplace else ""
        return f"negative_slope={self.negative_slope}{inplace}"


class ELU(Module):
    """Replaces negative values with an exponential curve that approaches `-alpha`.

    Args:
        alpha: The scale of the negative part.
        inplace: Whether to modify the input in place.
    """

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__()
        self.alpha = alpha
        self.inplace = inplace

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """Applies the function to each element."""
        return functional.elu(input, self.alpha, self.inplace)

    def extra_repr(self) -> str:
        """Returns the scale, and whether the input is modified in place."""
        return f"alpha={self.alpha}{', inplace=True' if self.inplace else ''}"


class Softplus(Module):
    """Computes a smooth approximation of `ReLU`.

    Args:
        beta: The sharpness of the bend.
        threshold: The value above which the function is linear.
    """

    def __init__(self, beta: float = 1.0, threshold: float = 20.0) -> None:
        super().__init__()
        self.beta = beta
        self.threshold = threshold

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """Applies the function to each element."""
        return functional.softplus(input, self.beta, self.threshold)

    def extra_repr(self) -> str:
        """Returns the sharpness and the threshold."""
        return f"beta={self.beta}, threshold={self.threshold}"


class Identity(Module):
    """Returns its input; the arguments are ignored.

    Args:
        args: Ignored.
        kwargs: Ignored.
    """

    def __init__(self, *args: object, **kwargs: object) -> None:
        del args, kwargs
        super().__init__()

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """Returns the input."""
        return input
