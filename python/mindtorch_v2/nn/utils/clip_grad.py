"""Clips gradients by their total norm or element by element."""

from __future__ import annotations

import math
from collections.abc import Iterable

import mindtorch_v2 as torch


def get_total_norm(
    tensors: torch.Tensor | Iterable[torch.Tensor],
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> torch.Tensor:
    """Returns the norm of all tensors together.

    Args:
        tensors: The tensors.
        norm_type: The order of the norm; infinity means the largest absolute value.
        error_if_nonfinite: Whether to raise an exception if the norm is not finite.
        foreach: Accepted, without effect on the CPU.
    """
    del foreach
    given = [tensors] if isinstance(tensors, torch.Tensor) else list(tensors)
    power = float(norm_type)
    if not given:
        return torch.tensor(0.0)
    norms = [_norm(tensor, power) for tensor in given]
    total = _norm(torch.stack(norms), power)
    if error_if_nonfinite and not math.isfinite(total.item()):
        raise RuntimeError(
            f"The total norm of order {power} for gradients from `parameters` is non-finite, so "
            "it cannot be clipped. To disable this error and scale the gradients by the "
            "non-finite norm anyway, set `error_if_nonfinite=False`"
        )
    return total


def clip_grads_with_norm_(
    parameters: torch.Tensor | Iterable[torch.Tensor],
    max_norm: float,
    total_norm: torch.Tensor,
    foreach: bool | None = None,
) -> None:
    """Scales gradients down by a known total norm."""
    del foreach
    factor = (float(max_norm) / (total_norm + 1e-6)).clamp(max=1.0)
    for gradient in _gradients(parameters):
        gradient.mul_(factor)


def clip_grad_norm_(
    parameters: torch.Tensor | Iterable[torch.Tensor],
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> torch.Tensor:
    """Scales gradients so that their total norm is at most `max_norm`; returns the norm.

    >>> import mindtorch_v2 as torch
    >>> weight = torch.ones(4, requires_grad=True)
    >>> weight.sum().backward()
    >>> clip_grad_norm_([weight], 1.0)
    tensor(2.)
    >>> weight.grad
    tensor([0.5000, 0.5000, 0.5000, 0.5000])
    """
    given = [parameters] if isinstance(parameters, torch.Tensor) else list(parameters)
    with torch.no_grad():
        total = get_total_norm(_gradients(given), norm_type, error_if_nonfinite, foreach)
        clip_grads_with_norm_(given, max_norm, total, foreach)
    return total


def clip_grad_value_(
    parameters: torch.Tensor | Iterable[torch.Tensor],
    clip_value: float,
    foreach: bool | None = None,
) -> None:
    """Clips each element of the gradients to at most `clip_value` in absolute value."""
    del foreach
    limit = float(clip_value)
    with torch.no_grad():
        for gradient in _gradients(parameters):
            gradient.clamp_(min=-limit, max=limit)


def _gradients(parameters: torch.Tensor | Iterable[torch.Tensor]) -> list[torch.Tensor]:
    given = [parameters] if isinstance(parameters, torch.Tensor) else parameters
    return [parameter.grad for parameter in given if parameter.grad is not None]


def _norm(tensor: torch.Tensor, power: float) -> torch.Tensor:
    return tensor.abs().max() if power == math.inf else tensor.norm(power)
