"""`backward` and `grad` for one tensor or several."""

from __future__ import annotations

from collections.abc import Sequence

from mindprof import _core
from mindprof._core import Tensor

_Tensors = Tensor | Sequence[Tensor]
_Gradients = Tensor | Sequence[Tensor | None] | None


def backward(
    tensors: _Tensors,
    grad_tensors: _Gradients = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
) -> None:
    """Accumulates the gradients of tensors into all leaves that they depend on.

    Args:
        tensors: The tensors to differentiate.
        grad_tensors: The gradients of the tensors; optional for tensors with one element.
        retain_graph: Whether the graph can be walked again.
        create_graph: Not supported: there are only first derivatives.

    Raises:
        RuntimeError: If a tensor does not require gradients, or its gradient is missing.
    """
    results = _listed(tensors)
    _core.backward(results, _gradients(grad_tensors, len(results)), retain_graph, create_graph)


def grad(
    outputs: _Tensors,
    inputs: _Tensors,
    grad_outputs: _Gradients = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    allow_unused: bool | None = None,
) -> tuple[Tensor | None, ...]:
    """Returns the gradients of outputs with respect to inputs, without touching the leaves.

    Args:
        outputs: The tensors to differentiate.
        inputs: The tensors to differentiate with respect to.
        grad_outputs: The gradients of the outputs; optional for tensors with one element.
        retain_graph: Whether the graph can be walked again.
        create_graph: Not supported: there are only first derivatives.
        allow_unused: Whether an input may be unused; its gradient is then `None`.

    Raises:
        RuntimeError: If a tensor does not require gradients, an input is unused, or a gradient is
            missing.

    >>> import mindtorch_v2 as torch
    >>> x = torch.tensor(3.0, requires_grad=True)
    >>> torch.autograd.grad(x * x, x)
    (tensor(6.),)
    """
    results, wanted = _listed(outputs), _listed(inputs)
    gradients = _gradients(grad_outputs, len(results))
    found = _core.grad(results, wanted, gradients, retain_graph, create_graph, bool(allow_unused))
    return tuple(found)


def _listed(tensors: _Tensors) -> list[Tensor]:
    return [tensors] if isinstance(tensors, Tensor) else list(tensors)


def _gradients(gradients: _Gradients, count: int) -> list[Tensor | None]:
    if gradients is None:
        return [None] * count
    if isinstance(gradients, Tensor):
        return [gradients]
    if len(gradients) != count:
        raise RuntimeError(f"got {count} tensors and {len(gradients)} gradients")
    return list(gradients)


__all__ = ["backward", "grad"]
