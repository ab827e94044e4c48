"""Custom functions with their own gradient."""

from __future__ import annotations

from typing import Any

from mindprof import _core
from mindprof._core import Tensor


class FunctionCtx:
    """The context that the forward and the backward of a function share.

    Attributes:
        needs_input_grad: Whether the gradient of each argument is needed.
    """

    needs_input_grad: tuple[bool, ...] = ()

    def __init__(self) -> None:
        self._saved: tuple[Tensor | None, ...] = ()
        self._versions: tuple[int, ...] = ()
        self._untracked: set[int] = set()

    def save_for_backward(self, *tensors: Tensor | None) -> None:
        """Saves tensors for the backward pass."""
        self._saved = tensors
        self._versions = tuple(-1 if t is None else t._version for t in tensors)

    @property
    def saved_tensors(self) -> tuple[Tensor | None, ...]:
        """The tensors that were saved for the backward pass.

        Raises:
            RuntimeError: If one of them was modified since.
        """
        for tensor, version in zip(self._saved, self._versions, strict=True):
            if tensor is not None and tensor._version != version:
                raise RuntimeError(
                    "one of the variables needed for gradient computation has been modified by an "
                    f"inplace operation: [{tuple(tensor.shape)}] is at version {tensor._version}; "
                    f"expected version {version} instead."
                )
        return self._saved

    def mark_non_differentiable(self, *tensors: Tensor) -> None:
        """Marks results as not differentiable."""
        self._untracked.update(id(tensor) for tensor in tensors)

    def mark_dirty(self, *tensors: Tensor) -> None:
        """Accepts arguments that were modified in place; it has no effect."""

    def set_materialize_grads(self, value: bool) -> None:
        """Accepts torch's setting, without effect: absent gradients are always `None`."""


class Function:
    """A differentiable function with static methods `forward` and `backward`.

    >>> import mindtorch_v2 as torch
    >>> class Double(torch.autograd.Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         return x * 2
    ...     @staticmethod
    ...     def backward(ctx, gradient):
    ...         return gradient * 2
    >>> x = torch.ones(2, requires_grad=True)
    >>> Double.apply(x).sum().backward()
    >>> x.grad
    tensor([2., 2.])
    """

    @staticmethod
    def forward(ctx: Any, *args: Any, **kwargs: Any) -> Any:
        """Computes the results; subclasses override it."""
        raise NotImplementedError(
            "You must implement the forward function for custom autograd.Function."
        )

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        """Computes the gradients of all arguments; subclasses override it."""
        raise NotImplementedError(
            "You must implement either the backward or vjp method for your custom "
            "autograd.Function to use it with backward mode AD."
        )

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        """Runs `forward` and attaches `backward` to its results."""
        context = FunctionCtx()
        node = _core.FunctionNode(args)
        context.needs_input_grad = node.needs_input_grad
        return _core.finish_function(
            node,
            cls.__name__,
            lambda: cls.forward(context, *args, **kwargs),
            lambda result: id(result) not in context._untracked,
            lambda *gradients: cls.backward(context, *gradients),
        )


__all__ = ["Function", "FunctionCtx"]
