"""Helpers of schedulers that also cycle the momentum."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mindtorch_v2.optim.optimizer import Optimizer


def uses_beta1(optimizer: Optimizer) -> bool:
    """Returns whether the momentum of an optimizer is the first of its betas.

    Raises:
        ValueError: If the optimizer has no momentum.
    """
    if "momentum" not in optimizer.defaults and "betas" not in optimizer.defaults:
        raise ValueError(
            "optimizer must support momentum or beta1 with `cycle_momentum` option enabled"
        )
    return "betas" in optimizer.defaults


def set_momentum(group: dict[str, Any], momentum: float, use_beta1: bool) -> None:
    """Sets the momentum of a group of parameters."""
    if use_beta1:
        group["betas"] = (momentum, *group["betas"][1:])
    else:
        group["momentum"] = momentum


def per_group(name: str, optimizer: Optimizer, value: float | Sequence[float]) -> list[float]:
    """Returns one value for each group of parameters.

    Raises:
        ValueError: If the number of values does not match the number of groups.
    """
    groups = len(optimizer.param_groups)
    if isinstance(value, int | float):
        return [value] * groups
    if len(value) != groups:
        raise ValueError(
            f"{name} must have the same length as optimizer.param_groups. "
            f"{name} has {len(value)} values, param_groups has {groups}."
        )
    return list(value)
