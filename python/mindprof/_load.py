"""`load`: reads a trace file into a profile with the results of a recorded one.

The engine reads and repairs the file; `LoadedProfile` presents it.
"""

from __future__ import annotations

import functools
import os
import warnings
from typing import IO, TYPE_CHECKING, Any

from mindprof import _core
from mindprof._results.event_list import EventList
from mindprof._results.function_event import FunctionEvent
from mindprof._results.shared_results import SharedResults

if TYPE_CHECKING:
    from dataclasses import dataclass
else:
    from mindprof._dataclass import dataclass


class RepairWarning(UserWarning):
    """Warns that parts of a trace file were repaired or left out while reading it."""


@dataclass(frozen=True)
class Repair:
    """One kind of fault that was repaired while a trace was read."""

    kind: str
    """The stable name of the fault: `truncated`, `negative_duration`..."""
    count: int
    """The number of occurrences."""
    text: str
    """A description of the fault and of its repair."""


class LoadedProfile(SharedResults):
    """The profile in a trace file, as `load` returns it.

    It has the same results and exports as a profiler that has stopped.
    """

    path: str
    """The path of the file, or a description of the source such as `<bytes>`."""
    repairs: tuple[Repair, ...]
    """The repairs that reading the file needed; empty for an intact file."""

    def __init__(self, path: str, recording: _core.Profile, repairs: tuple[Repair, ...]) -> None:
        self.path = path
        self.repairs = repairs
        self._recording = recording

    def events(self) -> EventList[FunctionEvent]:
        """Returns the list of events."""
        return self._events

    @functools.cached_property
    def _events(self) -> EventList[FunctionEvent]:
        return EventList(self._recording.events())

    def _recording_for(self, _doing: str, /) -> _core.Profile:
        return self._recording

    def _recorded(self, doing: str, /) -> _core.Events:
        return self.events()._recorded(doing)

    def _write_stacks(self, path: str | os.PathLike[str], metric: str) -> None:
        self.events().export_stacks(path, metric)

    @functools.cached_property
    def metadata(self) -> dict[str, Any]:
        """The trace's metadata: the values of the top-level keys of the file."""
        return {key: _value(text) for key, text in _core.profile_metadata(self._recording)}

    @functools.cached_property
    def loss(self) -> dict[str, int]:
        """The number of lost events by cause; empty if none were lost."""
        return _core.profile_loss(self._recording)

    @property
    def lost_events(self) -> int:
        """The number of events that the recording lost."""
        return self._recording.lost

    def export_chrome_trace(self, path: str | os.PathLike[str]) -> str:
        """Writes a Chrome trace, compressed if `path` ends in `.gz`, and returns the path.

        Args:
            path: The file to write; missing folders are created. The suffix `.pftrace` selects
                Perfetto's native format.

        Raises:
            OSError: The file cannot be written.
        """
        _core.write_chrome_trace(self._recording, path, metadata=[], activity_types=None)
        return os.fspath(path)

    def export_parquet(self, path: str | os.PathLike[str]) -> None:
        """Writes the events as an Apache Parquet file with one row per event.

        Args:
            path: The file to write.

        Raises:
            ValueError: The list of events was changed.
        """
        self.events().export_parquet(path)

    def export_memory_timeline(
        self,
        path: str | os.PathLike[str],
        device: str | None = None,
        *,
        process: int | None = None,
    ) -> None:
        """Writes the memory in use over time. A trace does not record its categories.

        The suffix of the path selects the format: `.html` for a page with a chart, `raw.json.gz`
        for one row per change, anything else for the sizes over time. `.gz` compresses the file.

        Args:
            path: The file to write.
            device: The device; the one with the most memory if `None`.
            process: The process; the one with the most memory on the device if `None`.

        Raises:
            ValueError: The trace has no memory events, or none of the process.
            RuntimeError: The device does not exist.
        """
        devices = self._recording.memory_devices(process)
        if not devices and process is not None and self._recording.memory_devices():
            raise ValueError(f"the trace has no memory events of process {process}")
        if not devices:
            raise ValueError("profile_memory=True required for memory profiling.")
        wanted = devices[0] if device is None else device
        self._recording.write_memory_timeline(path, wanted, process)

    def __getstate__(self) -> dict[str, Any]:
        # Unchanged events can be read from the recording again, so they are not pickled.
        state = dict(vars(self))
        if "_events" in state and self._events._untouched() is not None:
            del state["_events"]
        return state

    def _repr_html_(self) -> str:
        """Returns the notebook representation: the overview of the report, and the rows."""
        return _core.report_overview(self._recording) + self.key_averages()._repr_html_()

    def __repr__(self) -> str:
        return f"<mindprof.LoadedProfile of {self.path!r}, {len(self._recording)} events>"


def load(
    source: str | os.PathLike[str] | bytes | bytearray | memoryview | IO[Any],
    *,
    max_bytes: int | None = None,
) -> LoadedProfile:
    """Reads a trace that torch.profiler or mindprof wrote, compressed or not.

    A damaged file is read as far as possible, with a `RepairWarning`.

    Args:
        source: The path of a file, its bytes, or an open file, which is read to the end.
        max_bytes: The maximum size of the uncompressed text. If `None`, there is no limit for
            uncompressed files; for compressed ones it is 1 GiB or 100 times the size of the file,
            whichever is larger.

    Raises:
        OSError: The file does not exist or cannot be read.
        TypeError: `source` has an unsupported type.
        ValueError: `max_bytes` is less than one.
        ProfilerError: The source is not a trace, or is larger than `max_bytes`.

    Example:
        >>> import mindprof, tempfile
        >>> with mindprof.profile() as prof:
        ...     with mindprof.record_function("step"):
        ...         pass
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = prof.export_chrome_trace(f"{folder}/trace.json")
        ...     loaded = mindprof.load(path)
        >>> [row.key for row in loaded.key_averages()]
        ['step']
    """
    if max_bytes is not None and max_bytes < 1:
        raise ValueError(f"max_bytes must be at least one, got {max_bytes}")
    if isinstance(source, (str, os.PathLike)):
        text = os.fspath(source)
        recording, found = _core.load_profile(source, max_bytes)
    else:
        text = _name_of(source)
        recording, found = _core.load_bytes(_bytes_of(source), text, max_bytes)
    repairs = tuple(Repair(*repair) for repair in found)
    if repairs:
        said = "; ".join(repair.text for repair in repairs)
        warnings.warn(f"{text}: {said}", RepairWarning, stacklevel=2)
    return LoadedProfile(text, recording, repairs)


def _bytes_of(source: Any) -> bytes:
    if not hasattr(source, "read"):
        if isinstance(source, (bytes, bytearray, memoryview)):
            return bytes(source)
        kind = type(source).__name__
        raise TypeError(f"expected a path, bytes or an open file, found {kind}")
    read: str | bytes = source.read()
    return read.encode() if isinstance(read, str) else bytes(read)


def _name_of(source: Any) -> str:
    """Returns the name of a source other than a path, for messages."""
    name = getattr(source, "name", None)
    return name if isinstance(name, str) else f"<{type(source).__name__}>"


def _value(text: str) -> Any:
    import json

    try:
        return json.loads(text)
    except ValueError:
        return text
