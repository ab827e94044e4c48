"""`SparseAdam`: Adam for sparse gradients, which this runtime does not produce."""

from __future__ import annotations

from typing import Any

from mindtorch_v2.optim._loop import require, require_betas
from mindtorch_v2.optim.optimizer import Closure, Optimizer, Params


class SparseAdam(Optimizer):
    """Checks its arguments as torch does; a step rejects dense gradients.

    Args:
        params: The dense parameters, or groups of them.
        lr: The learning rate.
        betas: The decay rates of the two running averages.
        eps: A constant added to the divisor for numerical stability.
        maximize: Whether to maximize the objective.
    """

    def __init__(
        self,
        params: Params,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        maximize: bool = False,
    ) -> None:
        require(lr > 0, f"Invalid learning rate: {lr}")
        require(eps > 0, f"Invalid epsilon value: {eps}")
        require_betas(betas)
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "maximize": maximize})

    def step(self, closure: Closure | None = None) -> Any:
        """Evaluates the closure; there is nothing to update.

        Raises:
            RuntimeError: If a parameter has a gradient, because gradients of this runtime are
                dense.
        """
        loss = self._evaluate(closure)
        for group in self.param_groups:
            if any(parameter.grad is not None for parameter in group["params"]):
                raise RuntimeError(
                    "SparseAdam does not support dense gradients, please consider Adam instead"
                )
        return loss
