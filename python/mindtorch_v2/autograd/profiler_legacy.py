"""The legacy profiler at torch's path: `autograd.profiler.profile` with the type LEGACY."""

from __future__ import annotations

from typing import Any

from mindprof._profiler.autograd_profile import profile as _profile
from mindprof._settings.profiler_config import ProfilerState, open_legacy_profilers


class profile(_profile):
    """Records as `autograd.profiler.profile` does, with LEGACY as the active profiler type.

    >>> with profile() as prof:
    ...     pass
    >>> prof.profiler_kind.name
    'CPU'
    """

    def __init__(self, enabled: bool = True, **options: Any) -> None:
        super().__init__(enabled, **options)
        self.profiler_kind = ProfilerState.CPU

    def _start_trace(self) -> None:
        super()._start_trace()
        open_legacy_profilers.add(id(self))

    def _stop_trace(self) -> bool:
        open_legacy_profilers.discard(id(self))
        return super()._stop_trace()


__all__ = ["profile"]
