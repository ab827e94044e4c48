"""`Adamax`: Adam with the infinity norm instead of the average square."""

from __future__ import annotations

from typing import Any

import mindtorch_v2 as torch
from mindtorch_v2.optim._loop import LoopOptimizer, require, require_betas
from mindtorch_v2.optim.optimizer import Params


class Adamax(LoopOptimizer):
    """Divides the average gradient by a running maximum of the gradient.

    Args:
        params: The parameters, or groups of them.
        lr: The learning rate.
        betas: The decay rates of the running average and of the running maximum.
        eps: A constant added to the absolute gradient for numerical stability.
        weight_decay: The coefficient of the L2 penalty.
        foreach: Accepted, without effect: there is one implementation.
        maximize: Whether to maximize the objective.
        differentiable: Not supported.
        capturable: Not supported.
    """

    def __init__(
        self,
        params: Params,
        lr: float = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
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
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "capturable": capturable,
        }
        super().__init__(params, defaults)

    def _start(self, parameter: torch.Tensor, group: dict[str, Any]) -> None:  # noqa: ARG002
        state = self.state[parameter]
        state["step"] = torch.tensor(0.0, dtype=torch.float32)
        state["exp_avg"] = torch.zeros_like(parameter)
        state["exp_inf"] = torch.zeros_like(parameter)

    def _update(
        self, parameter: torch.Tensor, gradient: torch.Tensor, group: dict[str, Any]
    ) -> None:
        state = self.state[parameter]
        beta1, beta2 = group["betas"]
        if group["maximize"]:
            gradient = -gradient
        state["step"].add_(1)
        if group["weight_decay"] != 0:
            gradient = gradient.add(parameter, alpha=group["weight_decay"])
        average, largest = state["exp_avg"], state["exp_inf"]
        average.lerp_(gradient, 1 - beta1)
        torch.maximum(largest.mul_(beta2), gradient.abs().add_(group["eps"]), out=largest)

        # Corrects the bias of the average, which starts at zero.
        average_part = 1 - beta1 ** state["step"].item()
        parameter.addcdiv_(average, largest, value=-group["lr"] / average_part)
