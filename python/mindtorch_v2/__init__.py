"""A small torch-like runtime: what people profile when PyTorch is not installed.

>>> import mindtorch_v2 as torch
>>> (torch.ones((2, 3)) @ torch.ones((3, 2))).sum().item()
12.0
"""

from mindprof._core import Tensor, dtype, manual_seed, ones, randn, tensor, zeros

from mindtorch_v2 import _C as _C
from mindtorch_v2 import autograd, profiler

float32 = dtype.float32
float64 = dtype.float64
int32 = dtype.int32
int64 = dtype.int64

__all__ = [
    "Tensor",
    "autograd",
    "dtype",
    "float32",
    "float64",
    "int32",
    "int64",
    "manual_seed",
    "ones",
    "profiler",
    "randn",
    "tensor",
    "zeros",
]
