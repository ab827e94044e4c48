"""Records the ranges of torch's compiled code while the observer is active.

torch records these ranges only if its own profiler runs; an observer does not count. Compiled code
looks their class up each time it opens one, so we replace the class during a recording.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

from mindprof import _core

_NAME = "_RecordFunctionFast"

_theirs: Any = None


def replace(torch: ModuleType) -> None:
    """Replaces torch's class with ours. A second call has no effect."""
    global _theirs
    ranges = torch._C._profiler
    found = getattr(ranges, _NAME, None)
    if found is not None and found is not _Range:
        _theirs = found
        setattr(ranges, _NAME, _Range)


def restore(torch: ModuleType) -> None:
    """Restores torch's class, unless someone else has replaced it since."""
    ranges = torch._C._profiler
    if getattr(ranges, _NAME, None) is _Range:
        setattr(ranges, _NAME, _theirs)


class _Range:
    """A range of torch and, if torch does not report that to the observer, one of ours."""

    __slots__ = ("_arguments", "_ours", "_theirs")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._arguments = args, kwargs
        self._theirs = _theirs(*args, **kwargs)
        self._ours: Any = None

    def __enter__(self) -> None:
        heard = _core.torch_ranges_heard()
        # With an object of ours in its slot, torch would open the range without its inputs.
        _core.TorchWithoutSlot(self._theirs.__enter__)()
        if _core.torch_ranges_heard() == heard:
            args, kwargs = self._arguments
            self._ours = _core.RecordFunctionFast(*args, **kwargs)
            self._ours.__enter__()

    def __exit__(self, *exception: object) -> None:
        if self._ours is None:
            self._theirs.__exit__(*exception)
            return
        self._ours.__exit__(*exception)
        self._ours = None
        _core.TorchWithoutSlot(self._theirs.__exit__)(*exception)
