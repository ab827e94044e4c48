"""`ASGD`: gradient descent that also averages the parameters."""

from __future__ import annotations

from typing import Any

import mindtorch_v2 as torch
from mindtorch_v2.optim._loop import LoopOptimizer, require
from mindtorch_v2.optim.optimizer import Params


class ASGD(LoopOptimizer):
    """Moves parameters against their gradient with a decaying rate, and averages them.

    The average is `state[parameter]["ax"]`.

    Args:
        params: The parameters, or groups of them.
        lr: The initial learning rate.
        lambd: The decay of the parameters, which also shortens steps.
        alpha: The power with which the learning rate decays.
        t0: The step at which averaging starts.
        weight_decay: The coefficient of the L2 penalty.
        foreach: Accepted, without effect: there is one implementation.
        maximize: Whether to maximize the objective.
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
