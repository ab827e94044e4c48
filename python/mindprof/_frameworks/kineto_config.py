"""What Kineto is told of a recording: our options, in objects of torch's."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from mindprof._settings.options import SessionOptions


def kineto_activities(torch: ModuleType, options: SessionOptions) -> set[Any]:
    """Returns the groups to record, as torch's."""
    groups = torch._C._profiler.ProfilerActivity
    return {getattr(groups, group.name) for group in options.activities}


def is_of_all_threads(options: SessionOptions) -> bool:
    """Returns whether all threads are recorded: of a recording of all, allocators do not tell."""
    return options.all_threads and not options.profile_memory


def kineto_config(torch: ModuleType, options: SessionOptions) -> Any:
    """Returns how Kineto is set up."""
    made_by = torch._C._profiler
    return made_by.ProfilerConfig(
        made_by.ProfilerState.KINETO,
        options.record_shapes or options.with_flops,
        options.profile_memory,
        options.with_stack,
        options.with_flops,
        # Of TorchScript alone; modules of Python are known from their calls.
        False,
        _experimental(made_by, options),
        options.trace_id,
    )


def _experimental(made_by: Any, options: SessionOptions) -> Any:
    kind = made_by._ExperimentalConfig
    given = {} if options.experimental_config is None else options.experimental_config.for_torch()
    # Stacks are told in a verbose recording alone.
    given["verbose"] = options.with_stack
    given["profile_all_threads"] = is_of_all_threads(options)
    # Which there are, torch's own text says: they differ from one to the next.
    text = kind.__init__.__doc__ or ""
    return kind(**{name: value for name, value in given.items() if f" {name}: " in text})
