"""Schedulers that multiply rates at some epochs: `StepLR`, `MultiStepLR`, `ExponentialLR`."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable

from mindtorch_v2.optim._scheduler import LRScheduler
from mindtorch_v2.optim.optimizer import Optimizer


class StepLR(LRScheduler):
    """Multiplies the rates by `gamma` every `step_size` epochs.

    Args:
        optimizer: Whose groups' learning rates are set.
        step_size: Epochs between two changes.
        gamma: What the rates are multiplied by.
        last_epoch: The epoch to go on from; -1 to begin.

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
        """Computes the rates from those before."""
        self._warn_outside_step()
        changes = self.last_epoch > 0 and self.last_epoch % self.step_size == 0
        factor = self.gamma if changes else 1
        return [rate * factor for rate in self._current()]

    def _get_closed_form_lr(self) -> list[float]:
        factor = self.gamma ** (self.last_epoch // self.step_size)
        return [base * factor for base in self.base_lrs]


class MultiStepLR(LRScheduler):
    """Multiplies the rates by `gamma` at each of some epochs.

    Args:
        optimizer: Whose groups' learning rates are set.
        milestones: The epochs; one that is there twice counts twice.
        gamma: What the rates are multiplied by.
        last_epoch: The epoch to go on from; -1 to begin.
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
        """Computes the rates from those before."""
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
        optimizer: Whose groups' learning rates are set.
        gamma: What the rates are multiplied by.
        last_epoch: The epoch to go on from; -1 to begin.
    """

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1) -> None:
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        """Computes the rates from those before."""
        self._warn_outside_step()
        factor = 1 if self._is_initial else self.gamma
        return [rate * factor for rate in self._current()]

    def _get_closed_form_lr(self) -> list[float]:
        return [base * self.gamma**self.last_epoch for base in self.base_lrs]
