"""What several parts of the runtime share, at torch's paths."""

from mindtorch_v2.utils import hooks

__all__ = ["hooks"]
