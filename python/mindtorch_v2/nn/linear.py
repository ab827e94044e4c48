"""`Linear`: a matrix product plus a bias."""

from __future__ import annotations

import math
from typing import Any

import mindtorch_v2 as torch
from mindtorch_v2.nn import functional, init
from mindtorch_v2.nn.module import Module
from mindtorch_v2.nn.parameter import Parameter


class Linear(Module):
    """Computes `input @ weight.T + bias` over the last dimension.

    Weight and bias are initialized uniformly within `1 / sqrt(in_features)` of zero.

    Args:
        in_features: The size of the input's last dimension.
        out_features: The size of the output's last dimension.
        bias: Whether to add a learned bias.
        device: The device of the parameters; only the CPU is supported.
        dtype: The dtype of the parameters.

    Example:
        >>> import mindtorch_v2 as torch
        >>> Linear(4, 2)(torch.ones(3, 4)).shape == (3, 2)
        True
    """

    weight: Parameter
    bias: Parameter | None

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        device: Any = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        self.in_features = in_features
        self.out_features = out_features
        self.weight = Parameter(torch.empty(out_features, in_features, device=device, dtype=dtype))
        if bias:
            self.bias = Parameter(torch.empty(out_features, device=device, dtype=dtype))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Reinitializes the weight and the bias."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            init.uniform_bias_(self.bias, self.weight)

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """Computes the product and adds the bias."""
        return functional.linear(input, self.weight, self.bias)

    def extra_repr(self) -> str:
        """Returns the sizes."""
        return (
            f"in_features={self.in_features}, out_features={self.out_features}, "
            f"bias={self.bias is not None}"
        )
