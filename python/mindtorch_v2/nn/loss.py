"""Losses: how far an output is from what it should be."""

from __future__ import annotations

import warnings

import mindtorch_v2 as torch
from mindtorch_v2.nn import functional
from mindtorch_v2.nn.module import Module


class _Loss(Module):
    """What losses share: how many losses become one."""

    def __init__(
        self,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__()
        self.reduction = _reduction(size_average, reduce, reduction)


class _WeighedLoss(_Loss):
    """A loss with weights, of elements or of classes."""

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
    """Computes the squared difference of input and target.

    Args:
        size_average: Torch's older way to say `reduction`.
        reduce: Torch's older way to say `reduction`.
        reduction: "mean", "sum" or "none".

    Example:
        >>> import mindtorch_v2 as torch
        >>> MSELoss()(torch.ones(2), torch.zeros(2)).item()
        1.0
    """

    def forward(self, input: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        """Computes the loss."""
        return functional.mse_loss(input, target, reduction=self.reduction)


class L1Loss(_Loss):
    """Computes the size of the difference of input and target.

    Takes what `MSELoss` takes.
    """

    def forward(self, input: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        """Computes the loss."""
        return functional.l1_loss(input, target, reduction=self.reduction)


class SmoothL1Loss(_Loss):
    """Computes the size of the difference of input and target, squared where it is small.

    Args:
        size_average: Torch's older way to say `reduction`.
        reduce: Torch's older way to say `reduction`.
        reduction: "mean", "sum" or "none".
        beta: Below which difference it is squared.

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
    """Computes the squared difference of input and target, growing evenly where it is large.

    Args:
        reduction: "mean", "sum" or "none".
        delta: Above which difference it grows evenly.

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
    """Computes how surprised probabilities are by truths.

    Args:
        weight: A weight for each element.
        size_average: Torch's older way to say `reduction`.
        reduce: Torch's older way to say `reduction`.
        reduction: "mean", "sum" or "none".
    """

    def forward(self, input: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        """Computes the loss."""
        return functional.binary_cross_entropy(input, target, self.weight, self.reduction)


class BCEWithLogitsLoss(BCELoss):
    """Computes how surprised scores are by truths.

    Args:
        weight: A weight for each element.
        size_average: Torch's older way to say `reduction`.
        reduce: Torch's older way to say `reduction`.
        reduction: "mean", "sum" or "none".
        pos_weight: How much truths count more than falsehoods.

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
    """Computes how surprised logarithms of probabilities are by the true classes.

    Args:
        weight: A weight for each class.
        size_average: Torch's older way to say `reduction`.
        ignore_index: A class that does not count.
        reduce: Torch's older way to say `reduction`.
        reduction: "mean", "sum" or "none".
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
    """Computes how surprised scores are by the true classes.

    Args:
        weight: A weight for each class.
        size_average: Torch's older way to say `reduction`.
        ignore_index: A class that does not count.
        reduce: Torch's older way to say `reduction`.
        reduction: "mean", "sum" or "none".
        label_smoothing: The part of the target that is spread over all classes.

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
