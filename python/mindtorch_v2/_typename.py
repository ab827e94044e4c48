"""Type names as torch's error messages spell them."""

from __future__ import annotations

import mindtorch_v2 as torch


def typename(value: object) -> str:
    """Returns the name that error messages use for the type of `value`.

    Tensors are named by their dtype, functions and classes by their own name, and other values by
    their class, with its module unless it is built in.

    >>> import mindtorch_v2 as torch
    >>> typename(torch.ones(2)), typename(3)
    ('torch.FloatTensor', 'int')
    """
    if isinstance(value, torch.Tensor):
        return f"torch.{_TENSOR_NAMES[str(value.dtype).rpartition('.')[2]]}Tensor"
    named = value if hasattr(value, "__qualname__") else type(value)
    name = getattr(named, "__qualname__", "")
    module = getattr(named, "__module__", "builtins")
    return name if module == "builtins" else f"{module}.{name}"


_TENSOR_NAMES = {
    "bfloat16": "BFloat16",
    "bool": "Bool",
    "float32": "Float",
    "float64": "Double",
    "int32": "Int",
    "int64": "Long",
}
