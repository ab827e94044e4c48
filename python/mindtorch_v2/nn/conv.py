"""`Conv1d` and `Conv2d`: convolutions over sequences and images."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

import mindtorch_v2 as torch
from mindtorch_v2.nn import functional, init
from mindtorch_v2.nn.module import Module
from mindtorch_v2.nn.parameter import Parameter

_PADDINGS = ("zeros", "reflect", "replicate", "circular")


class _Convolution(Module):
    """Convolves with learned kernels, over as many dimensions as the subclass defines.

    Weight and bias are initialized uniformly within `1 / sqrt(fan_in)` of zero.
    """

    _dimensions: ClassVar[int]

    weight: Parameter
    bias: Parameter | None

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int] = 1,
        padding: str | int | Sequence[int] = 0,
        dilation: int | Sequence[int] = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        _check_groups(groups, in_channels, out_channels)
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.kernel_size = self._sizes(kernel_size)
        self.stride = self._sizes(stride)
        self.padding = padding if isinstance(padding, str) else self._sizes(padding)
        self.dilation = self._sizes(dilation)
        self.groups = groups
        self.padding_mode = padding_mode
        self._check_padding()
        shape = (out_channels, in_channels // groups, *self.kernel_size)
        self.weight = Parameter(torch.empty(shape, device=device, dtype=dtype))
        if bias:
            self.bias = Parameter(torch.empty(out_channels, device=device, dtype=dtype))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Reinitializes the weight and the bias."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            init.uniform_bias_(self.bias, self.weight)

    def extra_repr(self) -> str:
        """Returns the sizes, and the options that differ from their defaults."""
        facts = [
            f"{self.in_channels}, {self.out_channels}",
            f"kernel_size={self.kernel_size}",
            f"stride={self.stride}",
        ]
        if self.padding != self._sizes(0):
            facts.append(f"padding={self.padding}")
        if self.dilation != self._sizes(1):
            facts.append(f"dilation={self.dilation}")
        if self.groups != 1:
            facts.append(f"groups={self.groups}")
        if self.bias is None:
            facts.append("bias=False")
        return ", ".join(facts)

    def _sizes(self, value: int | Sequence[int]) -> tuple[int, ...]:
        if isinstance(value, int):
            return (value,) * self._dimensions
        return tuple(value[place] for place in range(self._dimensions))

    def _check_padding(self) -> None:
        if isinstance(self.padding, str):
            if self.padding not in ("valid", "same"):
                raise ValueError(
                    f"Invalid padding string {self.padding!r}, should be one of {{'valid', 'same'}}"
                )
            if self.padding == "same" and self.stride != self._sizes(1):
                raise ValueError("padding='same' is not supported for strided convolutions")
        if self.padding_mode not in _PADDINGS:
            raise ValueError(
                "padding_mode must be one of {'zeros', 'reflect', 'replicate', 'circular'}, "
                f"but got padding_mode={self.padding_mode!r}"
            )
        if self.padding_mode != "zeros":
            raise NotImplementedError(f"padding_mode={self.padding_mode!r} is not supported")


class Conv2d(_Convolution):
    """Convolves images of shape `(N, C, H, W)` with learned kernels.

    Weight and bias are initialized uniformly within `1 / sqrt(fan_in)` of zero.

    Args:
        in_channels: The number of input channels.
        out_channels: The number of output channels, with one kernel each.
        kernel_size: The height and width of a kernel.
        stride: The step of the kernel.
        padding: The number of zeros added on each side, or `"valid"` or `"same"`.
        dilation: The spacing between elements of a kernel.
        groups: The number of groups of channels, which are convolved separately.
        bias: Whether to add a learned bias.
        padding_mode: The kind of padding; only `"zeros"` is supported.
        device: The device of the parameters; only the CPU is supported.
        dtype: The dtype of the parameters.

    Example:
        >>> import mindtorch_v2 as torch
        >>> Conv2d(3, 8, kernel_size=3, padding=1)(torch.ones(2, 3, 5, 5)).shape == (2, 8, 5, 5)
        True
    """

    _dimensions = 2

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """Computes the convolution."""
        return functional.conv2d(
            input,
            self.weight,
            self.bias,
            self.stride,
            self.padding,
            self.dilation,
            self.groups,
        )


class Conv1d(_Convolution):
    """Convolves sequences of shape `(N, C, L)` with learned kernels.

    Args:
        in_channels: The number of input channels.
        out_channels: The number of output channels, with one kernel each.
        kernel_size: The length of a kernel.
        stride: The step of the kernel.
        padding: The number of zeros added on each side, or `"valid"` or `"same"`.
        dilation: The spacing between elements of a kernel.
        groups: The number of groups of channels, which are convolved separately.
        bias: Whether to add a learned bias.
        padding_mode: The kind of padding; only `"zeros"` is supported.
        device: The device of the parameters; only the CPU is supported.
        dtype: The dtype of the parameters.

    Example:
        >>> import mindtorch_v2 as torch
        >>> Conv1d(3, 8, kernel_size=3, padding=1)(torch.ones(2, 3, 5)).shape == (2, 8, 5)
        True
    """

    _dimensions = 1

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """Computes the convolution."""
        return functional.conv1d(
            input,
            self.weight,
            self.bias,
            self.stride,
            self.padding,
            self.dilation,
            self.groups,
        )


def _check_groups(groups: int, in_channels: int, out_channels: int) -> None:
    if groups <= 0:
        raise ValueError("groups must be a positive integer")
    if in_channels % groups != 0:
        raise ValueError("in_channels must be divisible by groups")
    if out_channels % groups != 0:
        raise ValueError("out_channels must be divisible by groups")
