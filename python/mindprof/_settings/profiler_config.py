"""torch's native configuration classes, and `_ExperimentalConfig`.

Programs pass these objects to profilers. Objects of torch's own classes are converted to ours.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, cast

from mindprof._enumeration import Enumeration, numbered
from mindprof._settings.torch_objects import is_of_torch

if TYPE_CHECKING:
    from dataclasses import dataclass
else:
    from mindprof._dataclass import dataclass

_STATES = (
    "Disabled CPU CUDA NVTX ITT PRIVATEUSE1 KINETO KINETO_GPU_FALLBACK KINETO_PRIVATEUSE1_FALLBACK "
    "KINETO_PRIVATEUSE1"
)
_SCOPES = (
    "FUNCTION BACKWARD_FUNCTION TORCHSCRIPT_FUNCTION KERNEL_FUNCTION_DTYPE CUSTOM_CLASS "
    "BUILD_FEATURE LITE_INTERPRETER USER_SCOPE STATIC_RUNTIME_OP STATIC_RUNTIME_MODEL"
)


class RecordScope(Enumeration, members=numbered(_SCOPES)):
    """The kind of code that an event covers."""

    FUNCTION: ClassVar[RecordScope]
    BACKWARD_FUNCTION: ClassVar[RecordScope]
    TORCHSCRIPT_FUNCTION: ClassVar[RecordScope]
    KERNEL_FUNCTION_DTYPE: ClassVar[RecordScope]
    CUSTOM_CLASS: ClassVar[RecordScope]
    BUILD_FEATURE: ClassVar[RecordScope]
    LITE_INTERPRETER: ClassVar[RecordScope]
    USER_SCOPE: ClassVar[RecordScope]
    STATIC_RUNTIME_OP: ClassVar[RecordScope]
    STATIC_RUNTIME_MODEL: ClassVar[RecordScope]


class ProfilerState(Enumeration, members=numbered(_STATES)):
    """The recorder that a profiler uses."""

    Disabled: ClassVar[ProfilerState]
    CPU: ClassVar[ProfilerState]
    CUDA: ClassVar[ProfilerState]
    NVTX: ClassVar[ProfilerState]
    ITT: ClassVar[ProfilerState]
    PRIVATEUSE1: ClassVar[ProfilerState]
    KINETO: ClassVar[ProfilerState]
    KINETO_GPU_FALLBACK: ClassVar[ProfilerState]
    KINETO_PRIVATEUSE1_FALLBACK: ClassVar[ProfilerState]
    KINETO_PRIVATEUSE1: ClassVar[ProfilerState]


class ActiveProfilerType(Enumeration, members=numbered("NONE LEGACY KINETO NVTX ITT PRIVATEUSE1")):
    """The recorder that is running."""

    NONE: ClassVar[ActiveProfilerType]
    LEGACY: ClassVar[ActiveProfilerType]
    KINETO: ClassVar[ActiveProfilerType]
    NVTX: ClassVar[ActiveProfilerType]
    ITT: ClassVar[ActiveProfilerType]
    PRIVATEUSE1: ClassVar[ActiveProfilerType]


# The ids of the running profilers of `profiler_legacy`, torch's oldest module.
open_legacy_profilers: set[int] = set()


class _Unsaid(int):
    """A default `False` that can be told from a `False` that the user passed."""

    def __repr__(self) -> str:
        return "False"


_UNSAID: Any = _Unsaid(0)


def refuse(call: str, signature: str, invoked_with: str) -> TypeError:
    """Returns the error that torch's native side raises for arguments of the wrong type."""
    return TypeError(
        f"{call}(): incompatible {'constructor' if call == '__init__' else 'function'} arguments. "
        f"The following argument types are supported:\n    1. {signature}\n\n"
        f"Invoked with: {invoked_with}"
    )


class _ExperimentalConfig:
    """torch's experimental options.

    Options about devices have no effect on a machine without one.

    Args:
        verbose: Record stacks with `with_stack=True`. mindprof does so regardless.
        performance_events: Hardware counters of a device.
        enable_cuda_sync_events: Record device synchronization.
        adjust_profiler_step: Ignored, as in torch.
        disable_external_correlation: Omit the links between CPU and device events.
        profile_all_threads: Record all threads, which is the default; only an explicit `False`
            restricts the recording to the starting thread.
        capture_overload_names: Record operator overloads, for `overload_name` of events, rows by
            overload and the names in traces.
        record_python_gc_info: Record Python's garbage collections; needs `with_stack=True`.
        expose_kineto_event_metadata: Keep the metadata of device events.
        custom_profiler_config: A configuration text for other recorders.
        adjust_timestamps: Ignored, because times are exact.
        trace_only: Make `export_chrome_trace` the only result, without events in Python.
    """

    def __init__(
        self,
        verbose: bool = False,
        performance_events: list[str] = [],  # noqa: B006
        enable_cuda_sync_events: bool = False,
        adjust_profiler_step: bool = False,
        disable_external_correlation: bool = False,
        profile_all_threads: bool = _UNSAID,
        capture_overload_names: bool = False,
        record_python_gc_info: bool = False,
        expose_kineto_event_metadata: bool = False,
        custom_profiler_config: str = "",
        adjust_timestamps: bool = False,
        trace_only: bool = False,
    ) -> None:
        given = {name: value for name, value in locals().items() if name != "self"}
        expected: dict[str, type | tuple[type, ...]] = {
            "performance_events": (list, tuple),
            "custom_profiler_config": str,
        }
        for name, value in given.items():
            if not isinstance(value, expected.get(name, (int, type(None)))):
                raise refuse("__init__", "_ExperimentalConfig", f"kwargs: {name}={value!r}")
        self.adjust_profiler_step = bool(adjust_profiler_step)
        self.custom_profiler_config = custom_profiler_config
        self.trace_only = bool(trace_only)
        self.all_threads = bool(profile_all_threads) or profile_all_threads is _UNSAID
        self.record_python_gc_info = bool(record_python_gc_info)
        self.capture_overload_names = bool(capture_overload_names)
        self._others = given

    def for_torch(self) -> dict[str, Any]:
        """Returns the options for torch's own collector, by their names in torch.

        Options that mindprof implements itself are left out: Python's garbage collections,
        timestamps, and traces without events.
        """
        ours = {"adjust_profiler_step", "record_python_gc_info", "adjust_timestamps", "trace_only"}
        return {name: value for name, value in self._others.items() if name not in ours}


def own_config(config: Any) -> _ExperimentalConfig | None:
    """Converts options of torch's class to ours; returns ours and `None` unchanged.

    The options of torch's object are in its pickle state, in an order that depends on the version.
    The place of an option is the one that changes if only that option is set.
    """
    if not is_of_torch(config, "_ExperimentalConfig"):
        return cast("_ExperimentalConfig | None", config)
    state = config.__getstate__()
    given = {name: state[place] for name, place in _places_in_state(type(config)).items()}
    # torch's default is False too, so False does not mean that the user chose it.
    given["profile_all_threads"] = given.get("profile_all_threads") or _UNSAID
    return _ExperimentalConfig(**given)


def _places_in_state(kind: Any) -> dict[str, int]:
    """Returns the places of options in the pickle state of torch's class, if the class has them."""
    unset = kind().__getstate__()
    others: dict[str, Any] = {"performance_events": ["set"], "custom_profiler_config": "set"}
    places = {}
    for name in _ExperimentalConfig.__init__.__annotations__:
        if name == "return":
            continue
        try:
            state = kind(**{name: others.get(name, True)}).__getstate__()
        except TypeError:
            # An older torch does not have the option.
            continue
        changed = [place for place, value in enumerate(state) if value != unset[place]]
        if len(changed) == 1:
            places[name] = changed[0]
    return places


@dataclass(frozen=True)
class ProfilerConfig:
    """The configuration of a recorder, as `profile.config()` returns it.

    Args:
        state: The recorder.
        report_input_shapes: Record the input shapes of operators.
        profile_memory: Record allocations.
        with_stack: Record Python calls.
        with_flops: Estimate floating-point operations.
        with_modules: Record calls of modules.
        experimental_config: torch's experimental options.
        trace_id: The id of the trace.
    """

    state: ProfilerState
    report_input_shapes: bool
    profile_memory: bool
    with_stack: bool
    with_flops: bool
    with_modules: bool
    experimental_config: _ExperimentalConfig
    trace_id: str = ""

    def __post_init__(self) -> None:
        if not isinstance(self.trace_id, str):
            values: list[Any] = [getattr(self, name) for name in self.__match_args__]
            raise refuse("__init__", "ProfilerConfig", ", ".join(map(repr, values)))
