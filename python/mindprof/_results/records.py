"""torch's small classes around events: intervals, kernels, memory records and metadata."""

from __future__ import annotations

import bisect
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from mindprof._torch_classes import Joinable, like_torchs


@like_torchs
class Interval(Joinable):
    """A time interval in microseconds.

    Args:
        start: The start of the interval.
        end: The end of the interval.
    """

    def __init__(self, start: float, end: float) -> None:
        self.start = start
        self.end = end

    def elapsed_us(self) -> float:
        """Returns the length of the interval."""
        return self.end - self.start


class _KernelFields(NamedTuple):
    name: str
    device: int
    duration: float


@like_torchs
class Kernel(_KernelFields):
    """A kernel that ran on a device for an event."""

    __slots__ = ()


class StringTable(defaultdict[str, str]):
    """A table that maps each name to itself. torch's demangles names here."""

    def __missing__(self, key: str) -> str:
        self[key] = key
        return key


class MemRecordsAcc:
    """Memory records that can be searched by time.

    Args:
        mem_records: Pairs whose first element has a method `start_ns()`.
    """

    def __init__(self, mem_records: list[Any]) -> None:
        self._records = sorted(mem_records, key=lambda pair: pair[0].start_ns())
        self._times = [pair[0].start_ns() for pair in self._records]

    def in_interval(self, start_ns: int, end_ns: int) -> Iterator[Any]:
        """Yields the records from `start_ns` to `end_ns`, both included, in order of time."""
        begin = bisect.bisect_left(self._times, start_ns)
        end = bisect.bisect_right(self._times, end_ns)
        yield from self._records[begin:end]


class _MetadataFields(NamedTuple):
    registers_per_thread: int | None
    shared_memory: int | None
    grid: list[int] | None
    block: list[int] | None
    priority: int | None
    blocks_per_sm: float | None
    warps_per_sm: float | None
    occupancy: dict[str, Any] | None
    est_occupancy_pct: float | None
    queued: int | None
    graph_id: int | None
    graph_node_id: int | None
    stream: int | None
    context: int | None
    channel: int | None
    channel_type: int | None
    hsa_queue: int | None
    bytes: int | None
    bandwidth_gb_s: float | None
    collective_name: str | None
    dtype: str | None
    in_msg_nelems: int | None
    out_msg_nelems: int | None
    in_split_size: str | None
    out_split_size: str | None
    global_rank_start: int | None
    global_rank_stride: int | None
    group_size: int | None
    process_group_name: str | None
    process_group_desc: str | None
    group_ranks: str | None
    rank: int | None
    src_rank: int | None
    dst_rank: int | None
    seq: int | None
    is_async: bool | None


@like_torchs
class EventMetadata(_MetadataFields):
    """The metadata of a kernel, a memory copy or a collective in a trace."""

    __slots__ = ()


_METADATA_KEYS = {
    "registers per thread": "registers_per_thread",
    "shared memory": "shared_memory",
    "grid": "grid",
    "block": "block",
    "priority": "priority",
    "blocks per SM": "blocks_per_sm",
    "warps per SM": "warps_per_sm",
    "occupancy": "occupancy",
    "est. achieved occupancy %": "est_occupancy_pct",
    "queued": "queued",
    "graph id": "graph_id",
    "graph node id": "graph_node_id",
    "stream": "stream",
    "context": "context",
    "channel": "channel",
    "channel_type": "channel_type",
    "hsa_queue": "hsa_queue",
    "bytes": "bytes",
    "memory bandwidth (GB/s)": "bandwidth_gb_s",
    "Collective name": "collective_name",
    "dtype": "dtype",
    "In msg nelems": "in_msg_nelems",
    "Out msg nelems": "out_msg_nelems",
    "In split size": "in_split_size",
    "Out split size": "out_split_size",
    "Global rank start": "global_rank_start",
    "Global rank stride": "global_rank_stride",
    "Group size": "group_size",
    "Process Group Name": "process_group_name",
    "Process Group Description": "process_group_desc",
    "Process Group Ranks": "group_ranks",
    "Rank": "rank",
    "Src Rank": "src_rank",
    "Dst Rank": "dst_rank",
    "Seq": "seq",
    "Is asynchronized op": "is_async",
}


def metadata_of(texts: Mapping[str, str]) -> EventMetadata | None:
    """Converts the `args` of a trace event to metadata; `None` if no key is known."""
    found: dict[str, Any] = dict.fromkeys(EventMetadata._fields)
    for key, text in texts.items():
        field = _METADATA_KEYS.get(key)
        if field == "is_async":
            found[field] = str(text) in ("1", "true")
        elif field is not None:
            found[field] = _value(text)
    if all(value is None for value in found.values()):
        return None
    return EventMetadata(**found)


def _value(text: str) -> Any:
    import json

    try:
        return json.loads(text)
    except (TypeError, ValueError):
        return text
