"""Initialization of parameters: fills tensors in place, outside of the graph."""

from __future__ import annotations

import math
import warnings

import mindtorch_v2 as torch

_Tensor = torch.Tensor


def uniform_(tensor: _Tensor, a: float = 0.0, b: float = 1.0) -> _Tensor:
    """Fills a tensor with uniform draws between `a` and `b`, and returns it.

    >>> import mindtorch_v2 as torch
    >>> 0 <= uniform_(torch.empty(3)).sum().item() <= 3
    True
    """
    with torch.no_grad():
        return tensor.uniform_(a, b)


def normal_(tensor: _Tensor, mean: float = 0.0, std: float = 1.0) -> _Tensor:
    """Fills a tensor with draws from a normal distribution, and returns it."""
    with torch.no_grad():
        return tensor.normal_(mean, std)


def constant_(tensor: _Tensor, val: float) -> _Tensor:
    """Fills a tensor with one value, and returns it."""
    with torch.no_grad():
        return tensor.fill_(val)


def ones_(tensor: _Tensor) -> _Tensor:
    """Fills a tensor with ones, and returns it."""
    return constant_(tensor, 1.0)


def zeros_(tensor: _Tensor) -> _Tensor:
    """Fills a tensor with zeros, and returns it."""
    with torch.no_grad():
        return tensor.zero_()


def xavier_uniform_(tensor: _Tensor, gain: float = 1.0) -> _Tensor:
    """Fills a weight with uniform draws that preserve variance (Xavier), and returns it."""
    bound = math.sqrt(3.0) * _xavier_std(tensor, gain)
    return uniform_(tensor, -bound, bound)


def xavier_normal_(tensor: _Tensor, gain: float = 1.0) -> _Tensor:
    """Fills a weight with normal draws that preserve variance (Xavier), and returns it."""
    return normal_(tensor, 0.0, _xavier_std(tensor, gain))


def kaiming_uniform_(
    tensor: _Tensor, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu"
) -> _Tensor:
    """Fills a weight with uniform draws that preserve variance (Kaiming), and returns it.

    Args:
        tensor: The weight.
        a: The negative slope of a leaky ReLU.
        mode: `"fan_in"` preserves the variance of values, `"fan_out"` that of gradients.
        nonlinearity: The name of the function after the layer, as in `calculate_gain`.
    """
    if _is_empty(tensor):
        return tensor
    bound = math.sqrt(3.0) * _kaiming_std(tensor, a, mode, nonlinearity)
    return uniform_(tensor, -bound, bound)


def kaiming_normal_(
    tensor: _Tensor, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu"
) -> _Tensor:
    """Fills a weight with normal draws that preserve variance (Kaiming), and returns it.

    Args:
        tensor: The weight.
        a: The negative slope of a leaky ReLU.
        mode: `"fan_in"` preserves the variance of values, `"fan_out"` that of gradients.
        nonlinearity: The name of the function after the layer, as in `calculate_gain`.
    """
    if _is_empty(tensor):
        return tensor
    return normal_(tensor, 0.0, _kaiming_std(tensor, a, mode, nonlinearity))


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """Returns the scale of a weight that compensates for the nonlinearity after it.

    Args:
        nonlinearity: The name of the function, such as `"relu"` or `"linear"`.
        param: The negative slope of `"leaky_relu"`.

    Example:
        >>> round(calculate_gain("relu"), 4)
        1.4142
    """
    if nonlinearity == "leaky_relu":
        if isinstance(param, bool) or not isinstance(param, int | float | None):
            raise ValueError(f"negative_slope {param} not a valid number")
        slope = 0.01 if param is None else param
        return math.sqrt(2.0 / (1 + slope**2))
    if nonlinearity not in _GAINS:
        raise ValueError(f"Unsupported nonlinearity {nonlinearity}")
    return _GAINS[nonlinearity]


def uniform_bias_(bias: _Tensor, weight: _Tensor) -> _Tensor:
    """Fills a bias uniformly within `1 / sqrt(fan_in)` of zero, torch's default."""
    fan_in, _ = _fans(weight)
    bound = 1 / math.sqrt(fan_in) if fan_in > 0 else 0.0
    return uniform_(bias, -bound, bound)


_GAINS = {
    "linear": 1,
    "conv1d": 1,
    "conv2d": 1,
    "conv3d": 1,
    "sigmoid": 1,
    "tanh": 5.0 / 3,
    "relu": math.sqrt(2.0),
    "selu": 3.0 / 4,
}


def _fans(weight: _Tensor) -> tuple[int, int]:
    if weight.dim() < 2:
        raise ValueError(
            "Fan in and fan out can not be computed for tensor with fewer than 2 dimensions"
        )
    outputs, inputs, *kernel = weight.shape
    points = math.prod(kernel)
    return inputs * points, outputs * points


def _xavier_std(weight: _Tensor, gain: float) -> float:
    fans = sum(_fans(weight))
    return gain * math.sqrt(2.0 / fans) if fans else 0.0


def _kaiming_std(weight: _Tensor, a: float, mode: str, nonlinearity: str) -> float:
    modes = ["fan_in", "fan_out"]
    if mode.lower() not in modes:
        raise ValueError(f"Mode {mode} not supported, please use one of {modes}")
    fan = _fans(weight)[modes.index(mode.lower())]
    return calculate_gain(nonlinearity, a) / math.sqrt(fan)


def _is_empty(tensor: _Tensor) -> bool:
    if 0 in tensor.shape:
        warnings.warn("Initializing zero-element tensors is a no-op", stacklevel=3)
        return True
    return False
