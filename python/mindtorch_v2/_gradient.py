"""How `zero_grad` of modules and optimizers clears a gradient."""

from __future__ import annotations

import mindtorch_v2 as torch


def clear_gradient(parameter: torch.Tensor, set_to_none: bool) -> None:
    """Sets a gradient to `None`, or detaches it from the graph and fills it with zeros."""
    gradient = parameter.grad
    if gradient is None:
        return
    if set_to_none:
        parameter.grad = None
        return
    if gradient.grad_fn is not None:
        gradient.detach_()
    else:
        gradient.requires_grad_(False)
    gradient.zero_()
