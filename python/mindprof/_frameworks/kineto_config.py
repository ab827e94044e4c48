"""Converts the options of a recording to the configuration objects of Kineto."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from mindprof._settings.options import SessionOptions


def kineto_activities(torch: ModuleType, options: SessionOptions) -> set[Any]:
    """Returns the groups to record as members of torch's class."""
    groups = torch._C._profiler.ProfilerActivity
    return {getattr(groups, group.name) for group in options.activities}


def is_of_all_threads(options: SessionOptions) -> bool:
    """Returns whether Kineto records all threads, which it cannot do together with memory."""
    return options.all_threads and not options.profile_memory


def kineto_config(torch: ModuleType, options: SessionOptions) -> Any:
    """Returns the configuration of Kineto."""
    made_by = torch._C._profiler
    return made_by.ProfilerConfig(
        made_by.ProfilerState.KINETO,
        options.records_inputs,
        options.profile_memory,
        options.with_stack,
        options.with_flops,
        # `with_modules` covers only TorchScript; Python modules are known from their calls.
        False,
        _experimental(made_by, options),
        options.trace_id,
    )


def _experimental(made_by: Any, options: SessionOptions) -> Any:
    kind = made_by._ExperimentalConfig
    given = {} if options.experimental_config is None else options.experimental_config.for_torch()
    # Kineto reports stacks only if it is verbose.
    given["verbose"] = options.with_stack
    given["profile_all_threads"] = is_of_all_threads(options)
    # The options differ between versions of torch; its docstring lists those that exist.
    text = kind.__init__.__doc__ or ""
    return kind(**{name: value for name, value in given.items() if f" {name}: " in text})
