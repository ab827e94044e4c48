"""Ways to tell vendors' profilers about operators: without their libraries they only warn."""

from __future__ import annotations

import warnings
from types import TracebackType
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from typing_extensions import Self


class _Emitter:
    """Is entered and left, once."""

    NAME: ClassVar[str]

    def __init__(self, enabled: bool = True, record_shapes: bool = False) -> None:
        self.enabled = enabled
        self.entered = False
        self.record_shapes = record_shapes

    def __enter__(self) -> Self | None:
        if not self.enabled:
            return None
        if self.entered:
            raise RuntimeError(f"{self.NAME} annotation context manager is not reentrant")
        self.entered = True
        warnings.warn(
            f"emit_{self.NAME.lower()} has no effect: mindprof is built without {self.NAME}.",
            stacklevel=2,
        )
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc_val: BaseException | None,
        exc_tb: TracebackType | None,
    ) -> None:
        pass


class emit_itt(_Emitter):
    """Would mark operators for Intel's profilers.

    Args:
        enabled: If false, nothing happens, not even the warning.
        record_shapes: Would mark shapes too.
    """

    NAME = "ITT"


class emit_nvtx(_Emitter):
    """Would mark operators for NVIDIA's profilers.

    Args:
        enabled: If false, nothing happens, not even the warning.
        record_shapes: Would mark shapes too.
    """

    NAME = "NVTX"
