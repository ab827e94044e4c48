"""What a recording is asked for, in one object that goes to the engine as it is."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dataclasses import dataclass

    from mindprof._settings.activity import ProfilerActivity
    from mindprof._settings.profiler_config import _ExperimentalConfig
else:
    from mindprof._dataclass import dataclass

DEFAULT_BUDGET_BYTES = 256 << 20
DEFAULT_STACK_DEPTH = 1000

# The engine counts in 64 bits.
_MOST = (1 << 63) - 1


@dataclass(frozen=True)
class SessionOptions:
    """The options of one recording. The engine reads the attributes that it knows.

    Args:
        record_shapes: Keep the shapes of what operators are given.
        profile_memory: Record what memory operators take and give back.
        with_stack: Record Python calls, and by whom operators are called.
        results: Keep what operators return, for execution traces.
        with_flops: Estimate floating-point operations, from shapes.
        with_modules: Record calls of modules; `with_stack` does so too.
        budget_bytes: How much memory the recording may take.
        stack_depth: How many calls deep Python is followed.
        all_threads: Record every thread, not only the one that begins the recording.
        source_roots: What the names of source files are shortened by.
        activities: The groups to record, for hosts that have several.
        experimental_config: Options that torch calls experimental, for torch itself.
        trace_id: The name of the trace.
    """

    record_shapes: bool = False
    profile_memory: bool = False
    with_stack: bool = False
    with_flops: bool = False
    results: bool = False
    with_modules: bool = False
    budget_bytes: int = DEFAULT_BUDGET_BYTES
    stack_depth: int = DEFAULT_STACK_DEPTH
    all_threads: bool = True
    source_roots: tuple[str, ...] = ()
    activities: frozenset[ProfilerActivity] = frozenset()
    experimental_config: _ExperimentalConfig | None = None
    trace_id: str = ""

    def without_stack(self) -> SessionOptions:
        """Returns the same options, but for Python calls, which are not recorded."""
        given = {name: getattr(self, name) for name in self.__match_args__}
        return SessionOptions(**{**given, "with_stack": False})


def checked_count(name: str, value: object, unit: str) -> int:
    """Returns an option that counts something, as a number.

    Args:
        name: The option.
        value: What the user gave.
        unit: What it counts.

    Raises:
        TypeError: It is no whole number.
        ValueError: It is below zero, or more than there can be.
    """
    try:
        count = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        raise TypeError(f"{name} must be a whole number of {unit}, got {value!r}") from None
    if not 0 <= count <= _MOST:
        raise ValueError(f"{name} must be a number of {unit} from 0 on, got {value!r}")
    return count
