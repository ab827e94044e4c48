"""How a recorder is set up, in the words of torch's native side."""

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
    """What kind of code a range is around."""

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
    """Which recorder a profiler uses."""

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
    """Which recorder is running."""

    NONE: ClassVar[ActiveProfilerType]
    LEGACY: ClassVar[ActiveProfilerType]
    KINETO: ClassVar[ActiveProfilerType]
    NVTX: ClassVar[ActiveProfilerType]
    ITT: ClassVar[ActiveProfilerType]
    PRIVATEUSE1: ClassVar[ActiveProfilerType]


# Profilers under torch's oldest path that are recording, by identity.
open_legacy_profilers: set[int] = set()


class _Unsaid(int):
    """False where nobody said so, to be told from a False that somebody did say."""

    def __repr__(self) -> str:
        return "False"


_UNSAID: Any = _Unsaid(0)


def refuse(call: str, signature: str, invoked_with: str) -> TypeError:
    """Returns the error that torch's native side has for arguments of a wrong type."""
    return TypeError(
        f"{call}(): incompatible {'constructor' if call == '__init__' else 'function'} arguments. "
        f"The following argument types are supported:\n    1. {signature}\n\n"
        f"Invoked with: {invoked_with}"
    )


class _ExperimentalConfig:
    """Options that torch calls experimental.

    `verbose` and `capture_overload_names` ask for what mindprof does anyway or will do; those about
    devices change nothing on a machine without one. `trace_only` leaves `export_chrome_trace` as
    the only result.

    Args:
        verbose: Have stacks with `with_stack=True`, which mindprof has without it.
        performance_events: Counters of a device.
        enable_cuda_sync_events: Record synchronisations of a device.
        adjust_profiler_step: Ignored, as in torch.
        disable_external_correlation: Leave out links between the host and a device.
        profile_all_threads: Record all threads, as mindprof does unless False is said.
        capture_overload_names: Tell overloads of an operator apart.
        record_python_gc_info: Record runs of Python's garbage collector; needs `with_stack=True`.
        expose_kineto_event_metadata: Keep what a device says about its events.
        custom_profiler_config: A text for other recorders.
        adjust_timestamps: Ignored: times are exact.
        trace_only: Have no events in Python, only the trace.
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
        self._others = given

    def for_torch(self) -> dict[str, Any]:
        """Returns what torch's own collector is to be told, by the names of its options.

        What is done here in any case is left out: Python's garbage collections, times, and traces
        without events.
        """
        ours = {"adjust_profiler_step", "record_python_gc_info", "adjust_timestamps", "trace_only"}
        return {name: value for name, value in self._others.items() if name not in ours}


def own_config(config: Any) -> _ExperimentalConfig | None:
    """Returns options of torch's class as ours; ours and None as they are.

    torch's tell what they hold by their state, in the order of the constructor's arguments. Where
    the first is no truth value, the order is an older one, of options that change nothing here.
    """
    if not is_of_torch(config, "_ExperimentalConfig"):
        return cast("_ExperimentalConfig | None", config)
    names = list(_ExperimentalConfig.__init__.__annotations__)
    state = config.__getstate__()
    is_known_order = bool(state) and isinstance(state[0], bool)
    given = dict(zip(names, state if is_known_order else (), strict=False))
    # What torch has by default is nobody's word.
    given["profile_all_threads"] = given.get("profile_all_threads") or _UNSAID
    return _ExperimentalConfig(**given)


@dataclass(frozen=True)
class ProfilerConfig:
    """What a recorder is told when it is prepared.

    Args:
        state: Which recorder.
        report_input_shapes: Keep the shapes of what operators are given.
        profile_memory: Record allocations.
        with_stack: Record Python calls.
        with_flops: Estimate floating-point operations.
        with_modules: Ignored, as in torch without TorchScript.
        experimental_config: Options that torch calls experimental.
        trace_id: The name of the trace.
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
