"""The functions of layers and losses."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

from mindprof import _core
from mindprof._core import (
    OperatorScope,
    Tensor,
    batch_norm,
    binary_cross_entropy_with_logits,
    broadcast_tensors,
    conv2d,
    cross_entropy,
    dtype,
    layer_norm,
    linear,
    logsigmoid,
    nll_loss,
    scaled_dot_product_attention,
)

from mindtorch_v2 import _missing

_Pair = int | Sequence[int]

gelu = _core.gelu
sigmoid = Tensor.sigmoid
tanh = Tensor.tanh


def relu(input: Tensor, inplace: bool = False) -> Tensor:
    """Replaces negative elements with zero."""
    return input.relu_() if inplace else input.relu()


def silu(input: Tensor, inplace: bool = False) -> Tensor:
    """Multiplies each element by its sigmoid."""
    return _into(input, _core.silu(input), inplace)


def leaky_relu(input: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    """Multiplies negative elements by `negative_slope`."""
    return _into(input, _core.leaky_relu(input, negative_slope), inplace)


def elu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """Replaces negative elements with `alpha * (exp(x) - 1)`."""
    return _into(input, _core.elu(input, alpha), inplace)


def softplus(input: Tensor, beta: float = 1, threshold: float = 20) -> Tensor:
    """Computes a smooth approximation of `relu`."""
    return _core.softplus(input, beta, threshold)


def _into(input: Tensor, result: Tensor, inplace: bool) -> Tensor:
    return input.copy_(result) if inplace else result


def softmax(
    input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: dtype | None = None
) -> Tensor:
    """Computes the softmax along a dimension.

    >>> import mindtorch_v2 as torch
    >>> softmax(torch.zeros(4), dim=0)
    tensor([0.2500, 0.2500, 0.2500, 0.2500])
    """
    return input.softmax(_dimension("softmax", input, dim, _stacklevel), dtype)


def log_softmax(
    input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: dtype | None = None
) -> Tensor:
    """Computes the logarithm of the softmax along a dimension."""
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
    """In training, sets random elements to zero and scales up the others."""
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
    """Looks up rows of a table.

    Args:
        input: The indices of the rows.
        weight: The table.
        padding_idx: The row that gets no gradient.
        max_norm: Not supported.
        norm_type: Ignored without `max_norm`.
        scale_grad_by_freq: Not supported.
        sparse: Not supported.

    Raises:
        NotImplementedError: If an unsupported option is given.
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
    """Returns the largest element of each window, with their indices if `return_indices`."""
    values, places = _core.max_pool2d(input, kernel_size, stride, padding, dilation, ceil_mode)
    return (values, places) if return_indices else values


def avg_pool2d(
    input: Tensor,
    kernel_size: _Pair,
    stride: _Pair | None = None,
    padding: _Pair = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor:
    """Returns the average of each window."""
    return _core.avg_pool2d(
        input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override
    )


def adaptive_avg_pool2d(input: Tensor, output_size: int | Sequence[int | None] | None) -> Tensor:
    """Returns the averages of as many regions as requested."""
    if output_size is None or isinstance(output_size, int):
        sizes = (output_size, output_size)
    elif input.dim() <= len(output_size):
        raise ValueError(f"Input dimension should be at least {len(output_size) + 1}")
    else:
        sizes = (output_size[0], output_size[1])
    return _core.adaptive_avg_pool2d(input, sizes)


def conv1d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: int | Sequence[int] = 1,
    padding: str | int | Sequence[int] = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
) -> Tensor:
    """Convolves sequences of shape `(N, C, L)`, treated as images with one row.

    >>> import mindtorch_v2 as torch
    >>> conv1d(torch.ones(1, 1, 4), torch.ones(1, 1, 2))
    tensor([[[2., 2., 2.]]])
    """
    steps, sizes = _single(stride), padding if isinstance(padding, str) else _single(padding)
    apart = _single(dilation)
    arguments = (input, weight, bias, [steps], None if isinstance(sizes, str) else [sizes])
    with OperatorScope("aten::conv1d", *arguments, [apart], groups):
        image = input.unsqueeze(-2)
        kernel = weight.unsqueeze(-2)
        borders = sizes if isinstance(sizes, str) else (0, sizes)
        result = conv2d(image, kernel, bias, (1, steps), borders, (1, apart), groups)
        return result.squeeze(-2)


def _single(value: int | Sequence[int]) -> int:
    return value if isinstance(value, int) else value[0]


def l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Computes the mean absolute difference.

    >>> import mindtorch_v2 as torch
    >>> l1_loss(torch.ones(2), torch.zeros(2))
    tensor(1.)
    """
    reduction = _reduction(size_average, reduce, reduction)
    left, right = broadcast_tensors(input, target)
    return _l1_loss(left, right, reduction)


def smooth_l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    beta: float = 1.0,
) -> Tensor:
    """Computes the mean of a loss that is quadratic below `beta` and linear above.

    >>> import mindtorch_v2 as torch
    >>> smooth_l1_loss(torch.tensor([0.5, 2.0]), torch.zeros(2))
    tensor(0.8125)
    """
    reduction = _reduction(size_average, reduce, reduction)
    _warn_of_sizes(input, target)
    left, right = broadcast_tensors(input, target)
    if beta == 0.0:
        return _l1_loss(left, right, reduction)
    return _core.smooth_l1_loss(left, right, reduction, beta)


def huber_loss(
    input: Tensor,
    target: Tensor,
    reduction: str = "mean",
    delta: float = 1.0,
    weight: Tensor | None = None,
) -> Tensor:
    """Computes the mean of a loss that is quadratic below `delta` and linear above.

    >>> import mindtorch_v2 as torch
    >>> huber_loss(torch.tensor([0.5, 2.0]), torch.zeros(2))
    tensor(0.8125)

    Raises:
        NotImplementedError: If a weight is given.
    """
    if weight is not None:
        raise NotImplementedError("huber_loss(): weight is not supported")
    _warn_of_sizes(input, target)
    left, right = broadcast_tensors(input, target)
    return _core.huber_loss(left, right, reduction, delta)


def _l1_loss(left: Tensor, right: Tensor, reduction: str) -> Tensor:
    with OperatorScope("aten::l1_loss", left, right, _REDUCTIONS.index(reduction)):
        return _reduced((left - right).abs(), reduction)


def _warn_of_sizes(input: Tensor, target: Tensor) -> None:
    if target.shape != input.shape:
        warnings.warn(
            f"Using a target size ({target.shape}) that is different to the input size "
            f"({input.shape}). This will likely lead to incorrect results due to broadcasting. "
            "Please ensure they have the same size.",
            stacklevel=3,
        )


def binary_cross_entropy(
    input: Tensor, target: Tensor, weight: Tensor | None = None, reduction: str = "mean"
) -> Tensor:
    """Computes the binary cross-entropy of probabilities, with logarithms of at least -100."""
    if input.shape != target.shape:
        raise ValueError(
            f"Using a target size ({target.shape}) that is different to the input size "
            f"({input.shape}) is deprecated. Please ensure they have the same size."
        )
    arguments = (input, target, weight, _REDUCTIONS.index(reduction))
    with OperatorScope("aten::binary_cross_entropy", *arguments):
        sure, unsure = input.log().clamp(min=-100), (1 - input).log().clamp(min=-100)
        loss = (target - 1) * unsure - target * sure
        return _reduced(loss if weight is None else loss * weight, reduction)


_REDUCTIONS = ("none", "mean", "sum")


def _reduced(loss: Tensor, reduction: str) -> Tensor:
    return loss if reduction == "none" else loss.mean() if reduction == "mean" else loss.sum()


def _reduction(size_average: bool | None, reduce: bool | None, reduction: str) -> str:
    if size_average is None and reduce is None:
        return reduction
    return "none" if reduce is False else "sum" if size_average is False else "mean"


def one_hot(tensor: Tensor, num_classes: int = -1) -> Tensor:
    """Encodes class indices as vectors with a single one.

    >>> import mindtorch_v2 as torch
    >>> one_hot(torch.tensor([0, 2]))
    tensor([[1, 0, 0],
            [0, 0, 1]])
    """
    with OperatorScope("aten::one_hot", tensor, num_classes):
        if num_classes == -1:
            num_classes = int(tensor.max().item()) + 1
        zeros = _core.zeros((*tensor.shape, num_classes), dtype=tensor.dtype)
        return zeros.scatter_(-1, tensor.unsqueeze(-1), 1)


def normalize(input: Tensor, p: float = 2.0, dim: int = 1, eps: float = 1e-12) -> Tensor:
    """Divides by the norm along a dimension."""
    return input / input.norm(p, dim, True).clamp_min(eps).expand_as(input)


def mse_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Computes the mean squared difference.

    >>> import mindtorch_v2 as torch
    >>> mse_loss(torch.ones(2), torch.zeros(2))
    tensor(1.)
    """
    reduction = _reduction(size_average, reduce, reduction)
    _warn_of_sizes(input, target)
    left, right = broadcast_tensors(input, target)
    return _core.mse_loss(left, right, reduction)


__all__ = [
    "adaptive_avg_pool2d",
    "avg_pool2d",
    "batch_norm",
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "conv1d",
    "conv2d",
    "cross_entropy",
    "dropout",
    "elu",
    "embedding",
    "gelu",
    "huber_loss",
    "l1_loss",
    "layer_norm",
    "leaky_relu",
    "linear",
    "log_softmax",
    "logsigmoid",
    "max_pool2d",
    "mse_loss",
    "nll_loss",
    "normalize",
    "one_hot",
    "relu",
    "scaled_dot_product_attention",
    "sigmoid",
    "silu",
    "smooth_l1_loss",
    "softmax",
    "softplus",
    "tanh",
]

__getattr__ = _missing.attribute_of(__name__)
