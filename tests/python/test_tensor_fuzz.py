"""Random calls of operators: results, or exceptions of torch's types, and nothing else."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import mindtorch_v2 as torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mindtorch_v2.nn import functional

# Attributes are asked of whatever is given to a function that is written in Python.
RAISED = (RuntimeError, ValueError, IndexError, TypeError, NotImplementedError, AttributeError)

dtypes = st.sampled_from(
    [
        torch.float32,
        torch.float64,
        torch.bfloat16,
        torch.int32,
        torch.int64,
        torch.bool,
    ]
)
shapes = st.lists(st.integers(0, 4), max_size=4).map(tuple)
numbers = st.one_of(
    st.integers(-5, 5), st.floats(-3, 3), st.booleans(), st.just(1 << 40), st.just(float("nan"))
)
dimensions = st.integers(-6, 6)


@st.composite
def tensors(draw: st.DrawFn) -> torch.Tensor:
    """Tensors of any type, dense or not, tracked or not."""
    sizes, dtype = draw(shapes), draw(dtypes)
    tensor = (torch.randn(sizes) * 3).to(dtype)
    change = draw(st.sampled_from(["none", "transpose", "expand", "slice", "track"]))
    if change == "transpose" and tensor.dim() >= 2:
        return tensor.transpose(0, -1)
    if change == "expand":
        return tensor.expand(2, *sizes)
    if change == "slice" and tensor.dim() >= 1:
        return tensor[1:]
    if change == "track" and dtype.is_floating_point:
        return tensor.requires_grad_()
    return tensor


UNARY: list[Callable[[Any], Any]] = [
    torch.exp,
    torch.relu,
    torch.neg,
    torch.abs,
    torch.sum,
    torch.mean,
    torch.max,
    torch.argmax,
    torch.sqrt,
    torch.nonzero,
    torch.clone,
    torch.Tensor.bool,
    torch.Tensor.bfloat16,
    torch.Tensor.contiguous,
    torch.Tensor.tolist,
    repr,
]
BINARY: list[Callable[[Any, Any], Any]] = [
    torch.add,
    torch.sub,
    torch.mul,
    torch.div,
    torch.floor_divide,
    torch.remainder,
    torch.pow,
    torch.matmul,
    torch.maximum,
    torch.eq,
    torch.Tensor.add_,
    torch.Tensor.mul_,
    torch.Tensor.copy_,
    torch.mm,
    torch.bmm,
    torch.mv,
    torch.dot,
    torch.masked_select,
    functional.mse_loss,
    functional.cross_entropy,
    functional.linear,
    functional.embedding,
    torch.Tensor.__getitem__,
]
TERNARY: list[Callable[[Any, Any, Any], Any]] = [
    torch.addcmul,
    torch.addcdiv,
    torch.addmm,
    torch.where,
    functional.conv2d,
    functional.scaled_dot_product_attention,
    torch.Tensor.__setitem__,
]
ALONG: list[Callable[[Any, int], Any]] = [
    lambda x, at: x.sum(at),
    lambda x, at: x.mean(at),
    lambda x, at: x.max(at),
    lambda x, at: x.softmax(at),
    lambda x, at: x.log_softmax(at),
    lambda x, at: x.select(at, at),
    lambda x, at: x.unsqueeze(at),
    lambda x, at: x.squeeze(at),
    lambda x, at: x.transpose(at, -1),
    lambda x, at: x.narrow(at, 1, 2),
    lambda x, at: x.chunk(at, 0),
    lambda x, at: x.split(at),
    lambda x, at: x.view(at, -1),
    lambda x, at: x.reshape(at, 2),
    lambda x, at: x.expand(at, at, -1),
    lambda x, at: torch.cat([x, x], at),
    lambda x, at: torch.stack([x, x], at),
    lambda x, at: functional.layer_norm(x, (at,)),
]

quickly = settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True
)


def attempt(function: Callable[..., Any], *arguments: Any) -> None:
    message = "none"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = function(*arguments)
        if isinstance(result, torch.Tensor) and result.requires_grad and result.numel():
            result.sum().backward()
    except RAISED as error:
        message = str(error)
    assert message, "whatever goes wrong says what"


@quickly
@given(tensors(), st.booleans())
def test_one_operand(x: torch.Tensor, narrow: bool) -> None:
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=narrow):
        for function in UNARY:
            attempt(function, x)


@quickly
@given(tensors(), st.one_of(tensors(), numbers), st.booleans())
def test_two_operands(x: torch.Tensor, y: Any, narrow: bool) -> None:
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=narrow):
        for function in BINARY:
            attempt(function, x, y)


@quickly
@given(tensors(), st.one_of(tensors(), numbers), st.one_of(tensors(), numbers), st.booleans())
def test_three_operands(x: torch.Tensor, y: Any, z: Any, narrow: bool) -> None:
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=narrow):
        for function in TERNARY:
            attempt(function, x, y, z)


@quickly
@given(tensors(), dimensions)
def test_along_dimensions(x: torch.Tensor, at: int) -> None:
    for function in ALONG:
        attempt(function, x, at)
