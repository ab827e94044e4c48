"""`load`: a trace file as a profile like one that was just recorded."""

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
    """Something in a trace file had to be repaired, or left out, to read it."""


@dataclass(frozen=True)
class Repair:
    """One kind of fault that a trace had, and could be read in spite of."""

    kind: str
    """Its name, which does not change: `truncated`, `negative_duration`..."""
    count: int
    """How often it was found."""
    text: str
    """What was wrong and what was done about it, in words."""


class LoadedProfile(SharedResults):
    """The profile in a trace file: what `load` returns.

    It says and writes what a profile says and writes after its recording.
    """

    path: str
    """The file that it was read from; of bytes, their type."""
    repairs: tuple[Repair, ...]
    """What had to be repaired; empty for a sound file."""

    def __init__(self, path: str, recording: _core.Profile, repairs: tuple[Repair, ...]) -> None:
        self.path = path
        self.repairs = repairs
        self._recording = recording

    def events(self) -> EventList[FunctionEvent]:
        """Returns the events one by one."""
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
        """What the trace says of itself, by the keys at its top."""
        return {key: _value(text) for key, text in _core.profile_metadata(self._recording)}

    @functools.cached_property
    def loss(self) -> dict[str, int]:
        """How many events are missing, by cause; empty if none is."""
        return _core.profile_loss(self._recording)

    @property
    def lost_events(self) -> int:
        """How many events are missing."""
        return self._recording.lost

    def export_chrome_trace(self, path: str | os.PathLike[str]) -> str:
        """Writes it as a Chrome trace, compressed if `path` ends in `.gz`, and returns the path.

        Args:
            path: Where to; folders on the way are made. `.pftrace` gives Perfetto's own format.

        Raises:
            OSError: The file cannot be written.
        """
        _core.write_chrome_trace(self._recording, path, metadata=[], activity_types=None)
        return os.fspath(path)

    def export_parquet(self, path: str | os.PathLike[str]) -> None:
        """Writes the events as Apache Parquet, a row each.

        Args:
            path: Where to.
        """
        self.events().export_parquet(path)

    def export_memory_timeline(
        self,
        path: str | os.PathLike[str],
        device: str | None = None,
        *,
        process: int | None = None,
    ) -> None:
        """Writes how much memory was in use when. What for, a trace does not tell.

        The end of the name says what is written: `.html` a page with a chart, `raw.json.gz` one row
        for each change, anything else the sizes over time; with `.gz` compressed.

        Args:
            path: Where to.
            device: Of which device; of the one with the most memory if None.
            process: Of which process; of the one with the most memory there if None.

        Raises:
            ValueError: The trace was recorded without memory, or without any of the process.
            RuntimeError: There is no such device.
        """
        devices = self._recording.memory_devices(process)
        if not devices and process is not None and self._recording.memory_devices():
            raise ValueError(f"there is no memory of process {process}")
        if not devices:
            raise ValueError("profile_memory=True required for memory profiling.")
        wanted = devices[0] if device is None else device
        self._recording.write_memory_timeline(path, wanted, process)

    def __getstate__(self) -> dict[str, Any]:
        # Events that are as they were read need not travel beside their recording.
        state = dict(vars(self))
        if "_events" in state and self._events._untouched() is not None:
            del state["_events"]
        return state

    def _repr_html_(self) -> str:
        """Returns what a notebook shows: the rows, those with the most own time first."""
        return self.key_averages()._repr_html_()

    def __repr__(self) -> str:
        return f"<mindprof.LoadedProfile of {self.path!r}, {len(self._recording)} events>"


def load(
    source: str | os.PathLike[str] | bytes | bytearray | memoryview | IO[Any],
    *,
    max_bytes: int | None = None,
) -> LoadedProfile:
    """Reads a trace that torch.profiler or mindprof wrote, plain or compressed.

    A file that is damaged in part gives what can be read of it, and a `RepairWarning`.

    Args:
        source: The path of a file, its bytes, or an open file, which is read to its end.
        max_bytes: How much text is read, unpacked. If None, all of what is not compressed; of the
            rest 1 GiB or 100 times its size, whichever is more.

    Raises:
        OSError: There is no such file, or it cannot be read.
        TypeError: It is none of these.
        ValueError: `max_bytes` is less than one.
        ProfilerError: It holds no trace, or more than `max_bytes`.

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
        raise ValueError(f"expected max_bytes of at least one, found {max_bytes}")
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
        raise TypeError(f"load takes a path, bytes or an open file, not {kind}")
    read: str | bytes = source.read()
    return read.encode() if isinstance(read, str) else bytes(read)


def _name_of(source: Any) -> str:
    """Returns what messages call a source that is no path."""
    name = getattr(source, "name", None)
    return name if isinstance(name, str) else f"<{type(source).__name__}>"


def _value(text: str) -> Any:
    import json

    try:
        return json.loads(text)
    except ValueError:
        return text
