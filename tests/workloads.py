"""The framework that the profiler's tests record.

Tests of the profiler import `torch` from here instead of `mindtorch_v2`: it is the embedded
runtime, or a stand-in if the build has none (`make test-without-runtime`). Tests of the runtime
itself import `mindtorch_v2`; `tests/conftest.py` skips them in a build without it.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from mindprof import _core

from tests.stand_in import REASON

__all__ = ["HAS_RUNTIME", "IMPORT_TORCH", "REASON", "program", "torch"]

HAS_RUNTIME = hasattr(_core, "Tensor")

if TYPE_CHECKING or HAS_RUNTIME:
    import mindtorch_v2 as torch
else:
    from tests import stand_in as torch

    torch.register()

# For programs that tests write: the lines that import the framework as `torch`.
IMPORT_TORCH = (
    "import mindtorch_v2 as torch"
    if HAS_RUNTIME
    else f"import sys; sys.path.append({str(Path(__file__).parents[1])!r}); "
    "from tests import stand_in as torch"
)


def program(text: str) -> str:
    """Returns a program that imports `mindtorch_v2` as `torch`, for the framework that is present.

    Skips the test if the program uses a name that the framework does not have.
    """
    line = "import mindtorch_v2 as torch"
    if HAS_RUNTIME or line not in text:
        return text
    for name in re.findall(r"\btorch\.(\w+)", text):
        getattr(torch, name)
    return text.replace(line, IMPORT_TORCH)
