"""`LayerNorm`, `BatchNorm1d` and `BatchNorm2d`: values brought to mean 0 and deviation 1."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import mindtorch_v2 as torch
from mindtorch_v2.nn import functional, init
from mindtorch_v2.nn.module import Module
from mindtorch_v2.nn.parameter import Parameter


class LayerNorm(Module):
    """Normalizes over the last dimensions, each example by itself.

    Args:
        normalized_shape: The last dimensions, by their sizes.
        eps: What is added to the variance.
        elementwise_affine: Whether a learned weight scales the result.
        bias: Whether a learned bias is added; only with `elementwise_affine`.
        device: Where the parameters live: the CPU.
        dtype: What the parameters are made of.

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
        """Normalizes."""
        return functional.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        """Returns what is normalized and how."""
        return (
            f"{self.normalized_shape}, eps={self.eps}, "
            f"elementwise_affine={self.elementwise_affine}, bias={self.bias is not None}"
        )


class _BatchNorm(Module):
    """Normalizes each channel over the batch and all that comes after the channels.

    While training it uses the batch's own mean and variance and keeps a running average of both,
    which is what it uses in evaluation mode.

    Args:
        num_features: Channels.
        eps: What is added to the variance.
        momentum: The part of a new batch in the running average; None weighs all batches alike.
        affine: Whether a learned weight scales the result.
        track_running_stats: Whether there is a running average.
        device: Where parameters and buffers live: the CPU.
        dtype: What parameters and running averages are made of.
        bias: Whether a learned bias is added; only with `affine`.
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
        """Forgets the batches seen so far."""
        if self.running_mean is not None:
            self.running_mean.zero_()
        if self.running_var is not None:
            self.running_var.fill_(1)
        if self.num_batches_tracked is not None:
            self.num_batches_tracked.zero_()

    def reset_parameters(self) -> None:
        """Forgets the batches seen so far, sets the weight to one and the bias to zero."""
        self.reset_running_stats()
        _reset_affine(self.weight, self.bias)

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """Normalizes, and while training takes the batch into the running average."""
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
        """Returns what is normalized and how."""
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, "
            f"affine={self.affine}, bias={self.bias is not None}, "
            f"track_running_stats={self.track_running_stats}"
        )

    def _check_input_dim(self, input: torch.Tensor) -> None:
        raise NotImplementedError

    def _count_batch(self) -> float:
        # Counts a batch while training, and returns its part in the running average.
        tracked = self.num_batches_tracked
        if self.training and self.track_running_stats and tracked is not None:
            tracked.add_(1)
            if self.momentum is None:
                return 1.0 / float(tracked.item())
        return 0.0 if self.momentum is None else self.momentum


class BatchNorm1d(_BatchNorm):
    """Normalizes each feature of `(N, C)` or `(N, C, L)` over the batch.

    Takes what `BatchNorm2d` takes.

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
