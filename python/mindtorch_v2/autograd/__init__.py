"""Gradients: `backward`, `grad`, functions with their own derivative, and turning tracking off."""

from mindtorch_v2.autograd._function import Function
from mindtorch_v2.autograd._grad_mode import (
    enable_grad,
    inference_mode,
    is_grad_enabled,
    no_grad,
    set_grad_enabled,
)
from mindtorch_v2.autograd._gradients import backward, grad

__all__ = [
    "Function",
    "backward",
    "enable_grad",
    "grad",
    "inference_mode",
    "is_grad_enabled",
    "no_grad",
    "set_grad_enabled",
]
