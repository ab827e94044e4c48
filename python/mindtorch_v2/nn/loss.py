"""Losses: the difference between an output and its target."""

from __future__ import annotations

import warnings

import mindtorch_v2 as torch
from mindtorch_v2.nn import functional
from mindtorch_v2.nn.module import Module


class _Loss(Module):
    """The common base of losses, which stores the reduction."""

    def __init__(
        self,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__()
        self.reduction = _reduction(size_average, reduce, reduction)


class _WeighedLoss(_Loss):
    """A loss with weights of elements or classes."""

    weight: torch.Tensor | None

    def __init__(
        self,
        weight: torch.Tensor | None = None,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.register_buffer("weight", weight)


class MSELoss(_Loss):
    """Computes the squared difference between input and target.

    Args:
        size_average: A deprecated form of `reduction`.
        reduce: A deprecated form of `reduction`.
        reduction: `"mean"`, `"sum"` or `"none"`.

    Example:
        >>> import mindtorch_v2 as torch
        >>> MSELoss()(torch.ones(2), torch.zeros(2)).item()
        1.0
    """

    def forward(self, input: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        """Computes the loss."""
        return functional.mse_loss(input, target, reduction=self.reduction)


class L1Loss(_Loss):
    """Computes the absolute difference between input and target.

    It takes the arguments of `MSELoss`.
    """

    def forward(self, input: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        """Computes the loss."""
        return functional.l1_loss(input, target, reduction=self.reduction)


class SmoothL1Loss(_Loss):
    """Computes a loss that is quadratic for small differences and linear for large ones.

    Args:
        size_average: A deprecated form of `reduction`.
        reduce: A deprecated form of `reduction`.
        reduction: `"mean"`, `"sum"` or `"none"`.
        beta: The difference below which the loss is quadratic.

    Example:
        >>> import mindtorch_v2 as torch
        >>> SmoothL1Loss()(torch.tensor([0.5, 2.0]), torch.zeros(2)).item()
        0.8125
    """

    def __init__(
        self,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
        beta: float = 1.0,
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.beta = beta

    def forward(self, input: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        """Computes the loss."""
        return functional.smooth_l1_loss(input, target, reduction=self.reduction, beta=self.beta)


class HuberLoss(_Loss):
    """Computes a loss that is quadratic for small differences and linear for large ones.

    Args:
        reduction: `"mean"`, `"sum"` or `"none"`.
        delta: The difference above which the loss is linear.

    Example:
        >>> import mindtorch_v2 as torch
        >>> HuberLoss()(torch.tensor([0.5, 2.0]), torch.zeros(2)).item()
        0.8125
    """

    def __init__(self, reduction: str = "mean", delta: float = 1.0) -> None:
        super().__init__(reduction=reduction)
        self.delta = delta

    def forward(self, input: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        """Computes the loss."""
        return functional.huber_loss(input, target, reduction=self.reduction, delta=self.delta)


class BCELoss(_WeighedLoss):
    """Computes the binary cross-entropy of probabilities.

    Args:
        weight: The weight of each element.
        size_average: A deprecated form of `reduction`.
        reduce: A deprecated form of `reduction`.
        reduction: `"mean"`, `"sum"` or `"none"`.
    """

    def forward(self, input: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        """Computes the loss."""
        return functional.binary_cross_entropy(input, target, self.weight, self.reduction)


class BCEWithLogitsLoss(BCELoss):
    """Computes the binary cross-entropy of logits.

    Args:
        weight: The weight of each element.
        size_average: A deprecated form of `reduction`.
        reduce: A deprecated form of `reduction`.
        reduction: `"mean"`, `"sum"` or `"none"`.
        pos_weight: The weight of positive examples relative to negative ones.

    Example:
        >>> import mindtorch_v2 as torch
        >>> round(BCEWithLogitsLoss()(torch.zeros(2), torch.ones(2)).item(), 4)
        0.6931
    """

    pos_weight: torch.Tensor | None

    def __init__(
        self,
        weight: torch.Tensor | None = None,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
        pos_weight: torch.Tensor | None = None,
    ) -> None:
        super().__init__(weight, size_average, reduce, reduction)
        self.register_buffer("pos_weight", pos_weight)

    def forward(self, input: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        """Computes the loss."""
        return functional.binary_cross_entropy_with_logits(
            input, target, self.weight, self.pos_weight, self.reduction
        )


class NLLLoss(_WeighedLoss):
    """Computes the negative log-likelihood of classes, given log-probabilities.

    Args:
        weight: The weight of each class.
        size_average: A deprecated form of `reduction`.
        ignore_index: A class that is ignored.
        reduce: A deprecated form of `reduction`.
        reduction: `"mean"`, `"sum"` or `"none"`.
    """

    def __init__(
        self,
        weight: torch.Tensor | None = None,
        size_average: bool | None = None,
        ignore_index: int = -100,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(weight, size_average, reduce, reduction)
        self.ignore_index = ignore_index

    def forward(self, input: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        """Computes the loss."""
        return functional.nll_loss(input, target, self.weight, self.ignore_index, self.reduction)


class CrossEntropyLoss(NLLLoss):
    """Computes the cross-entropy of classes, given logits.

    Args:
        weight: The weight of each class.
        size_average: A deprecated form of `reduction`.
        ignore_index: A class that is ignored.
        reduce: A deprecated form of `reduction`.
        reduction: `"mean"`, `"sum"` or `"none"`.
        label_smoothing: The fraction of the target that is spread evenly over all classes.

    Example:
        >>> import mindtorch_v2 as torch
        >>> loss = CrossEntropyLoss()(torch.zeros(3, 4), torch.tensor([0, 1, 2]))
        >>> round(loss.item(), 4)
        1.3863
    """

    def __init__(
        self,
        weight: torch.Tensor | None = None,
        size_average: bool | None = None,
        ignore_index: int = -100,
        reduce: bool | None = None,
        reduction: str = "mean",
        label_smoothing: float = 0.0,
    ) -> None:
        super().__init__(weight, size_average, ignore_index, reduce, reduction)
        self.label_smoothing = label_smoothing

    def forward(self, input: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        """Computes the loss."""
        return functional.cross_entropy(
            input,
            target,
            weight=self.weight,
            ignore_index=self.ignore_index,
            reduction=self.reduction,
            label_smoothing=self.label_smoothing,
        )


def _reduction(size_average: bool | None, reduce: bool | None, reduction: str) -> str:
    if size_average is None and reduce is None:
        return reduction
    if reduce is False:
        meant = "none"
    elif size_average is False:
        meant = "sum"
    else:
        meant = "mean"
    warnings.warn(
        f"size_average and reduce args will be deprecated, please use reduction='{meant}' instead.",
        stacklevel=3,
    )
    return meant
