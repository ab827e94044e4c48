"""`RunProfile`: the profiler of a run, whose steps are those of the program's optimizer."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from pathlib import Path
from time import perf_counter_ns, time_ns

from mindprof import _core
from mindprof._profiler import autograd_profile
from mindprof._profiler.profile import PROFILER_STEP_NAME, profile
from mindprof._profiler.schedule import ProfilerAction
from mindprof._run.marks import Marks
from mindprof._run.span import Span

#: The name of the last range of a schedule, in which the optimizer makes no step.
AFTER_LAST = "after the last optimizer step"
BEFORE_FIRST = "before the first optimizer step"

#: The keys of the rows that these ranges and those of steps have.
STEP_KEYS = (f"{PROFILER_STEP_NAME}*", AFTER_LAST, BEFORE_FIRST)

_RECORDING = (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE)


class RunProfile(profile):
    """A profiler whose steps are known when they end: each ends with a step of the optimizer.

    Such a step begins and ends in the middle of calls. With a schedule, it is a range beside those
    calls, so that their time is neither taken from them nor counted twice. Without one, steps are
    marks of the recording, because ranges would appear in the program's own profilers too.
    """

    #: The steps that were recorded in the current window of a schedule.
    recorded_steps: tuple[Span, ...] = ()

    #: The thread that makes the steps, by its native id.
    _loop_thread: int | None = None
    _range: _core.StepRange | None = None
    _step_began_ns = 0

    @property
    def recording(self) -> _core.Profile:
        """The recording of the last window."""
        assert self.profiler is not None
        recording: _core.Profile | None = self.profiler.kineto_results
        assert recording is not None
        return recording

    def write_trace(self, recording: _core.Profile, path: Path, extra: dict[str, str]) -> None:
        """Writes a recording of this profiler with its metadata, or a part of one.

        Args:
            recording: The recording to write.
            path: The trace.
            extra: Further metadata, as JSON texts by key.
        """
        assert self.profiler is not None
        self.profiler._write_trace(recording, path, {**self._trace_metadata, **extra})

    def _inner_profiler(self) -> autograd_profile.profile:
        inner = super()._inner_profiler()
        # The end of a run is what a program does when it has settled.
        inner._keeps_last = True
        return inner

    def report(self, marks: Marks, modules: set[str]) -> _core.RunReport:
        """Draws the conclusions from the last window.

        Args:
            marks: What was seen of the program beside its recording.
            modules: The modules whose imports may have ranges.
        """
        assert self.profiler is not None
        to_unix_ns = time_ns() - perf_counter_ns()

        def unix(spans: Iterable[Span]) -> list[tuple[int, int]]:
            return [(begin + to_unix_ns, end + to_unix_ns) for begin, end in spans]

        starts = marks.worker_starts
        # Without steps, the loop is taken to run on the main thread.
        thread = self._loop_thread or threading.main_thread().native_id
        return _core.run_report(
            self.recording,
            {
                "end_ns": self.profiler.profiling_end_time_ns + to_unix_ns,
                "steps": unix(self.recorded_steps),
                "imports": unix(marks.imports),
                "other_imports": unix(marks.other_imports),
                "worker_starts": list(
                    zip(
                        unix([start.span for start in starts]),
                        [start.workers for start in starts],
                        strict=True,
                    )
                ),
                "worker_ends": unix(marks.worker_ends),
                "loop_thread": thread,
                "modules": sorted(modules),
                # Without a schedule, ranges of the other names are the program's own.
                "step_keys": STEP_KEYS if self.record_steps else STEP_KEYS[:1],
            },
        )

    def stop(self) -> None:
        """Ends the recording. An open range was not a step."""
        if self._range is not None:
            self._range.close(AFTER_LAST if self.step_num else BEFORE_FIRST)
            self._range = None
        super().stop()

    def step(self) -> None:
        """Ends a step and begins the next one."""
        self._loop_thread = threading.get_native_id()
        if self.record_steps:
            self._next_step()
            return
        # No window begins or ends here, so our own calls can be left out.
        try:
            _core.pause_calls()
            self._next_step()
        finally:
            _core.resume_calls()

    def _next_step(self) -> None:
        if self.step_num == 0:
            # Programs that train destroy their process groups before the recording ends.
            self._update_distributed_info()
        super().step()

    def _open_step(self, at_start: bool = False) -> None:
        if not self.record_steps:
            super()._open_step(at_start)
        else:
            self._range = _core.StepRange(f"{PROFILER_STEP_NAME}#{self.step_num}")
            self._step_began_ns = perf_counter_ns()

    def _close_step(self) -> None:
        if self._range is not None:
            self._range.close()
            self._range = None
            if self.current_action in _RECORDING:
                step = Span(self._step_began_ns, perf_counter_ns())
                self.recorded_steps = (*self.recorded_steps, step)
