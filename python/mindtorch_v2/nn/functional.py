"""The functions behind layers and losses."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

from mindprof import _core
from mindprof._core import (
    Tensor,
    batch_norm,
    broadcast_tensors,
    conv2d,
    cross_entropy,
    dtype,
    layer_norm,
    linear,
    nll_loss,
    scaled_dot_product_attention,
)

_Pair = int | Sequence[int]

gelu = _core.gelu
sigmoid = Tensor.sigmoid
tanh = Tensor.tanh


def relu(input: Tensor, inplace: bool = False) -> Tensor:
    """Returns the elements with negative ones set to zero."""
    return input.relu_() if inplace else input.relu()


def softmax(
    input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: dtype | None = None
) -> Tensor:
    """Turns the elements along a dimension into probabilities.

    >>> import mindtorch_v2 as torch
    >>> softmax(torch.zeros(4), dim=0)
    tensor([0.2500, 0.2500, 0.2500, 0.2500])
    """
    return input.softmax(_dimension("softmax", input, dim, _stacklevel), dtype)


def log_softmax(
    input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: dtype | None = None
) -> Tensor:
    """Turns the elements along a dimension into logarithms of probabilities."""
    return input.log_softmax(_dimension("log_softmax", input, dim, _stacklevel), dtype)


def _dimension(name: str, input: Tensor, dim: int | None, stacklevel: int) -> int:
    if dim is not None:
        return dim
    warnings.warn(
        f"Implicit dimension choice for {name} has been deprecated. "
        "Change the call to include dim=X as an argument.",
        stacklevel=stacklevel,
    )
    return 0 if input.dim() in (0, 1, 3) else 1


def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Sets elements to zero at random and scales the others up, in training only."""
    result = _core.dropout(input, p, training)
    return input.copy_(result) if inplace else result


def embedding(
    input: Tensor,
    weight: Tensor,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Tensor:
    """Returns rows of a table.

    Args:
        input: The numbers of the rows.
        weight: The table.
        padding_idx: The row that gets no gradient.
        max_norm: Not supported.
        norm_type: Has no meaning without `max_norm`.
        scale_grad_by_freq: Not supported.
        sparse: Not supported.

    Raises:
        NotImplementedError: An option that is not supported was given.
    """
    if max_norm is not None or scale_grad_by_freq or sparse:
        raise NotImplementedError(
            f"embedding(): max_norm={max_norm}, norm_type={norm_type}, "
            f"scale_grad_by_freq={scale_grad_by_freq}, sparse={sparse} is not supported"
        )
    return _core.embedding(input, weight, padding_idx)


def max_pool2d(
    input: Tensor,
    kernel_size: _Pair,
    stride: _Pair | None = None,
    padding: _Pair = 0,
    dilation: _Pair = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Tensor | tuple[Tensor, Tensor]:
    """Returns the largest elements under a window, and where they were if `return_indices`."""
    values, places = _core.max_pool2d(input, kernel_size, stride, padding, dilation, ceil_mode)
    return (values, places) if return_indices else values


def adaptive_avg_pool2d(input: Tensor, output_size: int | Sequence[int | None] | None) -> Tensor:
    """Returns averages of regions, as many as asked for."""
    if output_size is None or isinstance(output_size, int):
        sizes = (output_size, output_size)
    elif input.dim() <= len(output_size):
        raise ValueError(f"Input dimension should be at least {len(output_size) + 1}")
    else:
        sizes = (output_size[0], output_size[1])
    return _core.adaptive_avg_pool2d(input, sizes)


def mse_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Returns the mean of the squares of the differences.

    >>> import mindtorch_v2 as torch
    >>> mse_loss(torch.ones(2), torch.zeros(2))
    tensor(1.)
    """
    if size_average is not None or reduce is not None:
        mean = size_average is not False
        reduction = "none" if reduce is False else "mean" if mean else "sum"
    if target.shape != input.shape:
        warnings.warn(
            f"Using a target size ({target.shape}) that is different to the input size "
            f"({input.shape}). This will likely lead to incorrect results due to broadcasting. "
            "Please ensure they have the same size.",
            stacklevel=2,
        )
    expanded_input, expanded_target = broadcast_tensors(input, target)
    return _core.mse_loss(expanded_input, expanded_target, reduction)


__all__ = [
    "adaptive_avg_pool2d",
    "batch_norm",
    "conv2d",
    "cross_entropy",
    "dropout",
    "embedding",
    "gelu",
    "layer_norm",
    "linear",
    "log_softmax",
    "max_pool2d",
    "mse_loss",
    "nll_loss",
    "relu",
    "scaled_dot_product_attention",
    "sigmoid",
    "softmax",
    "tanh",
]
