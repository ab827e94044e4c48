"""Helpers shared by several parts of the runtime, at torch's paths."""

from mindtorch_v2 import _missing
from mindtorch_v2.utils import data, hooks

__all__ = ["data", "hooks"]

__getattr__ = _missing.attribute_of(__name__)
