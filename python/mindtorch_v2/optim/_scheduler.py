"""`LRScheduler`: the common base of schedulers, with epochs, state and torch's warnings."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

from mindtorch_v2.optim.optimizer import Optimizer


class LRScheduler:
    """The base class of all schedulers. Subclasses define `get_lr`.

    Creating a scheduler sets the rates of the first epoch. `step()`, called after the optimizer's
    step, sets those of the next.

    Args:
        optimizer: The optimizer whose learning rates are scheduled.
        last_epoch: The epoch to resume from; -1 starts from the beginning.
    """

    _step_count: int
    _is_initial: bool = False
    _get_lr_called_within_step: bool = False

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        if not isinstance(optimizer, Optimizer):
            raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")
        self.optimizer = optimizer
        for number, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                group.setdefault("initial_lr", group["lr"])
            elif "initial_lr" not in group:
                raise KeyError(_NO_INITIAL_LR.format(number))
        self.base_lrs: list[float] = [group["initial_lr"] for group in optimizer.param_groups]
        self.last_epoch = last_epoch
        optimizer.__dict__.setdefault("_opt_called", False)  # steps are noted from now on
        self._initial_step()

    def _initial_step(self) -> None:
        """Sets the rates of the first epoch."""
        self._step_count = 0
        self._is_initial = True
        try:
            self.step()
        finally:
            self._is_initial = False

    def get_lr(self) -> list[float]:
        """Computes the rates of the epoch `last_epoch` from the previous ones."""
        raise NotImplementedError

    def get_last_lr(self) -> list[float]:
        """Returns the current rates, one for each group."""
        return self._last_lr

    def step(self, epoch: int | None = None) -> None:
        """Sets the rates of the next epoch.

        Args:
            epoch: The epoch to set instead; deprecated in torch.
        """
        if self._step_count == 1:
            self._warn_about_order()
        self._step_count += 1
        if epoch is not None:
            warnings.warn(EPOCH_WARNING, UserWarning, stacklevel=2)
        self._update_lr(epoch)

    def state_dict(self) -> dict[str, Any]:
        """Returns the state of the scheduler, without its optimizer."""
        return {name: value for name, value in self.__dict__.items() if name != "optimizer"}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restores the state that `state_dict` returned."""
        self.__dict__.update(state_dict)

    def _update_lr(self, epoch: int | None = None) -> None:
        """Sets the rates of an epoch, by default of the next one."""
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        if epoch is not None and hasattr(self, "_get_closed_form_lr"):
            rates = self._get_closed_form_lr()
        else:
            rates = self._rates()
        self._set(rates)

    def _rates(self) -> list[float]:
        """Returns the rates of this epoch without the warning that `get_lr` gives to callers."""
        self._get_lr_called_within_step = True
        try:
            return self.get_lr()
        finally:
            self._get_lr_called_within_step = False

    def _set(self, rates: Sequence[float]) -> None:
        for group, rate in zip(self.optimizer.param_groups, rates, strict=True):
            group["lr"] = rate
        self._last_lr: list[float] = self._current()

    def _current(self) -> list[float]:
        return [group["lr"] for group in self.optimizer.param_groups]

    def _warn_outside_step(self) -> None:
        if not self._get_lr_called_within_step:
            warnings.warn(_OUTSIDE_STEP, UserWarning, stacklevel=3)

    def _warn_about_order(self) -> None:
        if "step" in self.optimizer.__dict__:
            warnings.warn(_OVERRIDDEN, UserWarning, stacklevel=3)
        elif not getattr(self.optimizer, "_opt_called", False):
            warnings.warn(_ORDER, UserWarning, stacklevel=3)


_ORDER = (
    "Detected call of `lr_scheduler.step()` before `optimizer.step()`. In PyTorch 1.1.0 and later, "
    "you should call them in the opposite order: `optimizer.step()` before `lr_scheduler.step()`.  "
    "Failure to do this will result in PyTorch skipping the first value of the learning rate "
    "schedule. See more details at "
    "https://pytorch.org/docs/stable/optim.html#how-to-adjust-learning-rate"
)
_OVERRIDDEN = (
    "Seems like `optimizer.step()` has been overridden after learning rate scheduler "
    "initialization. Please, make sure to call `optimizer.step()` before `lr_scheduler.step()`. "
    "See more details at "
    "https://pytorch.org/docs/stable/optim.html#how-to-adjust-learning-rate"
)
EPOCH_WARNING = (
    "The epoch parameter in `scheduler.step()` was not necessary and is being deprecated where "
    "possible. Please use `scheduler.step()` to step the scheduler. During the deprecation, if "
    "epoch is different from None, the closed form is used instead of the new chainable form, "
    "where available. Please open an issue if you are unable to replicate your use case: "
    "https://github.com/pytorch/pytorch/issues/new/choose."
)
_OUTSIDE_STEP = (
    "To get the last learning rate computed by the scheduler, please use `get_last_lr()`."
)
_NO_INITIAL_LR = (
    "param 'initial_lr' is not specified in param_groups[{}] when resuming scheduler with "
    "last_epoch >= 0.\nThis typically happens when:\n1. You're trying to resume training from a "
    "checkpoint but haven't properly loaded the optimizer state\n2. You're using last_epoch >= 0 "
    "for a fresh training run (not recommended)"
)
