"""Three names from the time of nvprof, deprecated in torch and kept as long as torch keeps them."""

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
    """Refuses a file of nvprof, which this does not read.

    Args:
        path: The file.
    """
    _warn("load_nvprof")
    raise NotImplementedError(f"files of nvprof are not read: {path}")


def parse_nvprof_trace(path: str) -> NoReturn:
    """Refuses a file of nvprof, which this does not read.

    Args:
        path: The file.
    """
    _warn("parse_nvprof_trace")
    raise NotImplementedError(f"files of nvprof are not read: {path}")


class EnforceUnique:
    """Raises when it sees a key again."""

    def __init__(self) -> None:
        _warn("EnforceUnique")
        self.seen: set[tuple[Any, ...]] = set()

    def see(self, *key: Any) -> None:
        """Takes note of a key.

        Args:
            key: Its parts.

        Raises:
            RuntimeError: It was seen before.
        """
        if key in self.seen:
            raise RuntimeError(f"duplicate key: {key}")
        self.seen.add(key)
