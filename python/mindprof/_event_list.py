"""`EventList`: events or rows, and what can be said about all of them.

It is a real list. Of a recording, its length, tables, averages and files come from the engine, so
that nothing is made for events that no one looks at. Whoever changes the list, or sets an attribute
of one of its events, makes it a list like one that was put together by hand: from then on the
engine computes from the attributes of the items.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from importlib.util import find_spec
from typing import Any, SupportsIndex

from mindprof import _core
from mindprof._device_type import DeviceType
from mindprof._event_files import write_stacks, write_trace
from mindprof._event_frames import columns, library, plain
from mindprof._event_tree import build_tree
from mindprof._function_event import FunctionEvent
from mindprof._function_event_avg import DESCRIPTIONS, FunctionEventAvg
from mindprof._lazy_list import LazyList

Item = FunctionEvent | FunctionEventAvg
Source = _core.Events | _core.Averages

_DEVICES = ("cuda", "xpu", "privateuse1")
_DEVICE_WORK = ("CUDA", "PrivateUse1", "MTIA", "XPU")
_SORT_KEYS = frozenset(_core.sort_keys())


class EventList(LazyList):
    """Events, or rows of events, as a list that can print itself as a table.

    Args:
        args: What the list holds.
        use_device: The device that worked beside the host.
        profile_memory: Memory was recorded.
        with_flops: Floating-point operations were counted.

    Example:
        >>> events = EventList([FunctionEvent(0, "aten::mm", 1, 0.0, 12.5)])
        >>> events._build_tree()
        >>> [row.key for row in events.key_averages()]
        ['aten::mm']
    """

    _source: Source | None = None
    _shares_shown = False

    def __init__(
        self,
        *args: Any,
        use_device: str | None = None,
        profile_memory: bool = False,
        with_flops: bool = False,
    ) -> None:
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

    def _make(self, begin: int, end: int) -> list[Any]:
        """Makes items of the source."""
        source = self._source
        if isinstance(source, _core.Events):
            return source.make(begin, end)
        assert source is not None
        rows = [FunctionEventAvg._of(attributes) for attributes in source.make(begin, end)]
        if self._shares_shown:
            _show_shares(rows)
        return rows

    def _fill(self, end: int | None = None) -> None:
        # Rows are few, and made together.
        super()._fill(None if isinstance(self._source, _core.Averages) else end)

    def _untouched(self) -> Source | None:
        """Returns the source if it still says what the list says."""
        source = self._source
        if source is None or (isinstance(source, _core.Events) and source.changed):
            return None
        # Rows are plain objects: once someone has them, anything may have been set on them.
        return source if isinstance(source, _core.Events) or self._filled == 0 else None

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
            self._shares_shown = True
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
        text = _core.given_table(rows, facts, {**arguments, "sort_by": None})
        if source is None:
            _show_shares(rows)
        return text

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
        for first, sums, members in _core.given_groups(events, grouping):
            row = _row(events[first], sums)
            row._spread = [events[member].cpu_time_total for member in members]
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
            ((_, sums, _),) = _core.given_groups(items, grouping)
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
        source = self._untouched()
        if isinstance(source, _core.Events):
            source.write_event_list(path)
        else:
            write_trace(self, path, self._use_device or "cuda")

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
        self._check_metric(metric)
        source = self._untouched()
        if isinstance(source, _core.Events):
            source.write_folded(path, metric)
        else:
            write_stacks(self, path, _of_any_device(metric))

    def export_flamegraph(
        self, path: str | os.PathLike[str], metric: str = "self_cpu_time_total"
    ) -> None:
        """Draws a flame graph, as an svg that browsers zoom and search.

        Args:
            path: Where to.
            metric: What is drawn: one of `supported_export_stacks_metrics()`.

        Raises:
            ValueError: There is no such metric, or the list is no longer that of a recording.
        """
        self._check_metric(metric)
        self._recorded().write_flamegraph(path, metric)

    def export_speedscope(self, path: str | os.PathLike[str]) -> None:
        """Writes a file that speedscope opens: when each event began and ended, thread by thread.

        Args:
            path: Where to.

        Raises:
            ValueError: The list is no longer that of a recording.
        """
        self._recorded().write_speedscope(path)

    def export_parquet(self, path: str | os.PathLike[str]) -> None:
        """Writes the columns of `to_arrow()` as a Parquet file, a row per event.

        Args:
            path: Where to.

        Raises:
            ValueError: The list is no longer that of a recording.
        """
        self._recorded().write_parquet(path)

    def _check_metric(self, metric: str) -> None:
        supported = self.supported_export_stacks_metrics()
        if metric not in supported:
            raise ValueError(f"metric should be one of: {supported}")

    def _recorded(self) -> _core.Events:
        source = self._untouched()
        if not isinstance(source, _core.Events):
            raise ValueError(
                "expected the events of a recording as it is, found a list made of them"
            )
        return source

    # What other tools take.

    def to_dicts(self) -> list[dict[str, Any]]:
        """Returns the items as dicts of plain values."""
        return [plain(item) for item in self]

    def to_arrow(self) -> Any:
        """Returns the items as a table of pyarrow.

        Raises:
            ImportError: pyarrow is not installed.
        """
        return library("pyarrow").table(self._columns())

    def to_pandas(self) -> Any:
        """Returns the items as a data frame of pandas, through pyarrow if that is there.

        Raises:
            ImportError: pandas is not installed.
        """
        pandas = library("pandas")
        if find_spec("pyarrow") is None:
            return pandas.DataFrame(self.to_dicts())
        return self.to_arrow().to_pandas()

    def to_polars(self) -> Any:
        """Returns the items as a data frame of polars.

        Raises:
            ImportError: polars is not installed.
        """
        return library("polars").DataFrame(self._columns())

    def __arrow_c_stream__(self, requested_schema: object = None) -> Any:
        """Hands the items over by column, as Arrow's C data interface says."""
        return self._columns().__arrow_c_stream__(requested_schema)

    def _columns(self) -> _core.ArrowTable:
        source = self._untouched()
        return columns(self) if source is None else source.arrow()

    def _build_tree(self) -> None:
        """Finds which event ran inside of which, and merges duplicates into their parents."""
        self._own()
        self[:] = build_tree(list(self))
        self._tree_built = True


def _show_shares(items: list[Any]) -> None:
    """Sets what torch's tables leave behind on their rows: shares of the whole, as text."""
    whole = sum(item.self_cpu_time_total for item in items)
    devices = sum(item.self_device_time_total for item in items if _is_device_work(item))
    has_device = any(item.self_device_time_total > 0 for item in items)
    for item in items:
        item.self_cpu_percent = _share(item.self_cpu_time_total, whole)
        item.total_cpu_percent = 0 if item.is_async else _share(item.cpu_time_total, whole)
        if has_device:
            item.total_device_percent = _share(item.self_device_time_total, devices)


def _share(part: float, whole: float) -> str:
    return _core.format_time_share(part, whole) if whole else "NaN"


def _is_device_work(item: Any) -> bool:
    if item.device_type == DeviceType.CPU:
        return bool(item.is_legacy)
    return item.device_type.name in _DEVICE_WORK and not item.is_user_annotation


def _row(described: Item, sums: dict[str, Any]) -> FunctionEventAvg:
    """Returns a row with these sums that is described as another item is."""
    row = FunctionEventAvg()
    for name in DESCRIPTIONS:
        setattr(row, name, getattr(described, name))
    row.__dict__.update(sums)
    return row


def _of_any_device(name: str) -> str:
    for device in _DEVICES:
        name = name.replace(device, "device")
    return name


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
