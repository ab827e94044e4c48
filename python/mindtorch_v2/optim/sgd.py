"""`SGD`: stochastic gradient descent, with momentum."""

from __future__ import annotations

from typing import Any

import mindtorch_v2 as torch
from mindtorch_v2.optim._loop import LoopOptimizer, require
from mindtorch_v2.optim.optimizer import Params


class SGD(LoopOptimizer):
    """Moves parameters against their gradient.

    Args:
        params: The parameters, or groups of them.
        lr: The learning rate.
        momentum: The momentum factor.
        dampening: The fraction of the gradient that is left out of the momentum.
        weight_decay: The coefficient of the L2 penalty.
        nesterov: Whether to use Nesterov momentum.
        maximize: Whether to maximize the objective.
        foreach: Accepted, without effect: there is one implementation.
        differentiable: Not supported.
        fused: Accepted, without effect: there is one implementation.

    Example:
        >>> import mindtorch_v2 as torch
        >>> weight = torch.nn.Parameter(torch.ones(2))
        >>> optimizer = SGD([weight], lr=0.5)
        >>> weight.sum().backward()
        >>> optimizer.step()
        >>> weight.tolist()
        [0.5, 0.5]
    """

    def __init__(
        self,
        params: Params,
        lr: float = 1e-3,
        momentum: float = 0,
        dampening: float = 0,
        weight_decay: float = 0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        require(lr >= 0, f"Invalid learning rate: {lr}")
        require(momentum >= 0, f"Invalid momentum value: {momentum}")
        require(weight_decay >= 0, f"Invalid weight_decay value: {weight_decay}")
        require(
            not nesterov or (momentum > 0 and dampening == 0),
            "Nesterov momentum requires a momentum and zero dampening",
        )
        defaults = {
            "lr": lr,
            "momentum": momentum,
            "dampening": dampening,
            "weight_decay": weight_decay,
            "nesterov": nesterov,
            "maximize": maximize,
            "foreach": foreach,
            "differentiable": differentiable,
            "fused": fused,
        }
        super().__init__(params, defaults)

    def _update(
        self, parameter: torch.Tensor, gradient: torch.Tensor, group: dict[str, Any]
    ) -> None:
        direction = -gradient if group["maximize"] else gradient
        if group["weight_decay"] != 0:
            direction = direction.add(parameter, alpha=group["weight_decay"])
        momentum = group["momentum"]
        if momentum != 0:
            velocity = self.state[parameter].get("momentum_buffer")
            if velocity is None:
                velocity = direction.detach().clone()
                self.state[parameter]["momentum_buffer"] = velocity
            else:
                velocity.mul_(momentum).add_(direction, alpha=1 - group["dampening"])
            ahead = group["nesterov"]
            direction = direction.add(velocity, alpha=momentum) if ahead else velocity
        parameter.add_(direction, alpha=-group["lr"])
