"""`Adam`: steps scaled by running averages of the gradient and of its square."""

from __future__ import annotations

import math
from typing import Any

import mindtorch_v2 as torch
from mindtorch_v2.optim._loop import LoopOptimizer, require, require_betas
from mindtorch_v2.optim.optimizer import Params


class Adam(LoopOptimizer):
    """Divides the average gradient by the root of the average squared gradient.

    Args:
        params: The parameters, or groups of them.
        lr: The learning rate.
        betas: The decay rates of the two running averages.
        eps: A constant added to the divisor for numerical stability.
        weight_decay: The coefficient of the L2 penalty.
        amsgrad: Whether to divide by the largest average so far.
        foreach: Accepted, without effect: there is one implementation.
        maximize: Whether to maximize the objective.
        capturable: Not supported.
        differentiable: Not supported.
        fused: Accepted, without effect: there is one implementation.
        decoupled_weight_decay: Whether to decay the parameter directly, as in `AdamW`.
    """

    def __init__(
        self,
        params: Params,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        amsgrad: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
        decoupled_weight_decay: bool = False,
    ) -> None:
        require(lr >= 0, f"Invalid learning rate: {lr}")
        require(eps >= 0, f"Invalid epsilon value: {eps}")
        require_betas(betas)
        require(weight_decay >= 0, f"Invalid weight_decay value: {weight_decay}")
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "amsgrad": amsgrad,
            "maximize": maximize,
            "foreach": foreach,
            "capturable": capturable,
            "differentiable": differentiable,
            "fused": fused,
            "decoupled_weight_decay": decoupled_weight_decay,
        }
        super().__init__(params, defaults)

    def _start(self, parameter: torch.Tensor, group: dict[str, Any]) -> None:
        state = self.state[parameter]
        state["step"] = torch.tensor(0.0, dtype=torch.float32)
        state["exp_avg"] = torch.zeros_like(parameter)
        state["exp_avg_sq"] = torch.zeros_like(parameter)
        if group["amsgrad"]:
            state["max_exp_avg_sq"] = torch.zeros_like(parameter)

    def _update(
        self, parameter: torch.Tensor, gradient: torch.Tensor, group: dict[str, Any]
    ) -> None:
        state = self.state[parameter]
        lr, (beta1, beta2), decay = group["lr"], group["betas"], group["weight_decay"]
        if group["maximize"]:
            gradient = -gradient
        state["step"].add_(1)
        if decay != 0 and group["decoupled_weight_decay"]:
            parameter.mul_(1 - lr * decay)
        elif decay != 0:
            gradient = gradient.add(parameter, alpha=decay)
        average, square = state["exp_avg"], state["exp_avg_sq"]
        average.lerp_(gradient, 1 - beta1)
        square.mul_(beta2).addcmul_(gradient, gradient, value=1 - beta2)

        # Corrects the bias of both averages, which start at zero.
        step = state["step"].item()
        average_part, square_part = 1 - beta1**step, 1 - beta2**step
        if group["amsgrad"]:
            largest = state["max_exp_avg_sq"]
            square = torch.maximum(largest, square, out=largest)
        divisor = (square.sqrt() / math.sqrt(square_part)).add_(group["eps"])
        parameter.addcdiv_(average, divisor, value=-lr / average_part)
