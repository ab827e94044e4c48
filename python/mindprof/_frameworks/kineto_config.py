"""Converts the options of a recording to the configuration objects of Kineto."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from mindprof._settings.activity import ProfilerActivity
from mindprof._settings.options import SessionOptions


def kineto_activities(torch: ModuleType, options: SessionOptions) -> set[Any]:
    """Returns the activities to record as members of torch's `ProfilerActivity`."""
    groups = torch._C._profiler.ProfilerActivity
    return {getattr(groups, group.name) for group in options.activities}


def records_all_threads(options: SessionOptions) -> bool:
    """Returns whether Kineto records all threads. It cannot if it also records memory."""
    return options.all_threads and not options.profile_memory


def kineto_config(torch: ModuleType, options: SessionOptions) -> Any:
    """Returns torch's `ProfilerConfig` for the options of a recording."""
    native = torch._C._profiler
    return native.ProfilerConfig(
        _state(native, options),
        options.records_inputs,
        options.profile_memory,
        options.with_stack,
        options.with_flops,
        # Kineto's `with_modules` covers only TorchScript. Python calls name the other modules.
        False,
        _experimental_config(native, options),
        options.trace_id,
    )


def _state(native: Any, options: SessionOptions) -> Any:
    """Returns the kind of recording.

    Only one of them starts the plugin of a backend that torch does not contain. Versions without it
    have no such plugins.
    """
    states = native.ProfilerState
    if ProfilerActivity.PrivateUse1 in options.activities:
        return getattr(states, "KINETO_PRIVATEUSE1", states.KINETO)
    return states.KINETO


def _experimental_config(native: Any, options: SessionOptions) -> Any:
    kind = native._ExperimentalConfig
    given = {} if options.experimental_config is None else options.experimental_config.for_torch()
    # Kineto reports stacks only if it is verbose.
    given["verbose"] = options.with_stack
    given["profile_all_threads"] = records_all_threads(options)
    if ProfilerActivity.CPU not in options.activities:
        # Grid, block, registers, bytes and bandwidth of device work.
        given["expose_kineto_event_metadata"] = True
    # Versions of torch differ in their options. Pass only those that the docstring of the
    # constructor lists.
    text = kind.__init__.__doc__ or ""
    return kind(**{name: value for name, value in given.items() if f" {name}: " in text})
