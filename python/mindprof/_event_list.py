"""`EventList`: events or rows, and what can be said about all of them.

It is a real list. One of a recording begins with empty storage and a source in the engine: its
length, tables, averages and exports come from there, so that nothing is made for events that no one
looks at. Whoever looks at items makes them appear in the storage, from the front and in portions;
then they are ordinary items. Whoever changes the list, or sets an attribute of one of its events,
makes it a list like one that was put together by hand: from then on the engine computes from the
attributes of the items.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator
from importlib import import_module
from itertools import chain
from typing import Any, SupportsIndex, overload

from mindprof import _core
from mindprof._function_event import _DESCRIPTIONS, FunctionEvent, FunctionEventAvg

Item = FunctionEvent | FunctionEventAvg
Source = _core.Events | _core.Averages

PORTION = 4096
"""How many items appear at a time while someone walks over them."""

_DEVICES = ("cuda", "xpu", "privateuse1")
_SORT_KEYS = frozenset(_core.sort_keys())


class EventList(list[Any]):
    """Events, or rows of events, as a list that can print itself as a table.

    Args:
        args: What the list holds.
        use_device: The device that worked beside the host.
        profile_memory: Memory was recorded.
        with_flops: Floating-point operations were counted.
        profile: The profile that the rows are of, which says all of that itself.

    Example:
        >>> events = EventList([FunctionEvent(0, "aten::mm", 1, 0.0, 12.5)])
        >>> events._build_tree()
        >>> [row.key for row in events.key_averages()]
        ['aten::mm']
    """

    _source: Source | None = None
    _filled = 0

    def __init__(
        self,
        *args: Any,
        use_device: str | None = None,
        profile_memory: bool = False,
        with_flops: bool = False,
        profile: _core.Profile | None = None,
    ) -> None:
        del profile
        self._use_device = use_device
        self._profile_memory = profile_memory
        self._with_flops = with_flops
        self._tree_built = False
        self._loss: list[int] = []
        if len(args) == 1 and isinstance(args[0], (_core.Events, _core.Averages)):
            super().__init__()
            self._begin(args[0])
        else:
            super().__init__(*args)

    def _begin(self, source: Source) -> None:
        self._source = source
        self._use_device, self._profile_memory, self._with_flops = source.facts()
        self._loss = source.loss()
        self._tree_built = isinstance(source, _core.Events)

    # The storage.

    def _make(self, begin: int, end: int) -> list[Any]:
        """Makes items of the source."""
        source = self._source
        if isinstance(source, _core.Events):
            return source.make(begin, end)
        assert source is not None
        return [FunctionEventAvg._of(attributes) for attributes in source.make(begin, end)]

    def _fill(self, end: int | None = None) -> None:
        """Lets items appear up to `end`."""
        if self._source is None:
            return
        total = len(self._source)
        end = total if end is None or isinstance(self._source, _core.Averages) else min(end, total)
        if self._filled < end:
            super().extend(self._make(self._filled, end))
            self._filled = end

    def _own(self) -> None:
        """Makes the list one like any other, because it is about to change."""
        self._fill()
        self._source = None

    def _untouched(self) -> Source | None:
        """Returns the source if it still says what the list says."""
        source = self._source
        if source is None or (isinstance(source, _core.Events) and source.changed):
            return None
        # Rows are plain objects: once someone has them, anything may have been set on them.
        return source if isinstance(source, _core.Events) or self._filled == 0 else None

    def __len__(self) -> int:
        return super().__len__() if self._source is None else len(self._source)

    @overload
    def __getitem__(self, index: SupportsIndex, /) -> Any: ...
    @overload
    def __getitem__(self, index: slice, /) -> list[Any]: ...
    def __getitem__(self, index: SupportsIndex | slice, /) -> Any:
        if self._source is not None:
            if isinstance(index, slice) or int(index) < 0:
                self._fill()
            else:
                self._fill(int(index) + 1)
        return super().__getitem__(index)

    def __iter__(self) -> Iterator[Any]:
        if self._source is None or self._filled == len(self._source):
            return super().__iter__()
        return chain.from_iterable(self._portions())

    def _portions(self) -> Iterator[Iterable[Any]]:
        begin = 0
        while self._source is not None and begin < len(self._source):
            self._fill(begin + PORTION)
            portion = super().__getitem__(slice(begin, begin + PORTION))
            begin += len(portion)
            yield portion
        if begin < super().__len__():
            yield super().__getitem__(slice(begin, None))

    def __copy__(self) -> EventList:
        copied = EventList(
            self,
            use_device=self._use_device,
            profile_memory=self._profile_memory,
            with_flops=self._with_flops,
        )
        copied._tree_built, copied._loss = self._tree_built, self._loss
        return copied

    def __reduce_ex__(self, protocol: SupportsIndex, /) -> tuple[Any, ...]:
        state = {
            "_use_device": self._use_device,
            "_profile_memory": self._profile_memory,
            "_with_flops": self._with_flops,
            "_tree_built": self._tree_built,
            "_loss": self._loss,
        }
        return EventList, (list(self),), state

    def __eq__(self, other: object) -> bool:
        return list(self) == (list(other) if isinstance(other, EventList) else other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __radd__(self, other: list[Any]) -> list[Any]:
        return [*other, *self]

    # What is said.

    def table(
        self,
        sort_by: str | None = None,
        row_limit: int = 100,
        max_src_column_width: int | None = 75,
        max_name_column_width: int | None = 55,
        max_shapes_column_width: int | None = 80,
        header: str | None = None,
        top_level_events_only: bool = False,
        time_unit: str | None = None,
        *,
        percentiles: bool = False,
    ) -> str:
        """Returns the items as a table.

        Args:
            sort_by: The attribute to sort by, largest first; the order of the list if None.
            row_limit: How many rows are shown; all if negative. Totals always cover all rows.
            max_src_column_width: The widest that source locations get.
            max_name_column_width: The widest that names get; None for no limit.
            max_shapes_column_width: The widest that shapes get; None for no limit.
            header: A text above the table.
            top_level_events_only: Leave out rows whose first event ran inside another one.
            time_unit: 's', 'ms' or 'us' for all times; each chooses its own if None.
            percentiles: Have columns for how the times of a row are spread.

        Raises:
            AttributeError: The items have nothing called `sort_by`.
        """
        arguments: dict[str, Any] = {
            "sort_by": sort_by,
            "row_limit": row_limit,
            "max_src_column_width": max_src_column_width,
            "max_name_column_width": max_name_column_width,
            "max_shapes_column_width": max_shapes_column_width,
            "header": header,
            "top_level_events_only": top_level_events_only,
            "time_unit": time_unit,
            "percentiles": percentiles,
        }
        source = self._untouched()
        if source is not None and (sort_by is None or _of_any_device(sort_by) in _SORT_KEYS):
            return source.table(arguments)
        rows: list[Any] = list(self)
        if sort_by is not None and rows:
            attribute = _of_any_device(sort_by)
            rows.sort(key=lambda row: getattr(row, attribute), reverse=True)
        facts = {
            "use_device": rows[0].use_device if rows else None,
            "profile_memory": self._profile_memory,
            "with_flops": self._with_flops,
            "loss": self._loss,
        }
        return _core.given_table(rows, facts, {**arguments, "sort_by": None})

    def __str__(self) -> str:
        return self.table()

    @property
    def self_cpu_time_total(self) -> float:
        """The sum of the items' own time on the host, in microseconds."""
        source = self._untouched()
        if source is not None:
            return source.self_cpu_time_total()
        if len(self) == 0:
            return 0
        # As the total row says it: two ways of summing floats would differ in the last digit.
        total: float = self.total_average().self_cpu_time_total
        return total

    def key_averages(
        self,
        group_by_input_shapes: bool = False,
        group_by_stack_n: int = 0,
        group_by_overload_name: bool = False,
        include_python_functions: bool = False,
    ) -> EventList:
        """Returns one row per name, with counts and sums.

        Args:
            group_by_input_shapes: Tell rows of one name apart by the shapes they were given.
            group_by_stack_n: Tell rows apart by this many of the innermost frames of their callers.
            group_by_overload_name: Tell rows apart by which of the operators of one name it is.
            include_python_functions: Have rows for calls of Python functions too.

        Raises:
            AssertionError: The list is of rows already, or its tree was not built.
        """
        assert self._tree_built, "Expected tree to be built before calling key_averages"
        frames = group_by_stack_n if group_by_stack_n > 0 else 0
        source = self._untouched()
        if isinstance(source, _core.Events) and group_by_stack_n >= 0:
            averages = source.averages(
                group_by_input_shape=bool(group_by_input_shapes),
                include_python_functions=bool(include_python_functions),
                group_by_stack_n=frames,
            )
            return EventList(averages)
        grouping = {
            "by_key": True,
            "input_shapes": bool(group_by_input_shapes),
            "stack_frames": frames,
            "overload_name": bool(group_by_overload_name),
            "python_functions": bool(include_python_functions),
        }
        events = list(self)
        rows = EventList(
            use_device=self._use_device,
            profile_memory=self._profile_memory,
            with_flops=self._with_flops,
        )
        for first, sums in _core.given_groups(events, grouping):
            row = _row(events[first], sums)
            row.stack = (row.stack or [])[:group_by_stack_n]
            if not group_by_input_shapes:
                row.input_shapes = ""
            if not group_by_overload_name:
                row.overload_name = ""
            rows.append(row)
        return rows

    def total_average(self) -> FunctionEventAvg:
        """Returns one row with the key "Total" that sums all items; of none, a row of zeros."""
        total = FunctionEventAvg()
        source = self._untouched()
        if source is not None and len(source) > 0:
            (last,) = self._make(len(source) - 1, len(source))
            total = _row(last, source.total())
        elif len(self) > 0:
            grouping = {
                "by_key": False,
                "input_shapes": False,
                "stack_frames": 0,
                "overload_name": False,
                "python_functions": True,
            }
            items = list(self)
            ((_, sums),) = _core.given_groups(items, grouping)
            total = _row(items[-1], sums)
        total.key = "Total"
        return total

    def uncounted_flops(self) -> EventList:
        """Returns rows of the operators whose work is in no count of floating-point operations.

        They were given tensors, and neither they nor anything around or inside of them has a
        formula. Empty for lists that were made by hand.
        """
        source = self._untouched()
        return EventList(source.uncounted()) if isinstance(source, _core.Events) else EventList()

    # What is written.

    def export_chrome_trace(self, path: str | os.PathLike[str]) -> None:
        """Writes the events that have a trace name as a JSON array of trace events.

        Args:
            path: Where to.
        """
        entries: list[dict[str, Any]] = []
        arrow = f"cpu_to_{self._use_device or 'cuda'}"
        number = 0
        for event in self:
            if event.trace_name is None:
                continue
            thread: Any = event.thread
            if event.is_remote:
                thread = f" node_id:{event.node_id}, thread_id:{event.thread} "
            begin = event.time_range.start
            place = {"tid": thread, "pid": "CPU functions"}
            name = {"name": event.trace_name}
            times = {"ph": "X", "ts": begin, "dur": event.time_range.elapsed_us()}
            entries.append({**name, **times, **place, "args": {}})
            for _ in event.kernels:
                tail = {"id": number, "cat": arrow, "args": {}}
                entries.append({**name, "ph": "s", "ts": begin, **place, **tail})
                number += 1
        with open(path, "w", encoding="utf-8") as file:
            json.dump(entries, file)

    def supported_export_stacks_metrics(self) -> list[str]:
        """Returns what `export_stacks` can weigh stacks by."""
        return [
            "self_cpu_time_total",
            "self_cuda_time_total",
            "self_xpu_time_total",
            "self_privateuse1_time_total",
        ]

    def export_stacks(self, path: str | os.PathLike[str], metric: str) -> None:
        """Writes one line per event that has a stack: its frames, outermost first, and its weight.

        Args:
            path: Where to.
            metric: What the weight is: one of `supported_export_stacks_metrics()`.

        Raises:
            ValueError: There is no such metric.
        """
        supported = self.supported_export_stacks_metrics()
        if metric not in supported:
            raise ValueError(f"metric should be one of: {supported}")
        attribute = _of_any_device(metric)
        blanks = str.maketrans(dict.fromkeys(" ;\t\n", "_"))
        with open(path, "w", encoding="utf-8") as file:
            for event in self:
                weight = int(getattr(event, attribute))
                if event.stack and weight > 0:
                    frames = ";".join(frame.translate(blanks) for frame in reversed(event.stack))
                    file.write(f"{frames} {weight}\n")

    # What other tools take.

    def to_dicts(self) -> list[dict[str, Any]]:
        """Returns the items as dicts of plain values."""
        return [_plain(item) for item in self]

    def to_arrow(self) -> Any:
        """Returns the items as a table of pyarrow, which must be installed."""
        return import_module("pyarrow").Table.from_pylist(self.to_dicts())

    def to_pandas(self) -> Any:
        """Returns the items as a data frame of pandas, which must be installed."""
        return import_module("pandas").DataFrame(self.to_dicts())

    def to_polars(self) -> Any:
        """Returns the items as a data frame of polars, which must be installed."""
        return import_module("polars").DataFrame(self.to_dicts())

    # The tree of events that were made by hand.

    def _build_tree(self) -> None:
        """Finds which event ran inside of which, and merges duplicates into their parents."""
        self._own()
        events = list(self)
        relations = _core.given_tree(events)
        for event, (parent, _) in zip(events, relations, strict=True):
            if parent is not None:
                assert event.cpu_parent is None, (
                    f"There is already a CPU parent event for {event.key}"
                )

        def begin(position: int) -> tuple[float, float]:
            times = events[position].time_range
            return times.start, -times.end

        for position in sorted(range(len(events)), key=begin):
            event, (parent, merged) = events[position], relations[position]
            if parent is None:
                continue
            caller = events[parent]
            if merged:
                caller.kernels = event.kernels
            else:
                event.set_cpu_parent(caller)
                caller.append_cpu_child(event)
        kept = [event for event, (_, merged) in zip(events, relations, strict=True) if not merged]
        self[:] = kept
        self._show_forward_stacks()
        self._tree_built = True

    def _show_forward_stacks(self) -> None:
        """Gives what runs inside a backward node the stack of its forward."""
        nodes = [_backward_node(event) for event in self]
        forward: dict[tuple[int, int | None], list[str]] = {}
        for event, node in zip(self, nodes, strict=True):
            if node is None and event.stack is not None:
                forward.setdefault((event.sequence_nr, event.thread), event.stack)
        for event, node in zip(self, nodes, strict=True):
            if node is not None:
                assert node.fwd_thread is not None, (
                    "Expected fwd_thread to be set for backward parent"
                )
                event.stack = forward.get((node.sequence_nr, node.fwd_thread), [])


def _backward_node(event: FunctionEvent) -> FunctionEvent | None:
    at: FunctionEvent | None = event
    while at is not None and at.scope != 1:
        at = at.cpu_parent
    return at


def _row(described: Item, sums: dict[str, Any]) -> FunctionEventAvg:
    """Returns a row with these sums that is described as another item is."""
    row = FunctionEventAvg()
    for name in _DESCRIPTIONS:
        setattr(row, name, getattr(described, name))
    row.__dict__.update(sums)
    return row


def _of_any_device(name: str) -> str:
    for device in _DEVICES:
        name = name.replace(device, "device")
    return name


_COLUMNS = (
    "key",
    "count",
    "cpu_time_total",
    "self_cpu_time_total",
    "device_time_total",
    "self_device_time_total",
    "cpu_memory_usage",
    "self_cpu_memory_usage",
    "device_memory_usage",
    "self_device_memory_usage",
    "flops",
    "is_async",
    "is_user_annotation",
)


def _plain(item: Item) -> dict[str, Any]:
    values = {name: getattr(item, name, None) for name in _COLUMNS}
    values["device_type"] = item.device_type.name
    values["input_shapes"] = str(item.input_shapes) if item.input_shapes else ""
    values["stack"] = ";".join(item.stack or [])
    if isinstance(item, FunctionEventAvg):
        values.update({name: getattr(item, name) for name in ("p50", "p90", "p99", "max")})
    else:
        values.update(
            {
                "thread": item.thread,
                "start_us": item.time_range.start,
                "end_us": item.time_range.end,
                "sequence_nr": item.sequence_nr,
            }
        )
    return values


def _build_table(
    events: Iterable[Any],
    sort_by: str | None = None,
    header: str | None = None,
    row_limit: int = 100,
    max_src_column_width: int | None = 75,
    max_name_column_width: int | None = 55,
    max_shapes_column_width: int | None = 80,
    with_flops: bool = False,
    profile_memory: bool = False,
    top_level_events_only: bool = False,
    time_unit: str | None = None,
) -> str:
    """Returns events or rows as a table."""
    rows = EventList(events, with_flops=with_flops, profile_memory=profile_memory)
    return rows.table(
        sort_by=sort_by,
        header=header,
        row_limit=row_limit,
        max_src_column_width=max_src_column_width,
        max_name_column_width=max_name_column_width,
        max_shapes_column_width=max_shapes_column_width,
        top_level_events_only=top_level_events_only,
        time_unit=time_unit,
    )


def _after(prepare: Callable[[EventList], None], name: str) -> Callable[..., Any]:
    method = getattr(list, name)

    def call(self: EventList, *args: Any, **kwargs: Any) -> Any:
        prepare(self)
        return method(self, *args, **kwargs)

    call.__name__ = name
    call.__qualname__ = f"EventList.{name}"
    call.__doc__ = method.__doc__
    return call


_READING = (
    "__contains__ __reversed__ __add__ __mul__ __rmul__ __lt__ __le__ __gt__ __ge__ __repr__ "
    "index count copy"
)
_CHANGING = (
    "__setitem__ __delitem__ __iadd__ __imul__ append extend insert pop remove clear reverse sort"
)
for _name in _READING.split():
    setattr(EventList, _name, _after(EventList._fill, _name))
for _name in _CHANGING.split():
    setattr(EventList, _name, _after(EventList._own, _name))
