"""The base of optimizers that update one parameter after the other.

Each update runs the same operators in the same order as torch on the CPU, so that profiles agree.
"""

from __future__ import annotations

from typing import Any

import mindtorch_v2 as torch
from mindtorch_v2.optim.optimizer import Closure, Optimizer, Params


class LoopOptimizer(Optimizer):
    """Iterates over the parameters that have a gradient, group by group.

    The options `foreach` and `fused` choose among torch's implementations of the same update; here
    there is only one.
    """

    def __init__(self, params: Params, defaults: dict[str, Any]) -> None:
        for option in ("capturable", "differentiable"):
            if defaults.get(option):
                raise NotImplementedError(f"{type(self).__name__} does not support {option}=True")
        super().__init__(params, defaults)

    def step(self, closure: Closure | None = None) -> Any:
        """Performs one optimization step.

        Args:
            closure: Recomputes the loss and its gradients, and returns the loss.

        Returns:
            The result of the closure, or `None`.
        """
        loss = self._evaluate(closure)
        with torch.no_grad():
            for group in self.param_groups:
                pairs = [(p, p.grad) for p in group["params"] if p.grad is not None]
                for parameter, _ in pairs:
                    if not self.state.get(parameter):
                        self._start(parameter, group)
                for parameter, gradient in pairs:
                    self._update(parameter, gradient, group)
        return loss

    def _start(self, parameter: torch.Tensor, group: dict[str, Any]) -> None:
        """Creates the state of a parameter before its first update."""

    def _update(
        self, parameter: torch.Tensor, gradient: torch.Tensor, group: dict[str, Any]
    ) -> None:
        """Updates one parameter."""
        raise NotImplementedError


def require(valid: bool, message: str) -> None:
    """Raises `ValueError` with `message` unless an option is valid."""
    if not valid:
        raise ValueError(message)


def require_betas(betas: tuple[float, float]) -> None:
    """Raises `ValueError` unless both betas are valid decay rates."""
    for index, beta in enumerate(betas):
        require(0 <= beta < 1, f"Invalid beta parameter at index {index}: {beta}")
