"""The list that `key_averages()` returns: rows, and what can be said about all of them."""

from __future__ import annotations

from collections.abc import Iterable

from mindprof import _core
from mindprof._core import FunctionEventAvg


class EventList(list[FunctionEventAvg]):
    """Rows of a profile, as a list that can print itself as a table.

    Args:
        rows: What the list holds.
        profile: Where the rows come from; the table's footer tells of its losses.
    """

    def __init__(
        self, rows: Iterable[FunctionEventAvg] = (), *, profile: _core.Profile | None = None
    ) -> None:
        super().__init__(rows)
        self._profile = profile

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
    ) -> str:
        """Returns the rows as a table.

        Args:
            sort_by: The attribute to sort by, largest first; the order of the list if None.
            row_limit: How many rows are shown; all if negative. Totals always cover all rows.
            max_src_column_width: The widest that source locations get.
            max_name_column_width: The widest that names get; None for no limit.
            max_shapes_column_width: The widest that shapes get; None for no limit.
            header: A text above the table.
            top_level_events_only: Leave out rows whose first event ran inside another one.
            time_unit: 's', 'ms' or 'us' for all times; each chooses its own if None.

        Raises:
            AttributeError: Rows have nothing called `sort_by`.
        """
        return _core.table(
            self,
            self._profile,
            sort_by=sort_by,
            row_limit=row_limit,
            max_src_column_width=max_src_column_width,
            max_name_column_width=max_name_column_width,
            max_shapes_column_width=max_shapes_column_width,
            header=header,
            top_level_events_only=top_level_events_only,
            time_unit=time_unit,
        )

    @property
    def self_cpu_time_total(self) -> float:
        """The sum of the rows' own time on the host, in microseconds."""
        return _core.self_cpu_time_total(self)

    def total_average(self) -> FunctionEventAvg:
        """Returns one row with the key "Total" that sums all others."""
        return _core.total_average(self)

    def __str__(self) -> str:
        return self.table()
