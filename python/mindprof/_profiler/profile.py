"""`profile`: the profiler that users create, with a schedule, steps and a callback."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal

from mindprof._core import record_function
from mindprof._frameworks.loader_workers import WORKERS
from mindprof._profiler import transitions
from mindprof._profiler.kineto_profile import _KinetoProfile
from mindprof._profiler.observer import ExecutionTraceObserver, _ITraceObserver
from mindprof._profiler.schedule import ProfilerAction, Schedule, always_record, checked
from mindprof._profiler.step_tracker import program_step_tracker
from mindprof._settings.activity import parse_activities
from mindprof._settings.options import DEFAULT_BUDGET_BYTES, DEFAULT_STACK_DEPTH
from mindprof._settings.profiler_config import _ExperimentalConfig

if TYPE_CHECKING:
    from typing_extensions import Self

PROFILER_STEP_NAME = "ProfilerStep"


def _is_kineto_stopped() -> bool:
    """Returns whether a device stopped recording early, which never happens here."""
    return False


class profile(_KinetoProfile):
    """Records operators, ranges and device work, from `start()` to `stop()` or by a schedule.

    Takes the arguments of `torch.profiler.profile`. All threads are recorded. Profilers may nest
    and overlap, and each one gets all events of its own time. The exception are devices such as
    CUDA, which torch's collector, Kineto, records for the profiler that started first.

    Args:
        activities: The activities to record, such as `ProfilerActivity.CPU`. A dict instead of an
            activity maps it to the activity types that traces contain. `None` means all activities
            that are available.
        schedule: A function from the number of a step to its action; every step is recorded if
            `None`.
        on_trace_ready: A callback that is called with the profiler at the end of each cycle.
        record_shapes: Record the input shapes of operators.
        profile_memory: Record allocations.
        with_stack: Record Python calls and the stacks of operators. With `"sampled"`, calls are
            not traced one by one but estimated from the stacks of operators and of samples, at
            almost no cost.
        with_flops: Estimate floating-point operations.
        with_modules: Record calls of modules, which `with_stack` includes.
        experimental_config: torch's experimental options.
        execution_trace_observer: An observer to start and stop with the recording.
        acc_events: Accumulate the events of all cycles.
        custom_trace_id_callback: Returns the id of each trace; ids are random if `None`.
        post_processing_timeout_s: Zero gives no results; other values have no effect.
        budget_bytes: The maximum memory that mindprof uses for the recording; it does not limit
            Kineto. Beyond it, the newest events are dropped and counted in the table's footer, in
            exported traces and in `lost_events`.
        stack_depth: The maximum depth of recorded Python calls. Deeper calls are counted but not
            kept; operators inside them keep the line that called them.
        only: The operators to record, for long runs; ranges and Python calls are always recorded.
            `"ranges"` records no operators. A pattern such as `"aten::conv*"` records operators
            whose names match it as `fnmatch` does, `"depth=2"` those inside at most one other
            operator, and `"share=0.01"` a random share of the outermost operators, with all
            operators inside them: rows are then estimates with their margins of error. Several of
            these, in a sequence, record the operators that all of them admit; of several patterns
            one must match.

    Example:
        >>> import mindtorch_v2 as torch
        >>> with profile() as prof:
        ...     total = torch.ones((2, 2)).sum()
        >>> "aten::sum" in [row.key for row in prof.key_averages()]
        True
    """

    def __init__(
        self,
        *,
        activities: Iterable[Any] | None = None,
        schedule: Schedule | None = None,
        on_trace_ready: Callable[..., Any] | None = None,
        record_shapes: bool = False,
        profile_memory: bool = False,
        with_stack: bool | Literal["sampled"] = False,
        with_flops: bool = False,
        with_modules: bool = False,
        experimental_config: _ExperimentalConfig | None = None,
        execution_trace_observer: _ITraceObserver | None = None,
        acc_events: bool = False,
        custom_trace_id_callback: Callable[[], str] | None = None,
        post_processing_timeout_s: float | None = None,
        budget_bytes: int = DEFAULT_BUDGET_BYTES,
        stack_depth: int = DEFAULT_STACK_DEPTH,
        only: str | Iterable[str] | None = None,
    ) -> None:
        if activities is not None and not parse_activities(activities)[0]:
            raise AssertionError("No valid profiler activities found")
        observer = execution_trace_observer
        super().__init__(
            activities=activities,
            record_shapes=record_shapes,
            profile_memory=profile_memory,
            with_stack=with_stack,
            with_flops=with_flops,
            with_modules=with_modules,
            experimental_config=experimental_config,
            execution_trace_observer=observer
            or ExecutionTraceObserver.build_execution_trace_obs_from_env(),
            acc_events=acc_events,
            custom_trace_id_callback=custom_trace_id_callback,
            post_processing_timeout_s=post_processing_timeout_s,
            budget_bytes=budget_bytes,
            stack_depth=stack_depth,
            only=only,
        )
        self.schedule = schedule or always_record
        # Without a schedule, steps are marked but not recorded as ranges.
        self.record_steps = bool(schedule)
        self.on_trace_ready = on_trace_ready
        self.step_num = 0
        self.step_rec_fn: Any = None
        self.current_action = checked(self.schedule(0))
        # The action of the schedule, even if a device that stopped early overrules it.
        self._prev_schedule_action = self.current_action
        # Read now, because a step is a part of the recording.
        self._reports_steps = bool(os.environ.get("KINETO_USE_DAEMON", ""))
        program_step_tracker().init_step_count(PROFILER_STEP_NAME)

    @property
    def action_map(self) -> dict[Any, transitions.Steps]:
        """The table of transitions with bound methods, as in torch.

        It is created for each access. A stored one would form a reference cycle that keeps the
        recording alive until the next garbage collection.
        """
        return transitions.bind(self)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc_val: BaseException | None,
        exc_tb: TracebackType | None,
    ) -> None:
        try:
            self.stop()
        finally:
            program_step_tracker().erase_step_count(PROFILER_STEP_NAME)
            if self.execution_trace_observer:
                self.execution_trace_observer.cleanup()

    def start(self) -> None:
        """Starts with the first action of the schedule, or recording if there is none."""
        WORKERS.open(self)
        self._transit_action(ProfilerAction.NONE, self.current_action)
        self._open_step(at_start=True)

    def stop(self) -> None:
        """Stops recording and calls `on_trace_ready`. A second call has no effect.

        Raises:
            AssertionError: The profiler was never started.
        """
        self._close_step()
        try:
            self._transit_action(self.current_action, None)
        finally:
            self.current_action = self._prev_schedule_action
            WORKERS.close(self)

    def step(self) -> None:
        """Marks the beginning of the next step, and performs its scheduled action."""
        self._close_step()
        before, scheduled_before = self.current_action, self._prev_schedule_action
        # Called before anything changes, so that an error in the schedule leaves the profiler as
        # it was.
        scheduled = checked(self.schedule(self.step_num + 1))
        self.step_num += 1
        self.current_action = self._prev_schedule_action = scheduled
        if self._stays_stopped(before, scheduled_before):
            self.current_action = ProfilerAction.DEVICE_STOPPED
        self._transit_action(before, self.current_action)
        if self._reports_steps:
            program_step_tracker().increment_step(PROFILER_STEP_NAME)
        self._open_step()

    def _stays_stopped(self, before: ProfilerAction, scheduled_before: ProfilerAction) -> bool:
        """Returns whether a device that stopped early overrules the schedule."""
        if self.current_action == ProfilerAction.NONE:
            return False
        if before == ProfilerAction.DEVICE_STOPPED:
            return scheduled_before != ProfilerAction.RECORD_AND_SAVE
        is_busy = before in (ProfilerAction.WARMUP, ProfilerAction.RECORD)
        if not (is_busy and self.use_device is not None and _is_kineto_stopped()):
            return False
        warnings.warn(
            f"Device profiling activity collection was stopped early at step {self.step_num}. "
            "Profiler schedule is proceeding until next cycle without actual profiler activity "
            "collection.",
            stacklevel=3,
        )
        return True

    def _open_step(self, at_start: bool = False) -> None:
        if self.record_steps:
            self.step_rec_fn = self._step_range(f"{PROFILER_STEP_NAME}#{self.step_num}")
            self.step_rec_fn.__enter__()
        elif self.step_num and self.profiler is not None:
            self.profiler._mark_step(self.step_num, at_start)

    def _step_range(self, name: str) -> Any:
        """Returns the range of a step: torch's own if an observer of torch is to see it too."""
        torchs = sys.modules.get("torch.autograd.profiler")
        if self.execution_trace_observer and torchs is not None:
            return torchs.record_function(name)
        return record_function(name)

    def _close_step(self) -> None:
        if self.step_rec_fn:
            self.step_rec_fn.__exit__(None, None, None)
            self.step_rec_fn = None

    def _transit_action(self, before: ProfilerAction, after: ProfilerAction | None) -> None:
        for action in transitions.steps(self, before, after):
            action()

    def _trace_ready(self) -> None:
        # A second stop has no new results to report.
        if self.on_trace_ready and self._has_new_results:
            self.on_trace_ready(self)

    def set_custom_trace_id_callback(self, callback: Callable[[], str] | None) -> None:
        """Sets the callback for trace ids, from the next cycle on.

        Args:
            callback: Takes no arguments and returns an id; ids are random if `None`.
        """
        self.custom_trace_id_callback = callback

    def get_trace_id(self) -> str | None:
        """Returns the id of the current or last trace, or `None` before the first."""
        return None if self.profiler is None else self.profiler.trace_id
