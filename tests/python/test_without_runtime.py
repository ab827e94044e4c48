"""A build without the embedded runtime: `mindtorch_v2` says that it is absent."""

from __future__ import annotations

import subprocess
import sys

# A build with the runtime looks like one without once its classes are gone.
PROGRAM = """
from mindprof import _core
if hasattr(_core, "Tensor"):
    del _core.Tensor
import mindtorch_v2
"""


def test_the_runtime_says_that_the_build_has_none() -> None:
    command = [sys.executable, "-c", PROGRAM]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert "ImportError: this build of mindprof has no embedded runtime: " in done.stderr
