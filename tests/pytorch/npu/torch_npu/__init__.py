"""A torch_npu without hardware.

It names the backend, and loads a plugin of torch's collector if the environment has one.
"""

import ctypes
import os

import torch  # type: ignore[import-not-found]

torch.utils.rename_privateuse1_backend("npu")
plugin = ctypes.CDLL(os.environ["NPU_PLUGIN"]) if "NPU_PLUGIN" in os.environ else None

from torch_npu import profiler  # type: ignore[import-not-found]  # noqa: E402, F401
