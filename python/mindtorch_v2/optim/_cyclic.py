"""`CyclicLR`: rates that cycle between two bounds, with momentum cycling inversely."""

from __future__ import annotations

import math
import types
from collections.abc import Callable
from typing import Any, Literal

from mindtorch_v2.optim._momentum import per_group, set_momentum, uses_beta1
from mindtorch_v2.optim._scheduler import LRScheduler
from mindtorch_v2.optim.optimizer import Optimizer

_MODES = ("triangular", "triangular2", "exp_range")


class CyclicLR(LRScheduler):
    """Cycles the rates between `base_lr` and `max_lr`; stepped per batch.

    ```text
    max_lr      .          .
               / '.       / '.        triangular: every cycle as high as the first
              /    '.    /    '.      triangular2: each half as high as the one before
    base_lr  /       '. /       '.    exp_range: lower by gamma with each step
             up   down
    ```

    Args:
        optimizer: The optimizer whose learning rates are scheduled.
        base_lr: The lowest rate, or one for each group.
        max_lr: The highest rate, or one for each group.
        step_size_up: The number of rising steps.
        step_size_down: The number of falling steps; by default as many as rising ones.
        mode: `"triangular"`, `"triangular2"` or `"exp_range"`.
        gamma: The base of the decay of `"exp_range"`.
        scale_fn: A function that scales cycles, instead of a mode.
        scale_mode: Whether the function takes the `"cycle"` or the `"iterations"`.
        cycle_momentum: Whether to cycle the momentum inversely to the rates.
        base_momentum: The lowest momentum, or one for each group.
        max_momentum: The highest momentum, or one for each group.
        last_epoch: The step to resume from; -1 starts from the beginning.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        base_lr: float | list[float],
        max_lr: float | list[float],
        step_size_up: int = 2000,
        step_size_down: int | None = None,
        mode: Literal["triangular", "triangular2", "exp_range"] = "triangular",
        gamma: float = 1.0,
        scale_fn: Callable[[float], float] | None = None,
        scale_mode: Literal["cycle", "iterations"] = "cycle",
        cycle_momentum: bool = True,
        base_momentum: float | list[float] = 0.8,
        max_momentum: float | list[float] = 0.9,
        last_epoch: int = -1,
    ) -> None:
        if not isinstance(optimizer, Optimizer):
            raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")
        lowest = per_group("base_lr", optimizer, base_lr)
        if last_epoch == -1:
            for group, rate in zip(optimizer.param_groups, lowest, strict=True):
                group["lr"] = rate
        self.max_lrs = per_group("max_lr", optimizer, max_lr)
        up = float(step_size_up)
        self.total_size = up + (up if step_size_down is None else float(step_size_down))
        self.step_ratio = up / self.total_size
        if mode not in _MODES and scale_fn is None:
            raise ValueError("mode is invalid and scale_fn is None")
        self.mode = mode
        self.gamma = gamma
        self._scale_fn_custom = scale_fn
        self.scale_mode: str = scale_mode
        if scale_fn is None:
            self.scale_mode = "iterations" if mode == "exp_range" else "cycle"
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self._begin_momentum(optimizer, base_momentum, max_momentum, last_epoch == -1)
        super().__init__(optimizer, last_epoch)
        self.base_lrs = lowest

    def _begin_momentum(
        self,
        optimizer: Optimizer,
        base_momentum: float | list[float],
        max_momentum: float | list[float],
        is_new: bool,
    ) -> None:
        self.use_beta1 = uses_beta1(optimizer)
        self.base_momentums = per_group("base_momentum", optimizer, base_momentum)
        self.max_momentums = per_group("max_momentum", optimizer, max_momentum)
        if is_new:
            bounds = zip(self.max_momentums, self.base_momentums, strict=True)
            for group, (high, low) in zip(optimizer.param_groups, bounds, strict=True):
                set_momentum(group, high, self.use_beta1)
                group.update(max_momentum=high, base_momentum=low)

    def scale_fn(self, x: float) -> float:
        """Returns the height of a cycle, given its number or that of the step."""
        if self._scale_fn_custom is not None:
            return self._scale_fn_custom(x)
        if self.mode == "triangular":
            return 1.0
        return float(self.gamma**x) if self.mode == "exp_range" else 1 / (2.0 ** (x - 1))

    def get_lr(self) -> list[float]:
        """Computes the rates of this step and sets its momentum."""
        self._warn_outside_step()
        cycle = math.floor(1 + self.last_epoch / self.total_size)
        passed = 1.0 + self.last_epoch / self.total_size - cycle
        is_up = passed <= self.step_ratio
        height = passed / self.step_ratio if is_up else (passed - 1) / (self.step_ratio - 1)
        scale = self.scale_fn(cycle if self.scale_mode == "cycle" else self.last_epoch)
        if self.cycle_momentum:
            bounds = zip(self.base_momentums, self.max_momentums, strict=True)
            for group, (low, high) in zip(self.optimizer.param_groups, bounds, strict=True):
                set_momentum(group, high - (high - low) * height * scale, self.use_beta1)
        pairs = zip(self.base_lrs, self.max_lrs, strict=True)
        return [low + (high - low) * height * scale for low, high in pairs]

    def state_dict(self) -> dict[str, Any]:
        """Returns the state of the scheduler, without its optimizer and its function.

        The attributes of a callable object are included; a plain function has none.
        """
        state = super().state_dict()
        function = state.pop("_scale_fn_custom")
        is_object = function is not None and not isinstance(function, types.FunctionType)
        state["_scale_fn_custom"] = function.__dict__.copy() if is_object else None
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restores the state that `state_dict` returned, keeping the current function."""
        state = dict(state_dict)
        saved = state.pop("_scale_fn_custom")
        super().load_state_dict(state)
        if saved is not None and self._scale_fn_custom is not None:
            self._scale_fn_custom.__dict__.update(saved)
