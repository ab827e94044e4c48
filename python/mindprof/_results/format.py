"""The formatting of numbers and names in tables, under torch's names for these functions."""

from __future__ import annotations

from mindprof import _core


def _format_time(time_us: float) -> str:
    """Formats a time in a suitable unit."""
    return _core.format_time(time_us)


def _format_time_share(time_us: float, total_time_us: float) -> str:
    """Formats a time as a percentage of a total."""
    if total_time_us == 0 and time_us != 0:
        raise AssertionError(f"Expected time_us == 0 but got {time_us}")
    return _core.format_time_share(time_us, total_time_us)


def _format_memory(nbytes: int) -> str:
    """Formats a number of bytes in a suitable unit."""
    return _core.format_memory(nbytes)


def _rewrite_name(name: str, with_wildcard: bool = False) -> str:
    """Returns the displayed name of an event; with a wildcard, all profiler steps share one."""
    if with_wildcard and name.startswith("ProfilerStep#"):
        return "ProfilerStep*"
    return name


def _filter_name(name: str) -> bool:
    """Returns whether events of this name are left out of lists."""
    return name == "[OutOfMemory]" or _core.is_hidden_event(name)


def _filter_stack_entry(entry: str) -> bool:
    """Returns whether a stack frame is shown."""
    return _core.is_shown_frame(entry)
