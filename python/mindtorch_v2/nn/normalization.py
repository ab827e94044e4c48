"""`LayerNorm`, `BatchNorm1d` and `BatchNorm2d`: normalization to mean 0 and deviation 1."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import mindtorch_v2 as torch
from mindtorch_v2.nn import functional, init
from mindtorch_v2.nn.module import Module
from mindtorch_v2.nn.parameter import Parameter


class LayerNorm(Module):
    """Normalizes over the last dimensions, separately for each example.

    Args:
        normalized_shape: The sizes of the last dimensions.
        eps: A constant added to the variance for numerical stability.
        elementwise_affine: Whether to scale the result with a learned weight.
        bias: Whether to add a learned bias; requires `elementwise_affine`.
        device: The device of the parameters; only the CPU is supported.
        dtype: The dtype of the parameters.

    Example:
        >>> import mindtorch_v2 as torch
        >>> LayerNorm(4)(torch.ones(2, 4)).sum().item()
        0.0
    """

    weight: Parameter | None
    bias: Parameter | None

    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
        device: Any = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        sizes = (normalized_shape,) if isinstance(normalized_shape, int) else normalized_shape
        self.normalized_shape = tuple(sizes)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        for name, wanted in (("weight", elementwise_affine), ("bias", elementwise_affine and bias)):
            values = (
                torch.empty(self.normalized_shape, device=device, dtype=dtype) if wanted else None
            )
            self.register_parameter(name, None if values is None else Parameter(values))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Sets the weight to one and the bias to zero."""
        _reset_affine(self.weight, self.bias)

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """Normalizes the input."""
        return functional.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        """Returns the normalized shape and the options."""
        return (
            f"{self.normalized_shape}, eps={self.eps}, "
            f"elementwise_affine={self.elementwise_affine}, bias={self.bias is not None}"
        )


class _BatchNorm(Module):
    """Normalizes each channel over the batch and all dimensions after the channels.

    In training, it uses the mean and the variance of the batch and updates a running average of
    both, which it uses in evaluation mode.

    Args:
        num_features: The number of channels.
        eps: A constant added to the variance for numerical stability.
        momentum: The weight of a batch in the running average; `None` weights all batches equally.
        affine: Whether to scale the result with a learned weight.
        track_running_stats: Whether to keep a running average.
        device: The device of parameters and buffers; only the CPU is supported.
        dtype: The dtype of parameters and running averages.
        bias: Whether to add a learned bias; requires `affine`.
    """

    weight: Parameter | None
    bias: Parameter | None
    running_mean: torch.Tensor | None
    running_var: torch.Tensor | None
    num_batches_tracked: torch.Tensor | None

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Any = None,
        dtype: torch.dtype | None = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__()
        self.num_features = num_features
        self.eps = eps
        self.momentum = momentum
        self.affine = affine
        self.track_running_stats = track_running_stats
        for name, wanted in (("weight", affine), ("bias", affine and bias)):
            values = torch.empty(num_features, device=device, dtype=dtype) if wanted else None
            self.register_parameter(name, None if values is None else Parameter(values))
        if track_running_stats:
            self.register_buffer(
                "running_mean", torch.zeros(num_features, device=device, dtype=dtype)
            )
            self.register_buffer(
                "running_var", torch.ones(num_features, device=device, dtype=dtype)
            )
            self.register_buffer("num_batches_tracked", torch.tensor(0, dtype=torch.int64))
        else:
            for name in ("running_mean", "running_var", "num_batches_tracked"):
                self.register_buffer(name, None)
        self.reset_parameters()

    def reset_running_stats(self) -> None:
        """Resets the running averages."""
        if self.running_mean is not None:
            self.running_mean.zero_()
        if self.running_var is not None:
            self.running_var.fill_(1)
        if self.num_batches_tracked is not None:
            self.num_batches_tracked.zero_()

    def reset_parameters(self) -> None:
        """Resets the running averages, sets the weight to one and the bias to zero."""
        self.reset_running_stats()
        _reset_affine(self.weight, self.bias)

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """Normalizes the input and, in training, updates the running averages."""
        self._check_input_dim(input)
        by_batch = self.training or self.running_mean is None
        averages_used = self.track_running_stats or not self.training
        return functional.batch_norm(
            input,
            self.running_mean if averages_used else None,
            self.running_var if averages_used else None,
            self.weight,
            self.bias,
            by_batch,
            self._count_batch(),
            self.eps,
        )

    def extra_repr(self) -> str:
        """Returns the normalized shape and the options."""
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, "
            f"affine={self.affine}, bias={self.bias is not None}, "
            f"track_running_stats={self.track_running_stats}"
        )

    def _check_input_dim(self, input: torch.Tensor) -> None:
        raise NotImplementedError

    def _count_batch(self) -> float:
        # In training, counts the batch, and returns its weight in the running average.
        tracked = self.num_batches_tracked
        if self.training and self.track_running_stats and tracked is not None:
            tracked.add_(1)
            if self.momentum is None:
                return 1.0 / float(tracked.item())
        return 0.0 if self.momentum is None else self.momentum


class BatchNorm1d(_BatchNorm):
    """Normalizes each feature of `(N, C)` or `(N, C, L)` over the batch.

    It takes the arguments of `BatchNorm2d`.

    Example:
        >>> import mindtorch_v2 as torch
        >>> BatchNorm1d(3)(torch.ones(2, 3)).sum().item()
        0.0
    """

    def _check_input_dim(self, input: torch.Tensor) -> None:
        if input.dim() not in (2, 3):
            raise ValueError(f"expected 2D or 3D input (got {input.dim()}D input)")


class BatchNorm2d(_BatchNorm):
    """Normalizes each channel of `(N, C, H, W)` over the batch and the image.

    Example:
        >>> import mindtorch_v2 as torch
        >>> norm = BatchNorm2d(3)
        >>> norm(torch.ones(2, 3, 4, 4)).sum().item()
        0.0
        >>> norm.num_batches_tracked.item()
        1
    """

    def _check_input_dim(self, input: torch.Tensor) -> None:
        if input.dim() != 4:
            raise ValueError(f"expected 4D input (got {input.dim()}D input)")


def _reset_affine(weight: Parameter | None, bias: Parameter | None) -> None:
    if weight is not None:
        init.ones_(weight)
    if bias is not None:
        init.zeros_(bias)
