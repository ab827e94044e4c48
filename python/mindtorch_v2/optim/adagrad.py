"""`Adagrad`: steps scaled by the root of the sum of squared gradients."""

from __future__ import annotations

from typing import Any

import mindtorch_v2 as torch
from mindtorch_v2.optim._loop import LoopOptimizer, require
from mindtorch_v2.optim.optimizer import Params


class Adagrad(LoopOptimizer):
    """Divides the gradient by the root of the sum of all its squares.

    Args:
        params: The parameters, or groups of them.
        lr: The learning rate.
        lr_decay: The decay of the learning rate with the number of steps.
        weight_decay: The coefficient of the L2 penalty.
        initial_accumulator_value: The initial value of the sums.
        eps: A constant added to the divisor for numerical stability.
        foreach: Accepted, without effect: there is one implementation.
        maximize: Whether to maximize the objective.
        differentiable: Not supported.
        fused: Accepted, without effect: there is one implementation.
    """

    def __init__(
        self,
        params: Params,
        lr: float = 1e-2,
        lr_decay: float = 0,
        weight_decay: float = 0,
        initial_accumulator_value: float = 0,
        eps: float = 1e-10,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        require(lr >= 0, f"Invalid learning rate: {lr}")
        require(lr_decay >= 0, f"Invalid lr_decay value: {lr_decay}")
        require(weight_decay >= 0, f"Invalid weight_decay value: {weight_decay}")
        require(
            initial_accumulator_value >= 0,
            f"Invalid initial_accumulator_value value: {initial_accumulator_value}",
        )
        require(eps >= 0, f"Invalid epsilon value: {eps}")
        defaults = {
            "lr": lr,
            "lr_decay": lr_decay,
            "eps": eps,
            "weight_decay": weight_decay,
            "initial_accumulator_value": initial_accumulator_value,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "fused": fused,
        }
        super().__init__(params, defaults)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Adds a group of parameters and initializes their sums.

        Args:
            param_group: A dictionary with `"params"` and any options.
        """
        super().add_param_group(param_group)
        group = self.param_groups[-1]
        for parameter in group["params"]:
            self._start(parameter, group)

    def _start(self, parameter: torch.Tensor, group: dict[str, Any]) -> None:
        state = self.state[parameter]
        state["step"] = torch.tensor(0.0, dtype=torch.float32)
        state["sum"] = torch.full_like(parameter, group["initial_accumulator_value"])

    def _update(
        self, parameter: torch.Tensor, gradient: torch.Tensor, group: dict[str, Any]
    ) -> None:
        state = self.state[parameter]
        state["step"].add_(1)
        step = state["step"].item()
        if group["maximize"]:
            gradient = -gradient
        if group["weight_decay"] != 0:
            gradient = gradient.add(parameter, alpha=group["weight_decay"])
        state["sum"].addcmul_(gradient, gradient, value=1)
        divisor = state["sum"].sqrt().add_(group["eps"])
        rate = group["lr"] / (1 + (step - 1) * group["lr_decay"])
        parameter.addcdiv_(gradient, divisor, value=-rate)
