"""`EventList`: a list of events or rows, with tables, averages and totals.

The engine computes all results. For an unchanged recording it does so from the recording; for a
list that was changed or created by hand, from the attributes of the items.
"""

from __future__ import annotations

from collections.abc import Iterable
from operator import attrgetter
from typing import Any, SupportsIndex

from mindprof import _core
from mindprof._results import notebook
from mindprof._results.event_files import EventFiles
from mindprof._results.event_frames import EventFrames
from mindprof._results.event_rows import row_of, rows_of, total_of
from mindprof._results.event_shares import show_shares
from mindprof._results.event_tree import build_tree, populate_cpu_children
from mindprof._results.format import _format_memory, _format_time
from mindprof._results.function_event_avg import FunctionEventAvg
from mindprof._results.lazy_list import Entry
from mindprof._results.metrics import of_any_device
from mindprof._torch_classes import like_torchs, meet_torch

_SORT_KEYS = frozenset(_core.sort_keys())

# The columns that a notebook shows for rows and for events.
_ROW_COLUMNS: tuple[notebook.Column, ...] = (
    ("name", attrgetter("key"), str),
    ("calls", attrgetter("count"), str),
    ("self CPU", attrgetter("self_cpu_time_total"), _format_time),
    ("CPU total", attrgetter("cpu_time_total"), _format_time),
    ("CPU mean", attrgetter("cpu_time"), _format_time),
    ("self device", attrgetter("self_device_time_total"), _format_time),
    ("device total", attrgetter("device_time_total"), _format_time),
    ("self CPU memory", attrgetter("self_cpu_memory_usage"), _format_memory),
    ("self device memory", attrgetter("self_device_memory_usage"), _format_memory),
)
_EVENT_COLUMNS: tuple[notebook.Column, ...] = (
    ("name", attrgetter("key"), str),
    ("start", attrgetter("start_us"), _format_time),
    ("duration", lambda event: event.time_range.elapsed_us(), _format_time),
    ("thread", attrgetter("thread"), str),
    ("device", lambda event: event.device_type.name, str),
)


@like_torchs
class EventList(EventFrames[Entry], EventFiles[Entry]):
    """A list of events, or of rows that average events, which prints as a table.

    Profilers create it, and programs may create one of their own events.

    Args:
        args: The items, as for `list`.
        use_device: The device that was recorded besides the CPU.
        profile_memory: Whether memory was recorded.
        with_flops: Whether floating-point operations were counted.

    Example:
        >>> from mindprof import FunctionEvent
        >>> events = EventList([FunctionEvent(0, "aten::mm", 1, 0.0, 12.5)])
        >>> events._build_tree()
        >>> [row.key for row in events.key_averages()]
        ['aten::mm']
    """

    def __init__(
        self,
        *args: Any,
        use_device: str | None = None,
        profile_memory: bool = False,
        with_flops: bool = False,
    ) -> None:
        meet_torch()
        self._use_device = use_device
        self._profile_memory = profile_memory
        self._with_flops = with_flops
        self._tree_built = False
        self._loss: list[int] = []
        if len(args) == 1 and isinstance(args[0], (_core.Events, _core.Averages)):
            self._begin(args[0])
        else:
            # Not by `super`, which may be torch's class.
            list.__init__(self, *args)

    def __copy__(self) -> EventList[Entry]:
        copied: EventList[Entry] = EventList(
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
            "_only": self._only,
        }
        return EventList, (list(self),), state

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
        max_width: int | None = None,
    ) -> str:
        """Returns the items as a text table.

        Args:
            sort_by: The attribute to sort by, largest first; keeps the order of the list if `None`.
            row_limit: The maximum number of rows; all if negative. Totals always cover all rows.
            max_src_column_width: The maximum width of source locations.
            max_name_column_width: The maximum width of names; `None` for no limit.
            max_shapes_column_width: The maximum width of shapes; `None` for no limit.
            header: A text above the table.
            top_level_events_only: Omit rows whose first event ran inside another event.
            time_unit: 's', 'ms' or 'us' for all times; `None` chooses a unit for each time.
            percentiles: Add columns for the distribution of the times of each row.
            max_width: The maximum width of the table. Columns shrink to their contents, and the
                less important ones are left out. `None` or 0 selects torch's layout.

        Raises:
            AttributeError: The items have no attribute `sort_by`.
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
            "max_width": max_width,
        }
        source = self._untouched()
        if source is not None and (sort_by is None or of_any_device(sort_by) in _SORT_KEYS):
            self._shares_shown = True
            return source.table(arguments)
        rows: list[Any] = list(self)
        if sort_by is not None and rows:
            attribute = of_any_device(sort_by)
            rows.sort(key=lambda row: getattr(row, attribute), reverse=True)
        facts = {
            "use_device": rows[0].use_device if rows else None,
            "profile_memory": self._profile_memory,
            "with_flops": self._with_flops,
            "loss": self._loss,
            "only": self._only,
        }
        text = _core.given_table(rows, facts, {**arguments, "sort_by": None})
        if source is None:
            show_shares(rows)
        return text

    def __str__(self) -> str:
        return self.table()

    @property
    def self_cpu_time_total(self) -> float:
        """The sum of the items' self CPU times, in microseconds."""
        source = self._untouched()
        if source is not None:
            return source.self_cpu_time_total()
        if len(self) == 0:
            return 0
        # The same sum as in the total row; another order of floats could change the last digit.
        total: float = self.total_average().self_cpu_time_total
        return total

    def key_averages(
        self,
        group_by_input_shapes: bool = False,
        group_by_stack_n: int = 0,
        group_by_overload_name: bool = False,
        include_python_functions: bool = False,
    ) -> EventList[FunctionEventAvg]:
        """Averages the events by name: one row per operator or range, with counts and sums.

        Args:
            group_by_input_shapes: Also group by input shapes.
            group_by_stack_n: Also group by this many of the innermost stack frames.
            group_by_overload_name: Also group by operator overload.
            include_python_functions: Include rows for calls of Python functions.

        Raises:
            AssertionError: The list already consists of rows, or its tree has not been built.
        """
        assert self._tree_built, "Expected tree to be built before calling key_averages"
        source = self._untouched()
        # The engine does not group by overload, and few recordings have overloads.
        events = source if isinstance(source, _core.Events) else None
        by_overload = group_by_overload_name and events is not None and events.has_overloads()
        if events is not None and group_by_stack_n >= 0 and not by_overload:
            averages = events.averages(
                group_by_input_shape=bool(group_by_input_shapes),
                include_python_functions=bool(include_python_functions),
                group_by_stack_n=group_by_stack_n,
            )
            return EventList(averages)
        rows = rows_of(
            list(self),
            by_input_shapes=bool(group_by_input_shapes),
            by_stack_n=group_by_stack_n,
            by_overload_name=bool(group_by_overload_name),
            python_functions=bool(include_python_functions),
        )
        return EventList(
            rows,
            use_device=self._use_device,
            profile_memory=self._profile_memory,
            with_flops=self._with_flops,
        )

    def _repr_html_(self) -> str:
        """Returns the notebook representation: rows by self time, events in list order."""
        items: list[Any] | EventList[Entry] = self
        columns = _EVENT_COLUMNS
        if len(self) > 0 and isinstance(self[0], FunctionEventAvg):
            items = sorted(self, key=attrgetter("self_cpu_time_total"), reverse=True)
            columns = _ROW_COLUMNS
            if self._use_device is None:
                columns = tuple(column for column in columns if "device" not in column[0])
        return notebook.table(columns, items, len(self))

    def total_average(self) -> FunctionEventAvg:
        """Returns a row with the key "Total" that sums all items; zeros if there are none."""
        total = FunctionEventAvg()
        source = self._untouched()
        if source is not None and len(self) > 0:
            (last,) = self._make(len(self) - 1, len(self))
            total = row_of(last, source.total())
        elif len(self) > 0:
            listed: list[Any] = list(self)
            total = total_of(listed)
        total.key = "Total"
        return total

    def uncounted_flops(self) -> EventList[FunctionEventAvg]:
        """Returns rows of the operators whose floating-point operations are not counted.

        These operators have tensor inputs, but there is no formula for them, their callers or their
        callees. The list is empty if this one was changed or created by hand.
        """
        source = self._untouched()
        return EventList(source.uncounted()) if isinstance(source, _core.Events) else EventList()

    def _populate_cpu_children(self) -> None:
        """Sets the parents and children of the events."""
        self._own()
        listed: list[Any] = list(self)
        populate_cpu_children(listed)

    def _build_tree(self) -> None:
        """Sets the parents and children of the events, and merges duplicates into their parents."""
        self._own()
        listed: list[Any] = list(self)
        built: list[Any] = build_tree(listed)
        self[:] = built
        self._tree_built = True


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
    """Returns events or rows as a text table, under torch's name and signature."""
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
