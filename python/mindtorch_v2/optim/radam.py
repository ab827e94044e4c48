"""`RAdam`: Adam that adapts its step only after enough gradients were seen."""

from __future__ import annotations

from typing import Any

import mindtorch_v2 as torch
from mindtorch_v2.optim._loop import LoopOptimizer, require, require_betas
from mindtorch_v2.optim.optimizer import Params

# The number of gradients from which the average square is reliable enough to divide by.
_ENOUGH = 5.0


class RAdam(LoopOptimizer):
    """Moves by the average gradient, adapted once the average square is reliable.

    Args:
        params: The parameters, or groups of them.
        lr: The learning rate.
        betas: The decay rates of the two running averages.
        eps: A constant added to the divisor for numerical stability.
        weight_decay: The coefficient of the L2 penalty.
        decoupled_weight_decay: Whether to decay the parameter directly, as in `AdamW`.
        foreach: Accepted, without effect: there is one implementation.
        maximize: Whether to maximize the objective.
        capturable: Not supported.
        differentiable: Not supported.
    """

    def __init__(
        self,
        params: Params,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
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
            "maximize": maximize,
            "foreach": foreach,
            "capturable": capturable,
            "decoupled_weight_decay": decoupled_weight_decay,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def _start(self, parameter: torch.Tensor, group: dict[str, Any]) -> None:  # noqa: ARG002
        state = self.state[parameter]
        state["step"] = torch.tensor(0.0, dtype=torch.float32)
        state["exp_avg"] = torch.zeros_like(parameter)
        state["exp_avg_sq"] = torch.zeros_like(parameter)

    def _update(
        self, parameter: torch.Tensor, gradient: torch.Tensor, group: dict[str, Any]
    ) -> None:
        state = self.state[parameter]
        lr, (beta1, beta2), decay = group["lr"], group["betas"], group["weight_decay"]
        if group["maximize"]:
            gradient = -gradient
        state["step"].add_(1)
        step = state["step"].item()
        if decay != 0 and group["decoupled_weight_decay"]:
            parameter.mul_(1 - lr * decay)
        elif decay != 0:
            gradient = gradient.add(parameter, alpha=decay)
        average, square = state["exp_avg"], state["exp_avg_sq"]
        average.lerp_(gradient, 1 - beta1)
        square.mul_(beta2).addcmul_(gradient, gradient, value=1 - beta2)

        # Corrects the bias of both averages, which start at zero.
        square_part = 1 - beta2**step
        move = average / (1 - beta1**step) * lr
        most = 2 / (1 - beta2) - 1
        seen = most - 2 * step * beta2**step / square_part
        if seen > _ENOUGH:
            divisor = square.sqrt().add_(group["eps"])
            move = move * (square_part**0.5 / divisor) * _trust(seen, most)
        parameter.add_(move, alpha=-1.0)


def _trust(seen: float, most: float) -> float:
    """Returns the factor that corrects the variance of an average over `seen` gradients."""
    return float((_spread(seen) / _spread(most)) ** 0.5)


def _spread(gradients: float) -> float:
    return (gradients - 4) * (gradients - 2) / gradients
