"""`AdamW`: Adam with decoupled weight decay."""

from __future__ import annotations

from mindtorch_v2.optim.adam import Adam
from mindtorch_v2.optim.optimizer import Params


class AdamW(Adam):
    """Decays the parameters directly, and then updates them as Adam does.

    Args:
        params: The parameters, or groups of them.
        lr: The learning rate.
        betas: The decay rates of the two running averages.
        eps: A constant added to the divisor for numerical stability.
        weight_decay: The decoupled weight decay, scaled by `lr`.
        amsgrad: Whether to divide by the largest average so far.
        maximize: Whether to maximize the objective.
        foreach: Accepted, without effect: there is one implementation.
        capturable: Not supported.
        differentiable: Not supported.
        fused: Accepted, without effect: there is one implementation.
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
