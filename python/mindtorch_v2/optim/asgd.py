"""`ASGD`: gradient descent that also keeps the average of the parameters."""

from __future__ import annotations

from typing import Any

import mindtorch_v2 as torch
from mindtorch_v2.optim._loop import LoopOptimizer, require
from mindtorch_v2.optim.optimizer import Params


class ASGD(LoopOptimizer):
    """Moves parameters against their gradient, ever less far, and averages where they were.

    The average is `state[parameter]["ax"]`.

    Args:
        params: Parameters, or groups of them.
        lr: How far a step goes at first.
        lambd: By which part parameters shrink, and how fast steps shorten.
        alpha: The power by which steps shorten with their number.
        t0: The step that the average begins at.
        weight_decay: The part of the parameter that is added to its gradient.
        foreach: Accepted; there is one implementation.
        maximize: Whether to move with the gradient.
        differentiable: Not supported.
        capturable: Not supported.
    """

    def __init__(
        self,
        params: Params,
        lr: float = 1e-2,
        lambd: float = 1e-4,
        alpha: float = 0.75,
        t0: float = 1e6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        require(lr >= 0, f"Invalid learning rate: {lr}")
        require(lambd >= 0, f"Invalid lambd value: {lambd}")
        require(alpha >= 0, f"Invalid alpha value: {alpha}")
        require(weight_decay >= 0, f"Invalid weight_decay value: {weight_decay}")
        defaults = {
            "lr": lr,
            "lambd": lambd,
            "alpha": alpha,
            "t0": t0,
            "weight_decay": weight_decay,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "capturable": capturable,
        }
        super().__init__(params, defaults)

    def _start(self, parameter: torch.Tensor, group: dict[str, Any]) -> None:
        state = self.state[parameter]
        state["step"] = torch.zeros((), dtype=torch.float32)
        state["eta"] = torch.as_tensor(group["lr"], dtype=torch.float32).clone().detach()
        state["mu"] = torch.ones((), dtype=torch.float32)
        state["ax"] = torch.zeros_like(parameter)

    def _update(
        self, parameter: torch.Tensor, gradient: torch.Tensor, group: dict[str, Any]
    ) -> None:
        state = self.state[parameter]
        lr, lambd = group["lr"], group["lambd"]
        if group["maximize"]:
            gradient = -gradient
        state["step"].add_(1)
        if group["weight_decay"] != 0:
            gradient = gradient.add(parameter, alpha=group["weight_decay"])
        eta = state["eta"].item()
        parameter.mul_(1 - lambd * eta)
        parameter.add_(gradient, alpha=-eta)

        average = state["ax"]
        if state["mu"].item() != 1:
            average.add_(parameter.sub(average).mul_(state["mu"]))
        else:
            average.copy_(parameter)
        step = state["step"].item()
        state["eta"].copy_(torch.as_tensor(lr / (1 + lambd * lr * step) ** group["alpha"]))
        state["mu"].copy_(torch.as_tensor(1 / max(1, step - group["t0"])))
