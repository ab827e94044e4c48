"""`MaxPool2d`, `AvgPool2d` and `AdaptiveAvgPool2d`: pooling of images."""

from __future__ import annotations

import mindtorch_v2 as torch
from mindtorch_v2.nn import functional
from mindtorch_v2.nn.module import Module


class MaxPool2d(Module):
    """Returns the largest value of each window of an image.

    Args:
        kernel_size: The height and width of a window.
        stride: The step of the window; by default its size.
        padding: The amount of negative infinity added on each side.
        dilation: The spacing between elements of a window.
        return_indices: Whether to return the indices of the values too.
        ceil_mode: Whether a window that starts inside the image may end outside of it.

    Example:
        >>> import mindtorch_v2 as torch
        >>> MaxPool2d(2)(torch.ones(1, 1, 4, 4)).shape == (1, 1, 2, 2)
        True
    """

    def __init__(
        self,
        kernel_size: int | tuple[int, ...],
        stride: int | tuple[int, ...] | None = None,
        padding: int | tuple[int, ...] = 0,
        dilation: int | tuple[int, ...] = 1,
        return_indices: bool = False,
        ceil_mode: bool = False,
    ) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = kernel_size if stride is None else stride
        self.padding = padding
        self.dilation = dilation
        self.return_indices = return_indices
        self.ceil_mode = ceil_mode

    def forward(self, input: torch.Tensor) -> torch.Tensor | tuple[torch.Tensor, torch.Tensor]:
        """Pools the input."""
        return functional.max_pool2d(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.dilation,
            ceil_mode=self.ceil_mode,
            return_indices=self.return_indices,
        )

    def extra_repr(self) -> str:
        """Returns the options of the window."""
        return (
            f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}, "
            f"dilation={self.dilation}, ceil_mode={self.ceil_mode}"
        )


class AvgPool2d(Module):
    """Averages the values of each window of an image.

    Args:
        kernel_size: The height and width of a window.
        stride: The step of the window; by default its size.
        padding: The number of zeros added on each side.
        ceil_mode: Whether a window that starts inside the image may end outside of it.
        count_include_pad: Whether the average includes the padding.
        divisor_override: The divisor, instead of the size of the window.

    Example:
        >>> import mindtorch_v2 as torch
        >>> AvgPool2d(2)(torch.ones(1, 1, 4, 4)).shape == (1, 1, 2, 2)
        True
    """

    def __init__(
        self,
        kernel_size: int | tuple[int, ...],
        stride: int | tuple[int, ...] | None = None,
        padding: int | tuple[int, ...] = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = kernel_size if stride is None else stride
        self.padding = padding
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad
        self.divisor_override = divisor_override

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """Pools the input."""
        return functional.avg_pool2d(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.ceil_mode,
            self.count_include_pad,
            self.divisor_override,
        )

    def extra_repr(self) -> str:
        """Returns the options of the window."""
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class AdaptiveAvgPool2d(Module):
    """Averages over as many windows as the output has positions.

    Args:
        output_size: The height and width of the output; `None` keeps that of the input.

    Example:
        >>> import mindtorch_v2 as torch
        >>> AdaptiveAvgPool2d(1)(torch.ones(2, 3, 8, 8)).shape == (2, 3, 1, 1)
        True
    """

    def __init__(self, output_size: int | tuple[int | None, ...] | None) -> None:
        super().__init__()
        self.output_size = output_size

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """Pools the input."""
        return functional.adaptive_avg_pool2d(input, self.output_size)

    def extra_repr(self) -> str:
        """Returns the size of the output."""
        return f"output_size={self.output_size}"
