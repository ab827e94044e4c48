"""Schedulers that scale rates at some epochs: `StepLR`, `MultiStepLR`, `ExponentialLR`."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable

from mindtorch_v2.optim._scheduler import LRScheduler
from mindtorch_v2.optim.optimizer import Optimizer


class StepLR(LRScheduler):
    """Multiplies the rates by `gamma` every `step_size` epochs.

    Args:
        optimizer: The optimizer whose learning rates are scheduled.
        step_size: The number of epochs between changes.
        gamma: The factor of the rates.
        last_epoch: The epoch to resume from; -1 starts from the beginning.

    Example:
        >>> import mindtorch_v2 as torch
        >>> optimizer = torch.optim.SGD([torch.ones(1)], lr=1.0)
        >>> scheduler = StepLR(optimizer, step_size=2, gamma=0.5)
        >>> rates = []
        >>> for _ in range(4):
        ...     rates += scheduler.get_last_lr()
        ...     optimizer.step()
        ...     scheduler.step()
        >>> rates
        [1.0, 1.0, 0.5, 0.5]
    """

    def __init__(
        self, optimizer: Optimizer, step_size: int, gamma: float = 0.1, last_epoch: int = -1
    ) -> None:
        self.step_size = step_size
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        """Computes the rates from the previous ones."""
        self._warn_outside_step()
        changes = self.last_epoch > 0 and self.last_epoch % self.step_size == 0
        factor = self.gamma if changes else 1
        return [rate * factor for rate in self._current()]

    def _get_closed_form_lr(self) -> list[float]:
        factor = self.gamma ** (self.last_epoch // self.step_size)
        return [base * factor for base in self.base_lrs]


class MultiStepLR(LRScheduler):
    """Multiplies the rates by `gamma` at given epochs.

    Args:
        optimizer: The optimizer whose learning rates are scheduled.
        milestones: The epochs; one that occurs twice counts twice.
        gamma: The factor of the rates.
        last_epoch: The epoch to resume from; -1 starts from the beginning.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        milestones: Iterable[int],
        gamma: float = 0.1,
        last_epoch: int = -1,
    ) -> None:
        self.milestones = Counter(milestones)
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        """Computes the rates from the previous ones."""
        self._warn_outside_step()
        if self.last_epoch not in self.milestones:
            return self._current()
        factor = self.gamma ** self.milestones[self.last_epoch]
        return [rate * factor for rate in self._current()]

    def _get_closed_form_lr(self) -> list[float]:
        passed = bisect_right(sorted(self.milestones.elements()), self.last_epoch)
        return [base * self.gamma**passed for base in self.base_lrs]


class ExponentialLR(LRScheduler):
    """Multiplies the rates by `gamma` every epoch.

    Args:
        optimizer: The optimizer whose learning rates are scheduled.
        gamma: The factor of the rates.
        last_epoch: The epoch to resume from; -1 starts from the beginning.
    """

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1) -> None:
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        """Computes the rates from the previous ones."""
        self._warn_outside_step()
        factor = 1 if self._is_initial else self.gamma
        return [rate * factor for rate in self._current()]

    def _get_closed_form_lr(self) -> list[float]:
        return [base * self.gamma**self.last_epoch for base in self.base_lrs]
