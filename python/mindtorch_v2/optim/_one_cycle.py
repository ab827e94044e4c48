"""`OneCycleLR`: rates that rise and fall once, with momentum doing the opposite."""

from __future__ import annotations

import math
from typing import Any, Literal

from mindtorch_v2.optim._momentum import per_group, set_momentum, uses_beta1
from mindtorch_v2.optim._scheduler import LRScheduler
from mindtorch_v2.optim.optimizer import Optimizer


class OneCycleLR(LRScheduler):
    """Raises the rates to `max_lr` and lowers them to almost zero; stepped per batch.

    ```text
    max_lr                          .-'-.
                                  .'     '.
    max_lr / div_factor         .'         '.
    ... / final_div_factor                   '.
                          step  0   pct_start  total_steps
    ```

    Args:
        optimizer: The optimizer whose learning rates are scheduled.
        max_lr: The highest rate, or one for each group.
        total_steps: The total number of steps.
        epochs: Together with `steps_per_epoch`, an alternative to `total_steps`.
        steps_per_epoch: Together with `epochs`, an alternative to `total_steps`.
        pct_start: The fraction of the steps in which rates rise.
        anneal_strategy: `"cos"` or `"linear"`.
        cycle_momentum: Whether to cycle the momentum inversely to the rates.
        base_momentum: The lowest momentum, or one for each group.
        max_momentum: The highest momentum, or one for each group.
        div_factor: The ratio of `max_lr` to the initial rate.
        final_div_factor: The ratio of the initial rate to the final one.
        three_phase: Whether rates fall symmetrically before they fall to the final rate.
        last_epoch: The step to resume from; -1 starts from the beginning.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        max_lr: float | list[float],
        total_steps: int | None = None,
        epochs: int | None = None,
        steps_per_epoch: int | None = None,
        pct_start: float = 0.3,
        anneal_strategy: Literal["cos", "linear"] = "cos",
        cycle_momentum: bool = True,
        base_momentum: float | list[float] = 0.85,
        max_momentum: float | list[float] = 0.95,
        div_factor: float = 25.0,
        final_div_factor: float = 1e4,
        three_phase: bool = False,
        last_epoch: int = -1,
    ) -> None:
        if not isinstance(optimizer, Optimizer):
            raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")
        self.total_steps = _total_steps(total_steps, epochs, steps_per_epoch)
        if not isinstance(pct_start, float) or not 0 <= pct_start <= 1:
            raise ValueError(f"Expected float between 0 and 1 pct_start, but got {pct_start}")
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(
                f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}"
            )
        self._schedule_phases = _phases(self.total_steps, pct_start, three_phase)
        self._anneal_func_type = anneal_strategy
        self.cycle_momentum = cycle_momentum
        peaks = per_group("max_lr", optimizer, max_lr)
        if last_epoch == -1:
            for group, peak in zip(optimizer.param_groups, peaks, strict=True):
                first = peak / div_factor
                group.update(initial_lr=first, max_lr=peak, min_lr=first / final_div_factor)
        if cycle_momentum:
            self.use_beta1 = uses_beta1(optimizer)
            highs = per_group("max_momentum", optimizer, max_momentum)
            lows = per_group("base_momentum", optimizer, base_momentum)
            if last_epoch == -1:
                for group, high, low in zip(optimizer.param_groups, highs, lows, strict=True):
                    set_momentum(group, high, self.use_beta1)
                    group.update(max_momentum=high, base_momentum=low)
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        """Computes the rates of this step and sets its momentum."""
        self._warn_outside_step()
        if self.last_epoch > self.total_steps:
            raise ValueError(
                f"Tried to step {self.last_epoch} times. "
                f"The specified number of total steps is {self.total_steps}"
            )
        phase, progress = self._progress()
        rates = []
        for group in self.optimizer.param_groups:
            rates.append(self._between(group[phase["start_lr"]], group[phase["end_lr"]], progress))
            if self.cycle_momentum:
                ends = group[phase["start_momentum"]], group[phase["end_momentum"]]
                set_momentum(group, self._between(*ends, progress), self.use_beta1)
        return rates

    def _progress(self) -> tuple[dict[str, Any], float]:
        """Returns the phase of this step, and the fraction of the phase that has passed."""
        start = 0.0
        for phase in self._schedule_phases:
            if self.last_epoch <= phase["end_step"]:
                break
            if phase is not self._schedule_phases[-1]:
                start = phase["end_step"]
        return phase, (self.last_epoch - start) / (phase["end_step"] - start)

    def _between(self, start: float, end: float, progress: float) -> float:
        if self._anneal_func_type == "linear":
            return (end - start) * progress + start
        return end + (start - end) / 2.0 * (math.cos(math.pi * progress) + 1)


def _total_steps(total_steps: int | None, epochs: int | None, steps_per_epoch: int | None) -> int:
    if total_steps is not None:
        return _positive("total_steps", total_steps)
    if epochs is None or steps_per_epoch is None:
        raise ValueError("You must define either total_steps OR (epochs AND steps_per_epoch)")
    return _positive("epochs", epochs) * _positive("steps_per_epoch", steps_per_epoch)


def _positive(name: str, value: int) -> int:
    if not isinstance(value, int) or value <= 0:
        raise ValueError(f"Expected positive integer {name}, but got {value}")
    return value


def _phases(total_steps: int, pct_start: float, three_phase: bool) -> list[dict[str, Any]]:
    peak = float(pct_start * total_steps) - 1
    up = _phase(peak, "initial_lr max_lr", "max_momentum base_momentum")
    if not three_phase:
        return [up, _phase(total_steps - 1, "max_lr min_lr", "base_momentum max_momentum")]
    mirrored = float(2 * pct_start * total_steps) - 2
    return [
        up,
        _phase(mirrored, "max_lr initial_lr", "base_momentum max_momentum"),
        _phase(total_steps - 1, "initial_lr min_lr", "max_momentum max_momentum"),
    ]


def _phase(end_step: float, rates: str, momenta: str) -> dict[str, Any]:
    (start_lr, end_lr), (start_momentum, end_momentum) = rates.split(), momenta.split()
    return {
        "end_step": end_step,
        "start_lr": start_lr,
        "end_lr": end_lr,
        "start_momentum": start_momentum,
        "end_momentum": end_momentum,
    }
