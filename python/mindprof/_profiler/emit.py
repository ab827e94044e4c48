"""`emit_itt` and `emit_nvtx`: torch's annotations for vendors' profilers.

mindprof is built without the vendors' libraries, so both only warn.
"""

from __future__ import annotations

import warnings
from types import TracebackType
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from typing_extensions import Self


class _Emitter:
    """A context manager that warns when it is entered, which is allowed once."""

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
    """Stands for torch's annotation of operators for Intel's profilers. It only warns.

    Args:
        enabled: If false, it does not even warn.
        record_shapes: Accepted, but has no effect.
    """

    NAME = "ITT"


class emit_nvtx(_Emitter):
    """Stands for torch's annotation of operators for NVIDIA's profilers. It only warns.

    Args:
        enabled: If false, it does not even warn.
        record_shapes: Accepted, but has no effect.
    """

    NAME = "NVTX"
