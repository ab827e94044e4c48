"""`AdamW`: Adam with a weight decay that is no part of the gradient."""

from __future__ import annotations

from mindtorch_v2.optim.adam import Adam
from mindtorch_v2.optim.optimizer import Params


class AdamW(Adam):
    """Shrinks parameters by a part of themselves, and then does what Adam does.

    Args:
        params: Parameters, or groups of them.
        lr: How far a step goes.
        betas: The parts of the two averages that are kept at each step.
        eps: What is added to the divisor.
        weight_decay: By which part parameters shrink, times `lr`.
        amsgrad: Whether to divide by the largest average seen so far.
        maximize: Whether to move with the gradient.
        foreach: Accepted; there is one implementation.
        capturable: Not supported.
        differentiable: Not supported.
        fused: Accepted; there is one implementation.
    """

    def __init__(
        self,
        params: Params,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        super().__init__(
            params,
            lr,
            betas,
            eps,
            weight_decay,
            amsgrad,
            foreach=foreach,
            maximize=maximize,
            capturable=capturable,
            differentiable=differentiable,
            fused=fused,
            decoupled_weight_decay=True,
        )
