"""`NAdam`: Adam with Nesterov momentum."""

from __future__ import annotations

from typing import Any

import mindtorch_v2 as torch
from mindtorch_v2.optim._loop import LoopOptimizer, require, require_betas
from mindtorch_v2.optim.optimizer import Params


class NAdam(LoopOptimizer):
    """Moves by the gradient and by the average gradient of the next step.

    Args:
        params: The parameters, or groups of them.
        lr: The learning rate.
        betas: The decay rates of the two running averages.
        eps: A constant added to the divisor for numerical stability.
        weight_decay: The coefficient of the L2 penalty.
        momentum_decay: How fast the momentum approaches the first beta.
        decoupled_weight_decay: Whether to decay the parameter directly, as in `AdamW`.
        foreach: Accepted, without effect: there is one implementation.
        maximize: Whether to maximize the objective.
        capturable: Not supported.
        differentiable: Not supported.
    """

    def __init__(
        self,
        params: Params,
        lr: float = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum_decay: float = 4e-3,
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
        require(momentum_decay >= 0, f"Invalid momentum_decay value: {momentum_decay}")
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "momentum_decay": momentum_decay,
            "decoupled_weight_decay": decoupled_weight_decay,
            "maximize": maximize,
            "foreach": foreach,
            "capturable": capturable,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def _start(self, parameter: torch.Tensor, group: dict[str, Any]) -> None:  # noqa: ARG002
        state = self.state[parameter]
        state["step"] = torch.tensor(0.0, dtype=torch.float32)
        state["mu_product"] = torch.tensor(1.0, dtype=torch.float32)
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
        now, ahead = (_momentum(beta1, step + k, group["momentum_decay"]) for k in (0, 1))
        state["mu_product"].mul_(now)
        average, square = state["exp_avg"], state["exp_avg_sq"]
        average.lerp_(gradient, 1 - beta1)
        square.mul_(beta2).addcmul_(gradient, gradient, value=1 - beta2)
        divisor = square.div(1 - beta2**step).sqrt()

        # Corrects the bias of this step's average and of the next one; the average starts at zero.
        missing_next = state["mu_product"].item() * ahead
        divisor.add_(group["eps"])
        missing = state["mu_product"].item()
        parameter.addcdiv_(gradient, divisor, value=-lr * (1 - now) / (1 - missing))
        parameter.addcdiv_(average, divisor, value=-lr * ahead / (1 - missing_next))


def _momentum(beta1: float, step: float, decay: float) -> float:
    """Returns the momentum at a step."""
    return float(beta1 * (1 - 0.5 * 0.96 ** (step * decay)))
