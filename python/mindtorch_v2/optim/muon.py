"""`Muon`: momentum with orthogonalized updates, for matrices."""

from __future__ import annotations

import math
from typing import Any

import mindtorch_v2 as torch
from mindtorch_v2.optim._loop import LoopOptimizer, require
from mindtorch_v2.optim._norm import norm
from mindtorch_v2.optim.optimizer import Params

ADJUSTMENTS = (None, "original", "match_rms_adamw", "spectral_unclamped")
MOST_ROUNDS = 99


class Muon(LoopOptimizer):
    """Moves matrices by their average gradient, brought close to an orthogonal matrix.

    Args:
        params: Parameters with two dimensions, or groups of them.
        lr: The learning rate.
        weight_decay: The decoupled weight decay, scaled by `lr`.
        momentum: The decay rate of the average gradient.
        nesterov: Whether to use Nesterov momentum.
        ns_coefficients: The coefficients of the first, third and fifth power in each iteration.
        eps: The smallest norm by which a gradient is divided.
        ns_steps: The number of iterations of the orthogonalization.
        adjust_lr_fn: How the step depends on the shape: `"original"` or `None`, `"match_rms_adamw"`
            or `"spectral_unclamped"`.
    """

    def __init__(
        self,
        params: Params,
        lr: float = 1e-3,
        weight_decay: float = 0.1,
        momentum: float = 0.95,
        nesterov: bool = True,
        ns_coefficients: tuple[float, float, float] = (3.4445, -4.775, 2.0315),
        eps: float = 1e-7,
        ns_steps: int = 5,
        adjust_lr_fn: str | None = None,
    ) -> None:
        require(lr >= 0, f"Learning rate should be >= 0 but is: {lr}")
        require(momentum >= 0, f"momentum should be >= 0 but is: {momentum}")
        require(weight_decay >= 0, f"weight decay should be >= 0 but is: {weight_decay}")
        require(
            adjust_lr_fn in ADJUSTMENTS,
            f"Adjust learning rate function {adjust_lr_fn} is not supported",
        )
        defaults = {
            "lr": lr,
            "weight_decay": weight_decay,
            "momentum": momentum,
            "nesterov": nesterov,
            "ns_coefficients": ns_coefficients,
            "eps": eps,
            "ns_steps": ns_steps,
            "adjust_lr_fn": adjust_lr_fn,
        }
        super().__init__(params, defaults)
        for group in self.param_groups:
            for parameter in group["params"]:
                require(
                    parameter.dim() == 2,
                    "Muon only supports 2D parameters whereas we found a parameter with size: "
                    f"{parameter.shape}",
                )

    def _start(self, parameter: torch.Tensor, group: dict[str, Any]) -> None:  # noqa: ARG002
        self.state[parameter]["momentum_buffer"] = torch.zeros_like(parameter)

    def _update(
        self, parameter: torch.Tensor, gradient: torch.Tensor, group: dict[str, Any]
    ) -> None:
        require(gradient.dim() == 2, "Param gradient must be a 2D matrix")
        lr, momentum = group["lr"], group["momentum"]
        average = self.state[parameter]["momentum_buffer"].lerp_(gradient, 1 - momentum)
        direction = gradient.clone().lerp_(average, momentum) if group["nesterov"] else average
        update = near_orthogonal(
            direction, group["ns_coefficients"], group["ns_steps"], group["eps"]
        )
        parameter.mul_(1 - lr * group["weight_decay"])
        parameter.add_(update, alpha=-lr * shape_factor(group["adjust_lr_fn"], *parameter.shape))


def shape_factor(adjustment: str | None, rows: int, columns: int) -> float:
    """Returns the factor of the step that depends on the shape of the matrix."""
    if adjustment == "match_rms_adamw":
        return 0.2 * math.sqrt(max(rows, columns))
    ratio = rows / columns
    return math.sqrt(ratio if adjustment == "spectral_unclamped" else max(1.0, ratio))


def near_orthogonal(
    matrix: torch.Tensor, coefficients: tuple[float, float, float], rounds: int, eps: float
) -> torch.Tensor:
    """Returns a matrix with the same directions and singular values of about 1, as bfloat16.

    Each Newton-Schulz iteration maps every singular value `s` to `a s + b s^3 + c s^5`.
    """
    require(
        rounds <= MOST_ROUNDS, "Number of steps must be less than 100 for computational efficiency"
    )
    require(len(coefficients) == 3, "Coefficients must be a tuple of exactly 3 values")
    first, third, fifth = coefficients
    # The products below have the size of the rows, so these should be the shorter side.
    tall = matrix.shape[0] > matrix.shape[1]
    found = matrix.to(torch.bfloat16, copy=True)
    found = found.T if tall else found
    found.div_(norm(found).clamp(min=eps))
    for _ in range(rounds):
        square = found @ found.T
        powers = rounded_sum(square, square, square, third, fifth)
        found = rounded_sum(found, powers, found, first, 1.0)
    return found.T if tall else found


def rounded_sum(
    base: torch.Tensor, left: torch.Tensor, right: torch.Tensor, beta: float, alpha: float
) -> torch.Tensor:
    """Returns `beta * base + alpha * (left @ right)` in bfloat16, rounded once at the end."""
    product = left.float() @ right.float()
    return product.mul_(alpha).add_(base.float(), alpha=beta).to(torch.bfloat16)
