"""`RMSprop`: steps scaled by the root of the average squared gradient."""

from __future__ import annotations

from typing import Any

import mindtorch_v2 as torch
from mindtorch_v2.optim._loop import LoopOptimizer, require
from mindtorch_v2.optim.optimizer import Params


class RMSprop(LoopOptimizer):
    """Divides the gradient by the root of a running average of its square.

    Args:
        params: The parameters, or groups of them.
        lr: The learning rate.
        alpha: The decay rate of the running average.
        eps: A constant added to the divisor for numerical stability.
        weight_decay: The coefficient of the L2 penalty.
        momentum: The momentum factor.
        centered: Whether to divide by the standard deviation of the gradient instead.
        capturable: Not supported.
        foreach: Accepted, without effect: there is one implementation.
        maximize: Whether to maximize the objective.
        differentiable: Not supported.
    """

    def __init__(
        self,
        params: Params,
        lr: float = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum: float = 0,
        centered: bool = False,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        require(lr >= 0, f"Invalid learning rate: {lr}")
        require(eps >= 0, f"Invalid epsilon value: {eps}")
        require(momentum >= 0, f"Invalid momentum value: {momentum}")
        require(weight_decay >= 0, f"Invalid weight_decay value: {weight_decay}")
        require(alpha >= 0, f"Invalid alpha value: {alpha}")
        defaults = {
            "lr": lr,
            "momentum": momentum,
            "alpha": alpha,
            "eps": eps,
            "centered": centered,
            "weight_decay": weight_decay,
            "capturable": capturable,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def _start(self, parameter: torch.Tensor, group: dict[str, Any]) -> None:
        state = self.state[parameter]
        state["step"] = torch.zeros((), dtype=torch.float32)
        state["square_avg"] = torch.zeros_like(parameter)
        if group["momentum"] > 0:
            state["momentum_buffer"] = torch.zeros_like(parameter)
        if group["centered"]:
            state["grad_avg"] = torch.zeros_like(parameter)

    def _update(
        self, parameter: torch.Tensor, gradient: torch.Tensor, group: dict[str, Any]
    ) -> None:
        state = self.state[parameter]
        lr, alpha, momentum = group["lr"], group["alpha"], group["momentum"]
        if group["maximize"]:
            gradient = -gradient
        state["step"].add_(1)
        if group["weight_decay"] != 0:
            gradient = gradient.add(parameter, alpha=group["weight_decay"])
        square = state["square_avg"]
        square.mul_(alpha).addcmul_(gradient, gradient, value=1 - alpha)
        if group["centered"]:
            average = state["grad_avg"]
            average.lerp_(gradient, 1 - alpha)
            divisor = square.addcmul(average, average, value=-1).sqrt_()
        else:
            divisor = square.sqrt()
        divisor.add_(group["eps"])
        if momentum > 0:
            velocity = state["momentum_buffer"]
            velocity.mul_(momentum).addcdiv_(gradient, divisor)
            parameter.add_(velocity, alpha=-lr)
        else:
            parameter.addcdiv_(gradient, divisor, value=-lr)
