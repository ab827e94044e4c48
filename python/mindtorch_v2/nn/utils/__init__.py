"""Helpers for the gradients and the parameters of a whole model."""

from mindtorch_v2 import _missing
from mindtorch_v2.nn.utils.clip_grad import (
    clip_grad_norm_,
    clip_grad_value_,
    clip_grads_with_norm_,
    get_total_norm,
)
from mindtorch_v2.nn.utils.convert_parameters import parameters_to_vector, vector_to_parameters

__all__ = [
    "clip_grad_norm_",
    "clip_grad_value_",
    "clip_grads_with_norm_",
    "get_total_norm",
    "parameters_to_vector",
    "vector_to_parameters",
]

__getattr__ = _missing.attribute_of(__name__)
