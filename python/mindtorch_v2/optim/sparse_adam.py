"""`SparseAdam`: Adam for gradients that hold a few rows, which this runtime does not make."""

from __future__ import annotations

from typing import Any

from mindtorch_v2.optim._loop import require, require_betas
from mindtorch_v2.optim.optimizer import Closure, Optimizer, Params


class SparseAdam(Optimizer):
    """Checks its arguments as torch does, and says at a step what it would need.

    Args:
        params: Parameters, or groups of them; dense ones.
        lr: How far a step goes.
        betas: The parts of the two averages that are kept at each step.
        eps: What is added to the divisor.
        maximize: Whether to move with the gradient.
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
        """Evaluates the closure; there is nothing it could update.

        Raises:
            RuntimeError: A parameter has a gradient: gradients of this runtime are dense.
        """
        loss = self._evaluate(closure)
        for group in self.param_groups:
            if any(parameter.grad is not None for parameter in group["params"]):
                raise RuntimeError(
                    "SparseAdam does not support dense gradients, please consider Adam instead"
                )
        return loss
