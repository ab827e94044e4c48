"""`autograd.profiler.profile`: makes one recording at a time and holds its results.

It starts and stops the recording through the frameworks, and asks the engine for results.
"""

from __future__ import annotations

import copy
import os
import warnings
from collections.abc import Callable, Iterable
from time import perf_counter_ns
from types import TracebackType
from typing import Any, Literal

from mindprof import _core
from mindprof._frameworks.loader_workers import WORKERS, Handover
from mindprof._frameworks.present import present_host
from mindprof._frameworks.registry import (
    Recordings,
    begin_recordings,
    end_recordings,
    framework_activities,
    has_framework_device,
    has_frameworks,
)
from mindprof._frameworks.unseen import warn_of_unseen_torch
from mindprof._profiler import metadata as trace_metadata
from mindprof._profiler.garbage import GarbageCollections
from mindprof._profiler.source_roots import source_roots
from mindprof._profiler.stats import _ProfilerStats
from mindprof._profiler.switches import forward_arrows
from mindprof._results import lists
from mindprof._results.event_list import EventList
from mindprof._results.function_event import FunctionEvent
from mindprof._results.function_event_avg import FunctionEventAvg
from mindprof._results.logger import inform, logger
from mindprof._results.raw_results import RawResults, recorded_events
from mindprof._results.shared_results import NO_RECORDING, SharedResults
from mindprof._settings.activity import (
    DEVICE_NAMES,
    ProfilerActivity,
    check_activity_types,
    own_activity,
)
from mindprof._settings.options import (
    DEFAULT_BUDGET_BYTES,
    DEFAULT_STACK_DEPTH,
    SessionOptions,
    checked_count,
    checked_only,
    is_sampled,
    needs_shapes,
)
from mindprof._settings.profiler_config import (
    ProfilerConfig,
    ProfilerState,
    _ExperimentalConfig,
    own_config,
    refuse,
)

TRACE_ONLY = (
    "events() is not available when trace_only=True in ExperimentalConfig. "
    "Use export_chrome_trace() instead."
)


def without_trace_only(config: _ExperimentalConfig, with_stack: bool | str) -> _ExperimentalConfig:
    """Returns the configuration, or a copy without `trace_only` if stacks are recorded."""
    if not (config.trace_only and with_stack):
        return config
    warnings.warn(
        "trace_only=True is incompatible with with_stack=True (stack traces require event "
        "post-processing). Disabling trace_only.",
        stacklevel=3,
    )
    config = copy.copy(config)
    config.trace_only = False
    return config


class profile(SharedResults):
    """Records operators inside its `with` block. `mindprof.profile` is built on it.

    Args:
        enabled: If false, the profiler does nothing and has no results.
        use_device: The device to record besides the CPU. If it is not available, the profiler warns
            and continues without it.
        record_shapes: Record the input shapes of operators.
        with_flops: Estimate floating-point operations, which also records shapes.
        profile_memory: Record allocations.
        with_stack: Record Python calls and the stacks of operators, or sample them.
        with_modules: Record calls of modules, which `with_stack` includes.
        use_kineto: Accepted; there is one recorder. A device-only profiler requires it, as in
            torch.
        use_cpu: Record the CPU.
        experimental_config: torch's experimental options.
        acc_events: Accumulate the events of all recordings.
        custom_trace_id_callback: Returns the id of each trace; ids are random if `None`.
        post_processing_timeout_s: The time limit for processing results; zero gives no results.
        activity_filters: The activity types to write into traces, by group.
        budget_bytes: The maximum memory of a recording.
        stack_depth: The maximum depth of recorded Python calls.
        only: The operators to record; `None` records all.

    Example:
        >>> with profile() as prof:
        ...     pass
        >>> len(prof.key_averages())
        0
    """

    #: Whether a recording that exceeds its budget keeps its last events in place of the first.
    _keeps_last = False

    def __init__(
        self,
        enabled: bool = True,
        *,
        use_device: str | None = None,
        record_shapes: bool = False,
        with_flops: bool = False,
        profile_memory: bool = False,
        with_stack: bool | Literal["sampled"] = False,
        with_modules: bool = False,
        use_kineto: bool = False,
        use_cpu: bool = True,
        experimental_config: _ExperimentalConfig | None = None,
        acc_events: bool = False,
        custom_trace_id_callback: Callable[[], str] | None = None,
        post_processing_timeout_s: float | None = None,
        activity_filters: dict[ProfilerActivity, set[str]] | None = None,
        _profiler_extensions: dict[str, str] | None = None,
        budget_bytes: int = DEFAULT_BUDGET_BYTES,
        stack_depth: int = DEFAULT_STACK_DEPTH,
        only: str | Iterable[str] | None = None,
    ) -> None:
        self.enabled = enabled
        if not enabled:
            return
        self.use_device = use_device
        self.entered = False
        self.record_shapes = needs_shapes(record_shapes, with_flops)
        self.with_flops = with_flops
        self.profile_memory = profile_memory
        is_sampled(with_stack)
        self.with_stack = with_stack
        self.with_modules = with_modules
        self.use_cpu = use_cpu
        self.acc_events = acc_events
        self.experimental_config = without_trace_only(
            own_config(experimental_config) or _ExperimentalConfig(), with_stack
        )
        self.custom_trace_id_callback = custom_trace_id_callback
        self.post_processing_timeout_s = post_processing_timeout_s
        self.activity_filters = activity_filters or {}
        self.trace_id = ""
        self.profiler_kind = ProfilerState.KINETO
        self.profiling_start_time_ns = 0
        self.profiling_end_time_ns = 0
        self.kineto_results: _core.Profile | None = None
        self._profiler_extensions = _profiler_extensions or {}
        self._budget_bytes = checked_count("budget_bytes", budget_bytes, "bytes")
        self._stack_depth = checked_count("stack_depth", stack_depth, "calls")
        self._only = checked_only(only, bool(profile_memory))
        self._host = present_host(use_device)
        self._session: _core.Session | None = None
        self._of_workers: int | None = None
        self._recordings: Recordings = []
        self._finished: list[_core.Session] = []
        self._accumulated: _core.Profile | None = None
        self._events: EventList[FunctionEvent] | None = None
        self._tree_is_built = False
        self._garbage_collections: GarbageCollections | None = None
        self._stats = _ProfilerStats()
        self._warn_of_deprecated()
        self._choose_activities(use_kineto)

    def _warn_of_deprecated(self) -> None:
        if self.experimental_config.adjust_profiler_step:
            warnings.warn(
                "adjust_profiler_step is deprecated and ignored. It will be removed in a future "
                "release.",
                FutureWarning,
                stacklevel=3,
            )
        if self.with_modules:
            warnings.warn(
                "with_modules is deprecated and will be removed in a future release of torch. "
                "mindprof records only calls of modules with it; with_stack=True records them too, "
                "here and in torch, along with all other Python calls.",
                FutureWarning,
                stacklevel=3,
            )

    def _choose_activities(self, use_kineto: bool) -> None:
        if not self.use_cpu and not use_kineto:
            raise AssertionError("Device-only events supported only with Kineto (use_kineto=True)")
        if self.use_device == "mtia":
            raise AssertionError(
                "Legacy MTIA profiling is not supported. Requires use_kineto=True on MTIA devices."
            )
        if self.use_device is not None and not self._has_device(self.use_device):
            self._warn_of_missing_device(self.use_device)
            self.use_device = None
        known = self._host.activities() | framework_activities()
        self.kineto_activities = self._wanted_activities() & known
        if not self.kineto_activities:
            raise AssertionError("No activities specified for the profiler")
        if self.post_processing_timeout_s is not None and self.post_processing_timeout_s < 0:
            raise ValueError("post_processing_timeout_s must be non-negative")

    def _has_device(self, device: str) -> bool:
        return self._host.has_device(device) or has_framework_device(device)

    def _wanted_activities(self) -> set[ProfilerActivity]:
        wanted = {group for group, device in DEVICE_NAMES.items() if device == self.use_device}
        return {ProfilerActivity.CPU, *wanted} if self.use_cpu else wanted

    def _warn_of_missing_device(self, device: str) -> None:
        text = f"The {device} is not a valid device option."
        if device in ("cuda", "xpu", "hpu"):
            text = f"{device.upper()} is not available, disabling {device.upper()} profiling"
        warnings.warn(text, stacklevel=4)

    def default_trace_id(self) -> str:
        """Returns a random trace id."""
        return os.urandom(16).hex().upper()

    def create_trace_id(self) -> str:
        """Returns a new trace id, from the user's callback if there is one."""
        if self.custom_trace_id_callback:
            return self.custom_trace_id_callback()
        return self.default_trace_id()

    def config(self, create_trace_id: bool = False) -> ProfilerConfig:
        """Returns the configuration of the recorder.

        Args:
            create_trace_id: Create a new trace id first.
        """
        if create_trace_id:
            self.trace_id = self.create_trace_id()
        return ProfilerConfig(
            self.profiler_kind,
            self.record_shapes,
            self.profile_memory,
            bool(self.with_stack),
            self.with_flops,
            self.with_modules,
            self.experimental_config,
            self.trace_id,
        )

    def __enter__(self) -> profile | None:
        if not self.enabled:
            return None
        if self.entered:
            raise RuntimeError("Profiler context manager is not reentrant")
        self._prepare_trace()
        self._start_trace()
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc_val: BaseException | None,
        exc_tb: TracebackType | None,
    ) -> None:
        if self.enabled:
            self._stop_trace()

    def _prepare_trace(self) -> None:
        self.entered = True
        with self._stats.timed("profiler_prepare_call_duration_us"):
            self.config(create_trace_id=True)
            check_activity_types(self.activity_filters)
            if self._session is None:
                self._host.prepare(self._options())

    def _start_trace(self) -> None:
        self.entered = True
        try:
            self._start_session()
        # A traceback would keep the session alive, and with it the recording.
        except BaseException:
            self._drop_session()
            raise
        self.profiling_start_time_ns = perf_counter_ns()

    def _start_session(self) -> None:
        with self._stats.timed("profiler_enable_call_duration_us"):
            # Dropping an open session closes it and discards its events, as in torch. This comes
            # first, so that the new session has the whole budget.
            self._session = None
            self._end_recordings()
            self._end_workers(None)
            # torch may have been imported since this profiler was created.
            self._host = present_host(self.use_device)
            options = self._options()
            # Called before the session starts, which would record this call too.
            frameworks = has_frameworks()
            WORKERS.open(self)
            self._of_workers = WORKERS.start(self, options)
            self._session = self._host.start(options)
            if frameworks:
                self._begin_recordings(self._session, options)
            if self.with_stack and self.experimental_config.record_python_gc_info:
                self._garbage_collections = GarbageCollections()
                self._garbage_collections.start()

    def _drop_session(self) -> None:
        """Stops a recording that was interrupted, without taking its results."""
        session, self._session = self._session, None
        if session is not None:
            session.stop()
        if self._garbage_collections is not None:
            self._garbage_collections.stop()
        WORKERS.close(self)

    def _begin_recordings(self, session: _core.Session, options: SessionOptions) -> None:
        """Notifies registered frameworks of a recording, and stops it if they are interrupted."""
        try:
            self._recordings = begin_recordings(session, options)
        except BaseException:
            self._stop_trace()
            raise

    def _end_recordings(self) -> None:
        """Notifies registered frameworks of the end, so that they attach their late events."""
        recordings, self._recordings = self._recordings, []
        end_recordings(recordings)

    def _options(self) -> SessionOptions:
        return SessionOptions(
            record_shapes=bool(self.record_shapes),
            profile_memory=bool(self.profile_memory),
            with_stack=bool(self.with_stack),
            sampled=is_sampled(self.with_stack),
            with_flops=bool(self.with_flops),
            with_modules=bool(self.with_modules),
            overloads=self.experimental_config.capture_overload_names,
            budget_bytes=self._budget_bytes,
            keeps_last=self._keeps_last,
            stack_depth=self._stack_depth,
            all_threads=self.experimental_config.all_threads,
            source_roots=source_roots() if self.with_stack else (),
            activities=frozenset(self.kineto_activities),
            experimental_config=self.experimental_config,
            trace_id=self.trace_id,
            only=self._only,
        )

    def _meet_host(self, device: str | None) -> None:
        """Adds a framework that was imported after the recording started.

        Args:
            device: The device to record besides the CPU.
        """
        host = present_host(device)
        if self._session is not None and host is not self._host:
            self._host = host
            self.use_device = device if device and host.has_device(device) else None
            self.kineto_activities = self._wanted_activities() & host.activities()
            host.join(self._session, self._options())
            # torch's data loaders are now available.
            WORKERS.open(self)

    def _stop_trace(self) -> bool:
        """Stops the recording, and returns whether there was one."""
        session, self._session = self._session, None
        if session is None:
            return False
        try:
            self._stop_session(session)
        # A traceback would keep the session alive, and with it the recording.
        except BaseException:
            session.stop()
            raise
        warn_of_unseen_torch(self._host)
        window_ns = self.profiling_end_time_ns - self.profiling_start_time_ns
        self._stats.profiling_window_duration_sec = window_ns / 1e9
        return True

    def _stop_session(self, session: _core.Session) -> None:
        self.profiling_end_time_ns = perf_counter_ns()
        if self._garbage_collections is not None:
            self._garbage_collections.stop()
        with self._stats.timed("profiler_disable_call_duration_us"):
            try:
                if self._recordings:
                    self._end_recordings()
            finally:
                self._take_results(session)

    def _take_results(self, session: _core.Session) -> None:
        # Stops before waiting for workers, which a signal may interrupt, such as when one dies.
        try:
            self.kineto_results = self._accumulated = self._host.stop(session)
        except BaseException:
            self._end_workers(None)
            raise
        if self.acc_events:
            self._finished.append(session)
            # Combined when results are first read.
            self._accumulated = None
        self._events = None
        self._tree_is_built = False
        self._end_workers(session)

    def _end_workers(self, session: _core.Session | None) -> None:
        """Stops the recordings of data loader workers, and attaches them to a session."""
        number, self._of_workers = self._of_workers, None
        if number is None:
            return

        def take(of_workers: Handover) -> None:
            if session is not None and any(of_workers):
                self.kineto_results = session.attach_traces(*of_workers)
                if not self.acc_events:
                    self._accumulated = self.kineto_results

        try:
            WORKERS.stop(number, take)
        finally:
            WORKERS.close(self)

    def _mark_step(self, number: int, at_start: bool) -> None:
        """Marks the beginning of a step, for recordings without ranges for steps.

        Args:
            number: The number of the step.
            at_start: Whether the step began before the recording did.
        """
        if self._session is not None:
            self._session.mark_step(number, at_start)

    def _recording_for(self, _doing: str, /) -> _core.Profile | None:
        return self._recording()

    def _recording(self) -> _core.Profile | None:
        """Returns the recording that results describe, or `None` if none has finished."""
        if self.experimental_config.trace_only:
            raise RuntimeError(TRACE_ONLY)
        if self._accumulated is None and self._finished:
            *earlier, last = self._finished
            self._accumulated = last.stop_after(earlier[::-1])
        if self._accumulated is not None and not self._tree_is_built:
            # The engine assembles the recording and builds its tree on first access.
            with self._stats.timed("function_events_build_tree_call_duration_us"):
                self._accumulated.events()
            self._tree_is_built = True
        if self._accumulated is not None and self.post_processing_timeout_s == 0:
            logger().warning(
                "Profiler _parse_kineto_results timed out after 0.000 seconds, "
                "returning partial results with 0 events"
            )
            return None
        return self._accumulated

    @property
    def function_events(self) -> EventList[FunctionEvent]:
        """The list of events; those of the last recording come first."""
        recording = self._recording()
        if recording is None:
            return EventList()
        if self._events is None:
            newest_first = [session.stop() for session in reversed(self._finished)]
            with self._stats.timed("parse_kineto_call_duration_us"):
                self._events = lists.events(newest_first or [recording])
            self._stats.number_of_events = len(self._events)
        return self._events

    def _changed_events(self) -> EventList[FunctionEvent] | None:
        events = self._events
        # A list of several recordings has no single source, so changes to it are not noticed.
        if events is None or len(self._finished) > 1 or events._untouched() is not None:
            return None
        return events

    def table(
        self,
        sort_by: str | None = None,
        row_limit: int = 100,
        max_src_column_width: int = 75,
        max_name_column_width: int = 55,
        max_shapes_column_width: int = 80,
        header: str | None = None,
        top_level_events_only: bool = False,
    ) -> str:
        """Returns the events as a text table; see `EventList.table`."""
        return self.function_events.table(
            sort_by=sort_by,
            row_limit=row_limit,
            max_src_column_width=max_src_column_width,
            max_name_column_width=max_name_column_width,
            max_shapes_column_width=max_shapes_column_width,
            header=header,
            top_level_events_only=top_level_events_only,
        )

    def total_average(self) -> FunctionEventAvg:
        """Returns a row that sums all events, Python calls included."""
        return self.function_events.total_average()

    @property
    def self_cpu_time_total(self) -> float:
        """The sum of the self CPU times of all events, in microseconds, Python calls included."""
        return self.function_events.self_cpu_time_total

    def export_chrome_trace(
        self,
        path: str | os.PathLike[str],
        metadata: dict[str, str] | None = None,
        use_python_export: bool = False,  # noqa: ARG002
        cuda_graph_annotations: Any = None,
        graph_lanes: str = "none",
        default_stream: int = 7,  # noqa: ARG002
    ) -> str:
        """Writes the last recording as a Chrome trace, compressed if `path` ends in `.gz`.

        The file is written atomically. A recording can be exported several times.

        Args:
            path: The file to write; missing folders are created. The suffix `.pftrace` selects
                Perfetto's native format.
            metadata: Top-level entries of the file, as JSON texts by key.
            use_python_export: Accepted, but has no effect; there is one exporter.
            cuda_graph_annotations: Accepted, but has no effect.
            graph_lanes: Accepted, but has no effect.
            default_stream: Accepted, but has no effect.

        Returns:
            The path.

        Raises:
            AttributeError: There is no finished recording.
            OSError: The file cannot be written.
        """
        if graph_lanes not in ("all", "none"):
            raise ValueError(f"graph_lanes must be 'all' or 'none', got {graph_lanes!r}")
        if graph_lanes == "all" and not cuda_graph_annotations:
            raise ValueError(
                "graph_lanes='all' needs cuda_graph_annotations: without them every graphed event "
                "would land on default_stream, which loses the stream layout and names nothing in "
                "return"
            )
        if self.kineto_results is None:
            raise AttributeError(NO_RECORDING)
        self._write_trace(self.kineto_results, path, metadata)
        written = os.fspath(path)
        inform("wrote the trace to %s", written)
        return written

    def _write_trace(
        self,
        recording: _core.Profile,
        path: str | os.PathLike[str],
        metadata: dict[str, str] | None = None,
    ) -> None:
        """Writes a recording of this profiler, or a part of one."""
        facts = {"trace_id": trace_metadata.quoted(self.trace_id)} if self.trace_id else {}
        facts["host_name"] = trace_metadata.host_name()
        types = self.activity_filters.get(ProfilerActivity.CPU)
        _core.write_chrome_trace(
            recording,
            path,
            metadata=trace_metadata.pairs({**facts, **(metadata or {})}),
            activity_types=None if types is None else sorted(types),
            forward_arrows=forward_arrows(),
        )

    def _write_stacks(self, path: str | os.PathLike[str], metric: str) -> None:
        recording = self._recording()
        if not self.with_stack:
            raise AssertionError("export_stacks() requires with_stack=True")
        lists.export_stacks(recording, path, metric)

    def _parse_kineto_results(
        self, result: Any, timeout_s: float | None = None
    ) -> list[FunctionEvent]:
        """Returns the events of our own results, or of raw results like torch's."""
        if isinstance(result, _core.Profile):
            return recorded_events(result, timeout_s)
        return RawResults(result, self.use_device, timeout_s).events()

    def toggle_collection_dynamic(
        self, enabled: bool, activities: Iterable[ProfilerActivity]
    ) -> None:
        """Pauses or resumes collection immediately. Open ranges and other profilers are unaffected.

        Args:
            enabled: Whether to collect from now on.
            activities: The groups to toggle.

        Raises:
            RuntimeError: Nothing is being recorded.
        """
        groups = {own_activity(group) for group in activities}
        is_known = all(isinstance(group, ProfilerActivity) for group in groups)
        if not is_known or not hasattr(enabled, "__bool__"):
            signature = "(arg0: bool, arg1: collections.abc.Set[ProfilerActivity]) -> None"
            raise refuse("_toggle_collection_dynamic", signature, f"{enabled!r}, {groups!r}")
        if self._session is None and ProfilerActivity.CPU not in groups:
            return
        if self._session is None:
            raise RuntimeError(
                "Expected tls_state to be true, but got false. (Nothing is being recorded: "
                "toggle collection between start and stop.)"
            )
        self._host.toggle(self._session, bool(enabled), groups)
        if self._of_workers is not None and ProfilerActivity.CPU in groups:
            WORKERS.toggle(self._of_workers, bool(enabled))

    def __repr__(self) -> str:
        return self._shown(repr)

    def __str__(self) -> str:
        return self._shown(str)

    def _shown(self, show: Callable[[EventList], str]) -> str:
        if self.enabled and self.kineto_results is None:
            return "<unfinished torch.autograd.profile>"
        return show(self.function_events)
