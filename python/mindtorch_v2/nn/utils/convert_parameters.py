"""Conversion of all parameters to one vector, and back."""

from __future__ import annotations

from collections.abc import Iterable

import mindtorch_v2 as torch


def parameters_to_vector(parameters: Iterable[torch.Tensor]) -> torch.Tensor:
    """Concatenates the elements of all parameters into one vector.

    >>> import mindtorch_v2 as torch
    >>> parameters_to_vector([torch.ones(1, 2), torch.zeros(1)])
    tensor([1., 1., 0.])
    """
    return torch.cat([parameter.view(-1) for parameter in parameters])


def vector_to_parameters(vec: torch.Tensor, parameters: Iterable[torch.Tensor]) -> None:
    """Copies consecutive slices of a vector into the parameters."""
    if not isinstance(vec, torch.Tensor):
        raise TypeError(f"expected torch.Tensor, but got: {type(vec)}")
    begin = 0
    for parameter in parameters:
        end = begin + parameter.numel()
        parameter.data = vec.detach()[begin:end].view_as(parameter)
        begin = end
