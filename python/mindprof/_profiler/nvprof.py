"""torch's three names for nvprof, deprecated there and kept until torch removes them."""

from __future__ import annotations

import warnings
from typing import Any, NoReturn


def _warn(name: str) -> None:
    warnings.warn(
        f"`torch.autograd.profiler.{name}` is deprecated and will be removed in PyTorch 2.17.",
        FutureWarning,
        stacklevel=3,
    )


def load_nvprof(path: str) -> NoReturn:
    """Warns of its deprecation and raises, because mindprof does not read nvprof files.

    Args:
        path: The nvprof file.
    """
    _warn("load_nvprof")
    raise NotImplementedError(f"cannot read {path}: nvprof files are not supported")


def parse_nvprof_trace(path: str) -> NoReturn:
    """Warns of its deprecation and raises, because mindprof does not read nvprof files.

    Args:
        path: The nvprof file.
    """
    _warn("parse_nvprof_trace")
    raise NotImplementedError(f"cannot read {path}: nvprof files are not supported")


class EnforceUnique:
    """Raises an error if it sees a key twice."""

    def __init__(self) -> None:
        _warn("EnforceUnique")
        self.seen: set[tuple[Any, ...]] = set()

    def see(self, *key: Any) -> None:
        """Adds a key.

        Args:
            key: The parts of the key.

        Raises:
            RuntimeError: The key was added before.
        """
        if key in self.seen:
            raise RuntimeError(f"duplicate key: {key}")
        self.seen.add(key)
