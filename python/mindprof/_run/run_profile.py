"""`RunProfile`: the profiler of a run, whose steps are those of the program's optimizer."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from time import perf_counter_ns, time_ns

from mindprof import _core
from mindprof._profiler.profile import PROFILER_STEP_NAME, profile
from mindprof._profiler.schedule import ProfilerAction
from mindprof._run.span import Span

#: What the last range is called, in which the optimizer makes no step.
AFTER_LAST = "after the last optimizer step"
BEFORE_FIRST = "before the first optimizer step"

_RECORDING = (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE)


class RunProfile(profile):
    """A profiler whose steps are known when they end: each ends with a step of the optimizer.

    Such a step begins and ends in the midst of calls. With a schedule, which was made for steps, it
    is a range that lies beside them, so that what they took is not taken from them, nor counted
    twice. Without one, steps are marks of the recording: ranges would be in those of the program's
    own profilers too.
    """

    #: How long the recorded steps of the present window took, in microseconds.
    step_times: list[float]
    #: The thread that makes the steps, by the number that the system gives it.
    _loop_thread: int | None = None

    _range: _core.StepRange | None = None
    _step_began_ns = 0
    #: When the first step ended, and the last so far, of a recording without a schedule.
    _first_end_ns: int | None = None
    _last_end_ns = 0

    @property
    def recording(self) -> _core.Profile:
        """What the last window recorded."""
        assert self.profiler is not None
        recording: _core.Profile | None = self.profiler.kineto_results
        assert recording is not None
        return recording

    @property
    def recorded_us(self) -> float:
        """How long the last window was open, in microseconds."""
        assert self.profiler is not None
        began_ns, ended_ns = (
            self.profiler.profiling_start_time_ns,
            self.profiler.profiling_end_time_ns,
        )
        return (ended_ns - began_ns) / 1000

    def overlap_us(self, spans: Iterable[tuple[int, int]]) -> float:
        """Returns how much of spans of time lies in the last window, in microseconds.

        Args:
            spans: Their begins and ends, by `perf_counter_ns()`.
        """
        assert self.profiler is not None
        began_ns = self.profiler.profiling_start_time_ns
        ended_ns = self.profiler.profiling_end_time_ns
        inside = (min(end, ended_ns) - max(begin, began_ns) for begin, end in spans)
        return sum(max(span_ns, 0) for span_ns in inside) / 1000

    @property
    def until_first_us(self) -> float | None:
        """How long the window was open when its first step ended; nobody knows when that began.

        None without a step, and with a schedule, whose windows begin with steps.
        """
        if self._first_end_ns is None:
            return None
        assert self.profiler is not None
        return (self._first_end_ns - self.profiler.profiling_start_time_ns) / 1000

    @property
    def after_last_us(self) -> float | None:
        """How long the window was open after the last step, where `until_first_us` is known."""
        if self._first_end_ns is None:
            return None
        assert self.profiler is not None
        return (self.profiler.profiling_end_time_ns - self._last_end_ns) / 1000

    @property
    def steps_span(self) -> Span | None:
        """When the steps of `step_times` ran; None if there are none."""
        if not self.step_times:
            return None
        assert self.profiler is not None
        return Span(self._first_end_ns or self.profiler.profiling_start_time_ns, self._last_end_ns)

    def loop_spans(self, prefix: str) -> list[Span]:
        """Returns when ranges of the last window ran whose names begin so, in time order.

        Those of the thread that makes the steps count; without any, those of the main thread.
        """
        thread = self._loop_thread or threading.main_thread().native_id
        to_counter_ns = perf_counter_ns() - time_ns()
        return [
            Span(begin_ns + to_counter_ns, end_ns + to_counter_ns)
            for begin_ns, end_ns, its_thread in self.recording.spans(prefix)
            if its_thread == thread
        ]

    def start(self) -> None:
        """Begins with the first action of the schedule, or to record if there is none."""
        self.step_times = []
        super().start()

    def stop(self) -> None:
        """Ends the recording. What is open was no step."""
        if self._range is not None:
            self._range.close(AFTER_LAST if self.step_num else BEFORE_FIRST)
            self._range = None
        super().stop()

    def step(self) -> None:
        """Says that a step has ended, and the next begins."""
        self._loop_thread = threading.get_native_id()
        if self.record_steps:
            self._next_step()
            return
        now_ns = perf_counter_ns()
        if self._first_end_ns is None:
            self._first_end_ns = now_ns
        else:
            self.step_times.append((now_ns - self._last_end_ns) / 1000)
        self._last_end_ns = now_ns
        # No window begins or ends here, so that our own calls can be left out.
        _core.pause_calls()
        try:
            self._next_step()
        finally:
            _core.resume_calls()

    def _next_step(self) -> None:
        if self.step_num == 0:
            # Programs that train are rid of their process groups before the recording ends.
            self._update_distributed_info()
        super().step()

    def _open_step(self) -> None:
        if not self.record_steps:
            super()._open_step()
        else:
            self._range = _core.StepRange(f"{PROFILER_STEP_NAME}#{self.step_num}")
            self._step_began_ns = perf_counter_ns()

    def _close_step(self) -> None:
        if self._range is not None:
            self._range.close()
            self._range = None
            if self.current_action in _RECORDING:
                self._last_end_ns = perf_counter_ns()
                self.step_times.append((self._last_end_ns - self._step_began_ns) / 1000)
