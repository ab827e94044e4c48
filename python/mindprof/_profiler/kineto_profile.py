"""`_KinetoProfile`: a profiler without a schedule, the base class of `profile`.

It keeps the options and metadata, and wraps an autograd `profile`, which does the recording.
"""

from __future__ import annotations

import importlib
import os
import sys
import warnings
from collections.abc import Callable, Iterable
from typing import Any, Literal

from mindprof import _core
from mindprof._frameworks.loader_workers import WORKERS
from mindprof._frameworks.present import backend_name, supported_activities
from mindprof._profiler import autograd_profile
from mindprof._profiler import metadata as trace_metadata
from mindprof._profiler.observer import _ITraceObserver
from mindprof._profiler.stats import _ProfilerStats
from mindprof._results.event_list import EventList
from mindprof._results.function_event import FunctionEvent
from mindprof._results.memory_timeline import MemoryProfileTimeline
from mindprof._results.rank_summary import RankSummary
from mindprof._results.shared_results import SharedResults
from mindprof._settings.activity import (
    ActivityConfigs,
    CuspyConfig,
    ProfilerActivity,
    device_of,
    parse_activities,
)
from mindprof._settings.options import (
    DEFAULT_BUDGET_BYTES,
    DEFAULT_STACK_DEPTH,
    checked_count,
    checked_only,
    is_sampled,
)
from mindprof._settings.profiler_config import _ExperimentalConfig, own_config

# The metadata key under which tools look for ranks.
_DISTRIBUTED = "distributedInfo"

# Warnings that are shown once per process.
_WARNINGS_SHOWN: set[str] = set()

# The metadata key under which tools look for the properties of devices.
_DEVICES = "deviceProperties"

# The metadata key of the name of a backend that torch does not contain.
_BACKEND = "privateuse1_backend"

# The options that a trace records as metadata, in torch's order.
FLAGS = ("profile_memory", "with_stack", "record_shapes", "with_modules", "with_flops")

# The options that a memory timeline requires.
MEMORY_FLAGS = ("record_shapes", "profile_memory", "with_stack")


def _warn_once(message: str) -> None:
    if message not in _WARNINGS_SHOWN:
        _WARNINGS_SHOWN.add(message)
        warnings.warn(message, stacklevel=4)


class _KinetoProfile(SharedResults):
    """A profiler that records from `start()` to `stop()`. See `profile` for the arguments."""

    def __init__(
        self,
        *,
        activities: Iterable[Any] | None = None,
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
        self.activities = supported_activities()
        self._takes_all_activities = activities is None
        self.activity_configs: ActivityConfigs = {}
        if activities is not None:
            self.activities, self.activity_configs = parse_activities(activities)
        self.record_shapes = record_shapes
        self.with_flops = with_flops
        self.profile_memory = profile_memory
        is_sampled(with_stack)
        self.with_stack = with_stack
        self.with_modules = with_modules
        self.experimental_config = own_config(experimental_config)
        if self.experimental_config is not None:
            self.experimental_config = autograd_profile.without_trace_only(
                self.experimental_config, with_stack
            )
        self.execution_trace_observer = execution_trace_observer
        self.acc_events = acc_events
        self.custom_trace_id_callback = custom_trace_id_callback
        self.post_processing_timeout_s = post_processing_timeout_s
        self.profiler: autograd_profile.profile | None = None
        self.has_cudagraphs = False
        self.mem_tl: MemoryProfileTimeline | None = None
        self.use_device = device_of(self.activities)
        self.preset_metadata: dict[str, str] = {}
        self._trace_metadata: dict[str, str] = {}
        # The part of the metadata about ranks that was found automatically.
        self._distributed_info: str | None = None
        self._budget_bytes = checked_count("budget_bytes", budget_bytes, "bytes")
        self._stack_depth = checked_count("stack_depth", stack_depth, "calls")
        self._only = checked_only(only, bool(profile_memory))
        if self._only and ProfilerActivity.CPU not in self.activities:
            raise ValueError(
                "only: operators run on the CPU: add ProfilerActivity.CPU to the activities"
            )
        self._has_new_results = False
        self._use_cuspy = self._wants_cuspy()

    def _wants_cuspy(self) -> bool:
        """Returns whether the user selected Cuspy, torch's other recorder for CUDA."""
        custom = _custom_config(self.experimental_config)
        cuda = self.activity_configs.get(ProfilerActivity.CUDA)
        is_configured = cuda is not None and cuda._get_profiler_config(CuspyConfig) is not None
        if is_configured or custom.get("backend") == "cuspy" or custom.get("cuspy"):
            if ProfilerActivity.CPU not in self.activities:
                raise ValueError("Cuspy currently requires CPU activity")
            return True
        if "cuspy_async_export" in custom:
            raise ValueError("cuspy_async_export is only supported with the cuspy backend")
        return False

    def start(self) -> None:
        """Starts recording. Earlier results are discarded, unless `acc_events` is set."""
        self.prepare_trace()
        self.start_trace()

    def stop(self) -> None:
        """Stops recording. A second call has no effect."""
        self.stop_trace()

    def prepare_trace(self) -> None:
        """Prepares a recording: creates the inner profiler and the trace id."""
        if self.profiler is not None and not self.acc_events:
            _warn_once(
                "Warning: Profiler clears events at the end of each cycle. Only events from the "
                "current cycle will be reported. To keep events across cycles, set acc_events=True."
            )
        if self.profiler is None or not self.acc_events:
            self.profiler = self._inner_profiler()
        self.profiler._prepare_trace()

    def _inner_profiler(self) -> autograd_profile.profile:
        filters = {
            group: set(config.activity_types)
            for group, config in self.activity_configs.items()
            if config.activity_types is not None
        }
        return autograd_profile.profile(
            use_cpu=ProfilerActivity.CPU in self.activities,
            # Kineto records CUDA in place of Cuspy.
            use_device=self.use_device,
            record_shapes=self.record_shapes,
            with_flops=self.with_flops,
            profile_memory=self.profile_memory,
            with_stack=self.with_stack,
            with_modules=self.with_modules,
            use_kineto=True,
            experimental_config=self.experimental_config,
            acc_events=self.acc_events,
            custom_trace_id_callback=self.custom_trace_id_callback,
            post_processing_timeout_s=self.post_processing_timeout_s,
            activity_filters=filters,
            budget_bytes=self._budget_bytes,
            stack_depth=self._stack_depth,
            only=self._only or None,
        )

    def start_trace(self) -> None:
        """Starts recording after `prepare_trace()`.

        Raises:
            AssertionError: `prepare_trace()` was not called.
        """
        if self.execution_trace_observer:
            self.execution_trace_observer.start()
        profiler = self._initialized("starting trace")
        # Before the recording starts, which would contain these calls.
        self._distributed_info = trace_metadata.distributed()
        profiler._start_trace()
        for flag in FLAGS:
            if getattr(self, flag):
                self.add_metadata_json(flag, "1")
        if self._distributed_info is not None:
            self.add_metadata_json(_DISTRIBUTED, self._distributed_info)
        backend = backend_name() if ProfilerActivity.PrivateUse1 in self.activities else None
        if backend is not None:
            self.add_metadata_json(_BACKEND, trace_metadata.quoted(backend))
        for key, value in self.preset_metadata.items():
            self.add_metadata_json(key, value)

    def stop_trace(self) -> None:
        """Stops recording. A second call has no effect.

        Raises:
            AssertionError: `prepare_trace()` was not called.
        """
        if self.execution_trace_observer:
            self.execution_trace_observer.stop()
        self._has_new_results = self._initialized("stopping trace")._stop_trace()
        # After the recording has stopped, which would contain these calls.
        self._update_distributed_info()
        self._note_devices()

    def _note_devices(self) -> None:
        """Adds the devices that were recorded to the metadata, unless the user has set the key."""
        is_recorded = ProfilerActivity.CUDA in (self.activities or ())
        if not is_recorded or _DEVICES in self._trace_metadata:
            return
        found = trace_metadata.device_properties()
        if found is not None:
            self.add_metadata_json(_DEVICES, found)

    def _update_distributed_info(self) -> None:
        """Updates the metadata about ranks from the current process groups.

        A program may create its process groups after the recording starts and destroy them before
        it stops. Known values are kept then, and so is a value that the user set for the key.
        """
        is_ours = self._trace_metadata.get(_DISTRIBUTED) == self._distributed_info
        if not is_ours or not trace_metadata.has_process_groups():
            return
        # Another thread may have destroyed the groups in the meantime.
        found = trace_metadata.distributed()
        if found is not None:
            self._distributed_info = found
            self.add_metadata_json(_DISTRIBUTED, found)

    def _meet_host(self) -> None:
        """Starts recording a framework that was imported after the recording started.

        `mindprof run` calls it when the import of torch ends.
        """
        if self._takes_all_activities:
            self.activities = supported_activities()
            self.use_device = device_of(self.activities)
        if self.profiler is not None:
            self.profiler._meet_host(self.use_device)
        # Data loaders of the framework may start workers while no window is open, before the window
        # that records them.
        WORKERS.meet_torch()

    def _initialized(self, doing: str) -> autograd_profile.profile:
        if self.profiler is None:
            raise AssertionError(f"Profiler must be initialized before {doing}")
        return self.profiler

    def toggle_collection_dynamic(
        self, enable: bool, activities: Iterable[ProfilerActivity]
    ) -> None:
        """Pauses or resumes collection immediately. It has no effect before `start()`.

        Args:
            enable: Whether to collect from now on.
            activities: The groups to toggle: `ProfilerActivity.CPU` for operators and ranges.

        Raises:
            RuntimeError: The profiler was started, but is not recording.
        """
        if self.profiler is not None:
            self.profiler.toggle_collection_dynamic(enable, activities)

    def _recording_for(self, doing: str, /) -> _core.Profile | None:
        return self._initialized(doing)._recording_for(doing)

    def _changed_events(self) -> EventList[FunctionEvent] | None:
        return None if self.profiler is None else self.profiler._changed_events()

    def _write_stacks(self, path: str | os.PathLike[str], metric: str) -> None:
        self._initialized("exporting stacks")._write_stacks(path, metric)

    def events(self) -> EventList[FunctionEvent]:
        """Returns the list of events, which is empty while the profiler records.

        Raises:
            AssertionError: The profiler was never started.
        """
        return self._initialized("accessing events").function_events

    def _repr_html_(self) -> str | None:
        """Returns the notebook representation: the overview of the report, and the rows."""
        recording = None if self.profiler is None else self.profiler.kineto_results
        if recording is None:
            return None
        return _core.report_overview(recording) + self.key_averages()._repr_html_()

    @property
    def lost_events(self) -> int:
        """The number of events that the last recording lost."""
        recording = None if self.profiler is None else self.profiler.kineto_results
        return 0 if recording is None else recording.lost

    def export_chrome_trace(
        self,
        path: str | os.PathLike[str],
        use_python_export: bool = False,
        cuda_graph_annotations: Any = None,
        graph_lanes: str = "none",
        default_stream: int = 7,
    ) -> str:
        """Writes the last recording as a Chrome trace, compressed if `path` ends in `.gz`.

        The file is written atomically and contains all metadata added so far. A recording can be
        exported several times.

        Args:
            path: The file to write; missing folders are created. The suffix `.pftrace` selects
                Perfetto's native format, which takes a fraction of the space.
            use_python_export: Accepted, but has no effect; there is one exporter.
            cuda_graph_annotations: Accepted, but has no effect.
            graph_lanes: Accepted, but has no effect.
            default_stream: Accepted, but has no effect.

        Returns:
            The path, which is also logged at level INFO.

        Raises:
            AssertionError: The profiler was never started.
            AttributeError: The profiler is recording.
            OSError: The file cannot be written.
        """
        return self._initialized("exporting chrome trace").export_chrome_trace(
            path,
            self._trace_metadata,
            use_python_export=use_python_export,
            cuda_graph_annotations=cuda_graph_annotations,
            graph_lanes=graph_lanes,
            default_stream=default_stream,
        )

    def rank_summary(self) -> RankSummary:
        """Sums up the last recording as one rank of a job, without a file.

        A worker of Ray or another launcher can return it, since it is small and pickles;
        `mindprof.ranks.merge` joins those of all ranks. The rank is that of torch's process group
        or of the launcher's variable `RANK`.

        Raises:
            AssertionError: The profiler was never started.
            AttributeError: The profiler is recording.
            ProfilerError: Nothing was recorded.
        """
        self._initialized("summing up a rank")
        recording = self._finished_recording("summing up a rank")
        facts = {"host_name": trace_metadata.host_name(), **self._trace_metadata}
        name = f"process {os.getpid()}"
        data = _core.summarize_profile(recording, name, trace_metadata.pairs(facts))
        return RankSummary(data)

    def export_memory_timeline(self, path: str, device: str | None = None) -> None:
        """Writes the memory in use over time, by category.

        The suffix of the path selects the format: `.html` for a page with a chart, `raw.json.gz`
        for one row per change, anything else for the sizes by category over time. `.gz` compresses
        the file. It covers the memory of this process; use `mindprof memory` for that of data
        loader workers.

        Args:
            path: The file to write.
            device: The device; the one with the most memory if `None`.

        Raises:
            ValueError: The profiler lacks one of the options that this requires.
            AssertionError: The profiler was never started, or has not stopped.
            RuntimeError: The device does not exist.
        """
        warnings.warn(
            "`export_memory_timeline` is deprecated in torch, which replaces it for CUDA only. "
            "mindprof keeps it. To avoid this warning, use `mindprof.load(path)."
            "export_memory_timeline` or `mindprof memory` on a trace file.",
            FutureWarning,
            stacklevel=2,
        )
        recording = self._recording_with_memory()
        self.mem_tl = MemoryProfileTimeline(recording)
        process = recording.own_process()
        devices = recording.memory_devices(process) or ["cpu"]
        recording.write_memory_timeline(path, devices[0] if device is None else device, process)

    def _memory_profile(self) -> Any:
        """Returns torch's `MemoryProfile` of the recording, or the recording without torch."""
        recording = self._recording_with_memory()
        if "torch" not in sys.modules:
            return recording
        return importlib.import_module("torch.profiler._memory_profiler").MemoryProfile(recording)

    def _recording_with_memory(self) -> _core.Profile:
        missing = [f"{flag}=True" for flag in MEMORY_FLAGS if not getattr(self, flag)]
        if missing:
            raise ValueError(f"{', '.join(missing)} required for memory profiling.")
        if self.profiler is None or self.profiler.kineto_results is None:
            raise AssertionError(
                "Profiler and kineto_results must be initialized for memory profiling"
            )
        return self.profiler.kineto_results

    def wait_for_exports(self) -> None:
        """Does nothing, because exports finish before they return."""

    def take_pending_cuspy_export(self) -> Any:
        """Returns `None`, because no export is ever pending."""
        return None

    def add_metadata(self, key: str, value: str) -> None:
        """Adds a text to the metadata of the trace.

        Args:
            key: The top-level key in the file.
            value: Any text.

        Raises:
            AttributeError: `value` is not a string.
        """
        self.add_metadata_json(key, trace_metadata.quoted(value))

    def add_metadata_json(self, key: str, value: str) -> None:
        """Adds JSON to the metadata of the trace. Text that is not JSON becomes a JSON string.

        Args:
            key: The top-level key in the file.
            value: The JSON text.

        Raises:
            TypeError: `value` is not a string.
        """
        self._trace_metadata[key] = value
        trace_metadata.check(key, value)

    def preset_metadata_json(self, key: str, value: str) -> None:
        """Adds JSON to the metadata of every later recording. It may be called before `start()`.

        Args:
            key: The top-level key in the file.
            value: The JSON text.
        """
        self.preset_metadata[key] = value

    def _stats(self) -> _ProfilerStats | None:
        return None if self.profiler is None else self.profiler._stats


def _custom_config(config: _ExperimentalConfig | None) -> dict[str, Any]:
    """Parses the text for other recorders: a JSON object, or just the name of a recorder."""
    text = config.custom_profiler_config if config is not None else ""
    if not text:
        return {}
    import json

    try:
        parsed = json.loads(text)
    except json.JSONDecodeError:
        return {"backend": text}
    return parsed if isinstance(parsed, dict) else {}
