"""`Adadelta`: steps scaled by running averages of squared steps and squared gradients."""

from __future__ import annotations

from typing import Any

import mindtorch_v2 as torch
from mindtorch_v2.optim._loop import LoopOptimizer, require
from mindtorch_v2.optim.optimizer import Params


class Adadelta(LoopOptimizer):
    """Scales the gradient by the ratio of two averages: of squared steps and of its square.

    Args:
        params: The parameters, or groups of them.
        lr: The learning rate, a factor of the step.
        rho: The decay rate of the two running averages.
        eps: A constant added to both averages for numerical stability.
        weight_decay: The coefficient of the L2 penalty.
        foreach: Accepted, without effect: there is one implementation.
        capturable: Not supported.
        maximize: Whether to maximize the objective.
        differentiable: Not supported.
    """

    def __init__(
        self,
        params: Params,
        lr: float = 1.0,
        rho: float = 0.9,
        eps: float = 1e-6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        capturable: bool = False,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        require(lr >= 0, f"Invalid learning rate: {lr}")
        require(0 <= rho <= 1, f"Invalid rho value: {rho}")
        require(eps >= 0, f"Invalid epsilon value: {eps}")
        require(weight_decay >= 0, f"Invalid weight_decay value: {weight_decay}")
        defaults = {
            "lr": lr,
            "rho": rho,
            "eps": eps,
            "weight_decay": weight_decay,
            "maximize": maximize,
            "capturable": capturable,
            "foreach": foreach,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def _start(self, parameter: torch.Tensor, group: dict[str, Any]) -> None:  # noqa: ARG002
        state = self.state[parameter]
        state["step"] = torch.zeros((), dtype=torch.float32)
        state["square_avg"] = torch.zeros_like(parameter)
        state["acc_delta"] = torch.zeros_like(parameter)

    def _update(
        self, parameter: torch.Tensor, gradient: torch.Tensor, group: dict[str, Any]
    ) -> None:
        state = self.state[parameter]
        rho, eps = group["rho"], group["eps"]
        state["step"].add_(1)
        if group["maximize"]:
            gradient = -gradient
        if group["weight_decay"] != 0:
            gradient = gradient.add(parameter, alpha=group["weight_decay"])
        square, moved = state["square_avg"], state["acc_delta"]
        square.mul_(rho).addcmul_(gradient, gradient, value=1 - rho)
        divisor = square.add(eps).sqrt_()
        move = moved.add(eps).sqrt_()
        move.div_(divisor).mul_(gradient)
        moved.mul_(rho).addcmul_(move, move, value=1 - rho)
        parameter.add_(move, alpha=-group["lr"])
