"""Cosine schedulers: `CosineAnnealingLR`, `CosineAnnealingWarmRestarts`."""

from __future__ import annotations

import math

from mindtorch_v2.optim._scheduler import LRScheduler
from mindtorch_v2.optim.optimizer import Optimizer


class CosineAnnealingLR(LRScheduler):
    """Lowers the rates along half a cosine, and raises them again afterwards.

    Args:
        optimizer: The optimizer whose learning rates are scheduled.
        T_max: The number of epochs until the minimum.
        eta_min: The rate at the minimum.
        last_epoch: The epoch to resume from; -1 starts from the beginning.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        T_max: int,  # noqa: N803  # torch's name
        eta_min: float = 0.0,
        last_epoch: int = -1,
    ) -> None:
        self.T_max = T_max
        self.eta_min = eta_min
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        """Computes the rates from the previous ones, which others may have changed."""
        self._warn_outside_step()
        if self._is_initial:
            return self._current()
        if self._step_count == 1 and self.last_epoch > 0:
            return self._get_closed_form_lr()
        before = self._height(self.last_epoch - 1)
        if (self.last_epoch - 1 - self.T_max) % (2 * self.T_max) == 0:
            # The minimum was just reached, where the ratio would divide by zero.
            rise = (1 - math.cos(math.pi / self.T_max)) / 2
            pairs = zip(self._current(), self.base_lrs, strict=True)
            return [rate + (base - self.eta_min) * rise for rate, base in pairs]
        ratio = self._height(self.last_epoch) / before
        return [ratio * (rate - self.eta_min) + self.eta_min for rate in self._current()]

    def _get_closed_form_lr(self) -> list[float]:
        height = self._height(self.last_epoch) / 2
        return [self.eta_min + (base - self.eta_min) * height for base in self.base_lrs]

    def _height(self, epoch: int) -> float:
        return 1 + math.cos(math.pi * epoch / self.T_max)


class CosineAnnealingWarmRestarts(LRScheduler):
    """Lowers the rates along half a cosine repeatedly, each time from the top.

    Args:
        optimizer: The optimizer whose learning rates are scheduled.
        T_0: The number of epochs until the first restart.
        T_mult: The factor by which each next cycle is longer.
        eta_min: The lowest rate.
        last_epoch: The epoch to resume from; -1 starts from the beginning.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        T_0: int,  # noqa: N803  # torch's name
        T_mult: int = 1,  # noqa: N803
        eta_min: float = 0.0,
        last_epoch: int = -1,
    ) -> None:
        if T_0 <= 0 or not isinstance(T_0, int):
            raise ValueError(f"Expected positive integer T_0, but got {T_0}")
        if T_mult < 1 or not isinstance(T_mult, int):
            raise ValueError(f"Expected integer T_mult >= 1, but got {T_mult}")
        if not isinstance(eta_min, float | int):
            raise ValueError(
                f"Expected float or int eta_min, but got {eta_min} of type {type(eta_min)}"
            )
        self.T_0 = T_0
        self.T_i = T_0
        self.T_mult = T_mult
        self.eta_min = eta_min
        self.T_cur: float = last_epoch
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        """Computes the rates from the initial ones and the epochs since the last restart."""
        self._warn_outside_step()
        height = 1 + math.cos(math.pi * self.T_cur / self.T_i)
        return [self.eta_min + (base - self.eta_min) * height / 2 for base in self.base_lrs]

    def step(self, epoch: float | None = None) -> None:
        """Sets the rates of the next epoch.

        Args:
            epoch: The epoch to set instead; it may be fractional.
        """
        if epoch is None and self.last_epoch >= 0:
            epoch = self.last_epoch + 1
            self.T_cur += 1
            if self.T_cur >= self.T_i:
                self.T_cur %= self.T_i
                self.T_i *= self.T_mult
        else:
            epoch = 0 if epoch is None else epoch
            self._go_to(epoch)
        self.last_epoch = math.floor(epoch)
        self._set(self._rates())

    def _go_to(self, epoch: float) -> None:
        if epoch < 0:
            raise ValueError(f"Expected non-negative epoch, but got {epoch}")
        self.T_i, self.T_cur = self.T_0, epoch
        if epoch < self.T_0:
            return
        if self.T_mult == 1:
            self.T_cur = epoch % self.T_0
            return
        # Cycle lengths form a geometric series, so the number of cycles is a logarithm.
        growth = self.T_mult - 1
        rounds = int(math.log(epoch / self.T_0 * growth + 1, self.T_mult))
        self.T_cur = epoch - self.T_0 * (self.T_mult**rounds - 1) / growth
        self.T_i = self.T_0 * self.T_mult**rounds
