"""Schedulers that call a function: `LambdaLR`, `MultiplicativeLR`."""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any, TypeAlias

from mindtorch_v2.optim._scheduler import LRScheduler
from mindtorch_v2.optim.optimizer import Optimizer

_Lambda: TypeAlias = "Callable[[int], float]"


class LambdaLR(LRScheduler):
    """Multiplies the initial rates by a function of the epoch.

    Args:
        optimizer: The optimizer whose learning rates are scheduled.
        lr_lambda: The function, or one for each group.
        last_epoch: The epoch to resume from; -1 starts from the beginning.
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
        """Computes the rates from the initial ones."""
        self._warn_outside_step()
        pairs = zip(self.base_lrs, self.lr_lambdas, strict=True)
        return [base * function(self.last_epoch) for base, function in pairs]

    def state_dict(self) -> dict[str, Any]:
        """Returns the state of the scheduler, without its optimizer and its functions.

        The attributes of callable objects are included; plain functions have none.
        """
        state = super().state_dict()
        del state["lr_lambdas"]
        state["lr_lambdas"] = [
            None if isinstance(function, types.FunctionType) else function.__dict__.copy()
            for function in self.lr_lambdas
        ]
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restores the state that `state_dict` returned, keeping the current functions."""
        state = dict(state_dict)
        for function, saved in zip(self.lr_lambdas, state.pop("lr_lambdas"), strict=True):
            if saved is not None:
                function.__dict__.update(saved)
        super().load_state_dict(state)


class MultiplicativeLR(LambdaLR):
    """Multiplies the previous rates by a function of the epoch.

    Args:
        optimizer: The optimizer whose learning rates are scheduled.
        lr_lambda: The function, or one for each group.
        last_epoch: The epoch to resume from; -1 starts from the beginning.
    """

    def __init__(
        self, optimizer: Optimizer, lr_lambda: _Lambda | list[_Lambda], last_epoch: int = -1
    ) -> None:
        given = lr_lambda if isinstance(lr_lambda, list | tuple) else [lr_lambda]
        for function in given:
            if not callable(function):
                raise TypeError(
                    f"lr_lambda should be a function, but got {type(function).__name__}"
                )
        super().__init__(optimizer, lr_lambda, last_epoch)

    def get_lr(self) -> list[float]:
        """Computes the rates from the previous ones."""
        self._warn_outside_step()
        if self._is_initial:
            return self._current()
        pairs = zip(self._current(), self.lr_lambdas, strict=True)
        return [rate * function(self.last_epoch) for rate, function in pairs]
