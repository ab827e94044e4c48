"""Schedulers for the first epochs: `ConstantLR`, `LinearLR`, `PolynomialLR`."""

from __future__ import annotations

from mindtorch_v2.optim._scheduler import LRScheduler
from mindtorch_v2.optim.optimizer import Optimizer


class ConstantLR(LRScheduler):
    """Scales the rates by a constant for a number of epochs.

    Args:
        optimizer: The optimizer whose learning rates are scheduled.
        factor: The factor of the rates in these epochs.
        total_iters: The number of epochs.
        last_epoch: The epoch to resume from; -1 starts from the beginning.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        factor: float = 1.0 / 3,
        total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:
        if factor > 1.0 or factor < 0:
            raise ValueError("Constant multiplicative factor expected to be between 0 and 1.")
        self.factor = factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        """Computes the rates from the previous ones."""
        self._warn_outside_step()
        if self.last_epoch == 0:
            return [rate * self.factor for rate in self._current()]
        if self.last_epoch != self.total_iters:
            return self._current()
        return [rate * (1.0 / self.factor) for rate in self._current()]

    def _get_closed_form_lr(self) -> list[float]:
        factor = self.factor + (self.last_epoch >= self.total_iters) * (1 - self.factor)
        return [base * factor for base in self.base_lrs]


class LinearLR(LRScheduler):
    """Scales the rates by a factor that changes linearly.

    Args:
        optimizer: The optimizer whose learning rates are scheduled.
        start_factor: The initial factor.
        end_factor: The final factor.
        total_iters: The number of epochs until the final factor.
        last_epoch: The epoch to resume from; -1 starts from the beginning.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        start_factor: float = 1.0 / 3,
        end_factor: float = 1.0,
        total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:
        if start_factor > 1.0 or start_factor <= 0:
            raise ValueError(
                "Starting multiplicative factor expected to be greater than 0 and less or equal "
                "to 1."
            )
        if end_factor > 1.0 or end_factor < 0:
            raise ValueError("Ending multiplicative factor expected to be between 0 and 1.")
        self.start_factor = start_factor
        self.end_factor = end_factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        """Computes the rates from the previous ones."""
        self._warn_outside_step()
        if self.last_epoch == 0:
            return [rate * self.start_factor for rate in self._current()]
        if self._is_initial or self.last_epoch > self.total_iters:
            return self._current()
        rise = self.end_factor - self.start_factor
        before = self.total_iters * self.start_factor + (self.last_epoch - 1) * rise
        return [rate * (1.0 + rise / before) for rate in self._current()]

    def _get_closed_form_lr(self) -> list[float]:
        rise, epochs = self.end_factor - self.start_factor, min(self.total_iters, self.last_epoch)
        factor = self.start_factor + rise * epochs / self.total_iters
        return [base * factor for base in self.base_lrs]


class PolynomialLR(LRScheduler):
    """Lowers the rates to zero along a polynomial.

    Args:
        optimizer: The optimizer whose learning rates are scheduled.
        total_iters: The number of epochs until zero.
        power: The power of the polynomial; 1 is linear.
        last_epoch: The epoch to resume from; -1 starts from the beginning.
    """

    def __init__(
        self, optimizer: Optimizer, total_iters: int = 5, power: float = 1.0, last_epoch: int = -1
    ) -> None:
        self.total_iters = total_iters
        self.power = power
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        """Computes the rates from the previous ones."""
        self._warn_outside_step()
        if self._is_initial or self.last_epoch > self.total_iters:
            return self._current()
        left, before = (1.0 - epoch / self.total_iters for epoch in self._last_two())
        factor = (left / before) ** self.power
        return [rate * factor for rate in self._current()]

    def _last_two(self) -> tuple[int, int]:
        return self.last_epoch, self.last_epoch - 1

    def _get_closed_form_lr(self) -> list[float]:
        left = 1.0 - min(self.total_iters, self.last_epoch) / self.total_iters
        return [base * left**self.power for base in self.base_lrs]
