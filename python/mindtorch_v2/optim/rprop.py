"""`Rprop`: steps that depend on the signs of gradients, not on their magnitudes."""

from __future__ import annotations

from typing import Any

import mindtorch_v2 as torch
from mindtorch_v2.optim._loop import LoopOptimizer, require
from mindtorch_v2.optim.optimizer import Params


class Rprop(LoopOptimizer):
    """Lengthens a step while its gradient keeps its sign, and shortens it on a change.

    Args:
        params: The parameters, or groups of them.
        lr: The initial step size.
        etas: The factors that shorten and lengthen a step.
        step_sizes: The shortest and the longest step.
        capturable: Not supported.
        foreach: Accepted, without effect: there is one implementation.
        maximize: Whether to maximize the objective.
        differentiable: Not supported.
    """

    def __init__(
        self,
        params: Params,
        lr: float = 1e-2,
        etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-6, 50),
        *,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        require(lr >= 0, f"Invalid learning rate: {lr}")
        require(0 < etas[0] < 1 < etas[1], f"Invalid eta values: {etas[0]}, {etas[1]}")
        defaults = {
            "lr": lr,
            "etas": etas,
            "step_sizes": step_sizes,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "capturable": capturable,
        }
        super().__init__(params, defaults)

    def _start(self, parameter: torch.Tensor, group: dict[str, Any]) -> None:
        state = self.state[parameter]
        state["step"] = torch.zeros((), dtype=torch.float32)
        state["prev"] = torch.zeros_like(parameter)
        state["step_size"] = torch.full_like(parameter, group["lr"])

    def _update(
        self, parameter: torch.Tensor, gradient: torch.Tensor, group: dict[str, Any]
    ) -> None:
        state = self.state[parameter]
        shorter, longer = group["etas"]
        if group["maximize"]:
            gradient = -gradient
        state["step"].add_(1)
        factor = gradient.mul(state["prev"]).sign()
        factor[factor.gt(0)] = longer
        factor[factor.lt(0)] = shorter
        factor[factor.eq(0)] = 1
        length = state["step_size"]
        length.mul_(factor).clamp_(*group["step_sizes"])

        # If the sign changed, the parameter stays for this step.
        gradient = gradient.clone()
        gradient[factor.eq(shorter)] = 0
        parameter.addcmul_(gradient.sign(), length, value=-1)
        state["prev"].copy_(gradient)
