"""Records the ranges of torch's compiled code while the observer is active.

torch records these ranges only if its own profiler runs; an observer does not count. Compiled code
looks their class up each time it opens one, so we replace the class during a recording. While
torch's collector records devices for us, torch does open these ranges, but without their inputs, so
that the observer leaves them to us too.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

from mindprof import _core
from mindprof._frameworks.shared_replacement import SharedReplacement

_NAME = "_RecordFunctionFast"

_theirs: Any = None
_is_collecting: Callable[[], bool] = bool
REPLACEMENT = SharedReplacement()


def replaced(torch: ModuleType, is_collecting: Callable[[], bool]) -> list[_core.Replacement]:
    """Replaces torch's class with ours while the result is held. Empty if torch has none.

    Args:
        torch: The module.
        is_collecting: Returns whether torch's collector runs for us.
    """
    global _is_collecting, _theirs
    _is_collecting = is_collecting
    ranges = torch._C._profiler
    found = getattr(ranges, _NAME, None)
    if found is None:
        return []
    if found is not _Range:
        _theirs = found
    return [REPLACEMENT.hold(ranges, _NAME, lambda: _Range, theirs=_theirs)]


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
        begin = _core.TorchWithoutSlot(self._theirs.__enter__)
        is_ours = _is_collecting()
        if is_ours:
            _core.torch_begin_unrecorded(begin)
        else:
            begin()
        if is_ours or _core.torch_ranges_heard() == heard:
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
