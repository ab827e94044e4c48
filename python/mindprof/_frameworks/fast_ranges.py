"""The ranges that torch's compiled code opens around itself, while the observer records.

torch opens them for a profiler of its own alone: they ask whether one is running, not whether
somebody observes. Compiled code looks the class up whenever it opens one, so that ours can stand in
its place for as long as a recording goes on.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

from mindprof import _core

_NAME = "_RecordFunctionFast"

_theirs: Any = None


def replace(torch: ModuleType) -> None:
    """Has ranges of compiled code recorded. A second call changes nothing."""
    global _theirs
    ranges = torch._C._profiler
    found = getattr(ranges, _NAME, None)
    if found is not None and found is not _Range:
        _theirs = found
        setattr(ranges, _NAME, _Range)


def restore(torch: ModuleType) -> None:
    """Puts torch's class back, unless something else stands there by now."""
    ranges = torch._C._profiler
    if getattr(ranges, _NAME, None) is _Range:
        setattr(ranges, _NAME, _theirs)


class _Range:
    """A range of torch's, and one of ours where the observer does not hear of torch's."""

    __slots__ = ("_arguments", "_ours", "_theirs")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._arguments = args, kwargs
        self._theirs = _theirs(*args, **kwargs)
        self._ours: Any = None

    def __enter__(self) -> None:
        heard = _core.torch_ranges_heard()
        self._theirs.__enter__()
        if _core.torch_ranges_heard() == heard:
            args, kwargs = self._arguments
            self._ours = _core.RecordFunctionFast(*args, **kwargs)
            self._ours.__enter__()

    def __exit__(self, *exception: object) -> None:
        if self._ours is not None:
            self._ours.__exit__(*exception)
            self._ours = None
        self._theirs.__exit__(*exception)
