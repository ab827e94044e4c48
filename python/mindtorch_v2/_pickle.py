"""Pickling of tensors, parameters and dtypes."""

from __future__ import annotations

import copyreg
from typing import Any

from mindprof._core import Tensor, device, dtype, tensor_from_bytes, tensor_to_bytes

from mindtorch_v2.nn.parameter import Parameter


def _tensor(elements: bytes, size: tuple[int, ...], kind: dtype, requires_grad: bool) -> Tensor:
    tensor = tensor_from_bytes(elements, size, kind)
    return tensor.requires_grad_() if requires_grad else tensor


def _parameter(elements: bytes, size: tuple[int, ...], kind: dtype, requires_grad: bool) -> Any:
    return Parameter(tensor_from_bytes(elements, size, kind), requires_grad)


def _facts(tensor: Tensor) -> tuple[Any, ...]:
    return (
        tensor_to_bytes(tensor.detach()),
        tuple(tensor.shape),
        tensor.dtype,
        tensor.requires_grad,
    )


def _reduce_tensor(tensor: Tensor) -> tuple[Any, ...]:
    if tensor.requires_grad and not tensor.is_leaf:
        raise RuntimeError(
            "Only Tensors created explicitly by the user (graph leaves) can be pickled: detach() "
            "the tensor first"
        )
    return _tensor, _facts(tensor)


def _reduce_parameter(parameter: Parameter) -> tuple[Any, ...]:
    return _parameter, _facts(parameter)


def _dtype(name: str) -> Any:
    return getattr(dtype, name)


def _reduce_dtype(kind: dtype) -> tuple[Any, ...]:
    return _dtype, (str(kind).removeprefix("torch."),)


def _reduce_device(place: device) -> tuple[Any, ...]:
    return device, (str(place),)


copyreg.pickle(Tensor, _reduce_tensor)
copyreg.pickle(Parameter, _reduce_parameter)
copyreg.pickle(dtype, _reduce_dtype)
copyreg.pickle(device, _reduce_device)
