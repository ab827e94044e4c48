"""Schedulers: learning rates that change as training goes on."""

from __future__ import annotations

import math
import types
from collections.abc import Callable
from typing import Any, TypeAlias

from mindtorch_v2.optim._one_cycle import OneCycleLR
from mindtorch_v2.optim._scheduler import LRScheduler
from mindtorch_v2.optim.optimizer import Optimizer

__all__ = [
    "CosineAnnealingLR",
    "ExponentialLR",
    "LRScheduler",
    "LambdaLR",
    "OneCycleLR",
    "StepLR",
]

_Lambda: TypeAlias = "Callable[[int], float]"


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


class LambdaLR(LRScheduler):
    """Multiplies the first rates by what a function says of the epoch.

    Args:
        optimizer: Whose groups' learning rates are set.
        lr_lambda: The function, or one for each group.
        last_epoch: The epoch to go on from; -1 to begin.
    """

    def __init__(
        self, optimizer: Optimizer, lr_lambda: _Lambda | list[_Lambda], last_epoch: int = -1
    ) -> None:
        groups = len(optimizer.param_groups)
        if isinstance(lr_lambda, list | tuple):
            if len(lr_lambda) != groups:
                raise ValueError(f"Expected {groups} lr_lambdas, but got {len(lr_lambda)}")
            self.lr_lambdas: list[_Lambda] = list(lr_lambda)
        else:
            self.lr_lambdas = [lr_lambda] * groups
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        """Computes the rates from the first ones."""
        self._warn_outside_step()
        pairs = zip(self.base_lrs, self.lr_lambdas, strict=True)
        return [base * function(self.last_epoch) for base, function in pairs]

    def state_dict(self) -> dict[str, Any]:
        """Returns all that the scheduler knows but its optimizer and its functions.

        Of callable objects their attributes are kept, of plain functions nothing.
        """
        state = super().state_dict()
        del state["lr_lambdas"]
        state["lr_lambdas"] = [
            None if isinstance(function, types.FunctionType) else function.__dict__.copy()
            for function in self.lr_lambdas
        ]
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes over what `state_dict` returned, into the functions that are there."""
        state = dict(state_dict)
        for function, saved in zip(self.lr_lambdas, state.pop("lr_lambdas"), strict=True):
            if saved is not None:
                function.__dict__.update(saved)
        super().load_state_dict(state)


class CosineAnnealingLR(LRScheduler):
    """Lowers the rates along half a cosine, and raises them again after it.

    Args:
        optimizer: Whose groups' learning rates are set.
        T_max: Epochs until the lowest point.
        eta_min: The rate there.
        last_epoch: The epoch to go on from; -1 to begin.
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
        """Computes the rates from those before, so that other schedulers may change them too."""
        self._warn_outside_step()
        if self._is_initial:
            return self._current()
        if self._step_count == 1 and self.last_epoch > 0:
            return self._get_closed_form_lr()
        before = self._height(self.last_epoch - 1)
        if (self.last_epoch - 1 - self.T_max) % (2 * self.T_max) == 0:
            # The lowest point was just reached: a ratio to it would divide by zero.
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
