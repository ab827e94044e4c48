"""`Adafactor`: Adam-like updates with a factored average of squared gradients."""

from __future__ import annotations

import math
from typing import Any

import mindtorch_v2 as torch
from mindtorch_v2.optim._loop import LoopOptimizer, require
from mindtorch_v2.optim._norm import norm
from mindtorch_v2.optim.optimizer import Params

# The machine epsilon of a dtype by its size in bytes: the default first epsilon.
SPACING = {2: 2.0**-7, 4: 2.0**-23, 8: 2.0**-52}


class Adafactor(LoopOptimizer):
    """Divides the gradient by the root of its average square, using little memory.

    For a parameter with two or more dimensions, only the averages over rows and over columns are
    stored; their product approximates the whole. The step size is relative to the parameter.

    Args:
        params: The parameters, or groups of them.
        lr: The largest step, relative to the size of the parameter.
        beta2_decay: The power of the step number with which the averages move.
        eps: The smallest average, by default the machine epsilon of the dtype, and the smallest
            size of a parameter.
        d: The size above which an update is scaled down.
        weight_decay: The decoupled weight decay, scaled by `lr`.
        foreach: Accepted, without effect: there is one implementation.
        maximize: Whether to maximize the objective.
    """

    def __init__(
        self,
        params: Params,
        lr: float = 1e-2,
        beta2_decay: float = -0.8,
        eps: tuple[float | None, float] = (None, 1e-3),
        d: float = 1.0,
        weight_decay: float = 0.0,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
    ) -> None:
        require(lr >= 0, f"Learning rate should be >= 0 but is: {lr}")
        require(beta2_decay <= 0, f"beta2_decay should be <= 0 but is: {beta2_decay}")
        require(eps[0] is None or eps[0] >= 0, f"epsilon1 should be >= 0 but is: {eps[0]}")
        require(eps[1] >= 0, f"epsilon2 should be >= 0 but is: {eps[1]}")
        require(d >= 1, f"Clipping threshold d should be >= 1 but is: {d}")
        require(weight_decay >= 0, f"weight_decay should be >= 0 but is: {weight_decay}")
        defaults = {
            "lr": lr,
            "beta2_decay": beta2_decay,
            "eps": eps,
            "d": d,
            "weight_decay": weight_decay,
            "foreach": foreach,
            "maximize": maximize,
        }
        super().__init__(params, defaults)

    def _start(self, parameter: torch.Tensor, group: dict[str, Any]) -> None:  # noqa: ARG002
        state = self.state[parameter]
        state["step"] = torch.tensor(0.0, dtype=torch.float32)
        if parameter.dim() > 1:
            *outer, rows, columns = parameter.shape
            state["row_var"] = parameter.new_zeros([*outer, rows, 1])
            state["col_var"] = parameter.new_zeros([*outer, 1, columns])
        else:
            state["variance"] = torch.zeros_like(parameter)

    def _update(
        self, parameter: torch.Tensor, gradient: torch.Tensor, group: dict[str, Any]
    ) -> None:
        state = self.state[parameter]
        least_average, least_size = group["eps"]
        if least_average is None:
            least_average = SPACING[parameter.element_size()]
        if group["maximize"]:
            gradient = -gradient
        state["step"].add_(1)
        count = state["step"].item()
        part = min(group["lr"], 1 / math.sqrt(count))
        length = max(least_size, root_mean_square(parameter)) * part
        if group["weight_decay"] != 0:
            parameter.mul_(1 - group["lr"] * group["weight_decay"])

        moved = count ** group["beta2_decay"]
        if gradient.dim() > 1:
            square = product_of_averages(state, gradient, moved, least_average)
        else:
            square = state["variance"].lerp_(gradient * gradient, moved).clone()
        update = square.clamp_(min=least_average**2).rsqrt_().mul_(gradient)
        excess = max(1.0, root_mean_square(update) / group["d"])
        parameter.add_(update, alpha=-length / excess)


def root_mean_square(tensor: torch.Tensor) -> float:
    """Returns the root mean square of the elements."""
    return float(norm(tensor).item()) / math.sqrt(tensor.numel())


def product_of_averages(
    state: dict[str, Any], gradient: torch.Tensor, moved: float, least: float
) -> torch.Tensor:
    """Updates the averages over rows and columns, and returns their product."""
    for name, dim in (("row_var", -1), ("col_var", -2)):
        squares = norm(gradient, dim).square().div_(gradient.shape[dim])
        state[name].lerp_(squares, moved)
    rows: torch.Tensor = state["row_var"]
    product: torch.Tensor = rows @ state["col_var"]
    return product.div_(rows.mean(dim=-2, keepdim=True).clamp_(min=least))
