"""`Parameter`: a tensor that a module owns and an optimizer trains."""

from __future__ import annotations

from typing import Any

import mindtorch_v2 as torch


class Parameter(torch.Tensor):
    """A tensor that becomes a parameter of the module that it is assigned to.

    It shares memory with `data` and, unlike other tensors, requires gradients by default.

    Args:
        data: The values; an empty tensor by default.
        requires_grad: Whether `backward` computes a gradient.

    Example:
        >>> import mindtorch_v2 as torch
        >>> Parameter(torch.ones(2))
        Parameter containing:
        tensor([1., 1.], requires_grad=True)
    """

    def __new__(cls, data: torch.Tensor | None = None, requires_grad: bool = True) -> Parameter:
        """Creates a leaf of the graph over the memory of `data`."""
        values = torch.empty(0) if data is None else data.detach()
        parameter: Parameter = torch.Tensor._make_subclass(cls, values, requires_grad)
        return parameter

    def __repr__(self) -> str:
        return "Parameter containing:\n" + super().__repr__()

    def __deepcopy__(self, memo: dict[int, Any]) -> Parameter:
        if id(self) not in memo:
            memo[id(self)] = type(self)(self.detach().clone(), self.requires_grad)
        copied: Parameter = memo[id(self)]
        return copied
