"""`RecordedList`: a list of events or rows that may be backed by a recording.

While it is, the engine computes its length, tables, averages and files, and no objects are created
for events that nobody reads. Changing the list, or an attribute of one of its events, detaches it
from the recording.
"""

from __future__ import annotations

from typing import Any

from mindprof import _core
from mindprof._results.event_shares import show_shares
from mindprof._results.function_event_avg import FunctionEventAvg
from mindprof._results.lazy_list import Entry, LazyList

Source = _core.Events | _core.Averages


class RecordedList(LazyList[Entry]):
    """A list with facts about its recording, which is its source until the list changes."""

    _source: Source | None = None
    _shares_shown = False
    _use_device: str | None = None
    _profile_memory = False
    _with_flops = False
    _tree_built = False
    _loss: list[int] = []  # noqa: RUF012 - set as a whole, never added to
    _only: list[str] = []  # noqa: RUF012 - as above

    def _begin(self, source: Source) -> None:
        self._source = source
        self._use_device, self._profile_memory, self._with_flops = source.facts()
        self._loss = source.loss()
        self._only = source.only()
        self._tree_built = isinstance(source, _core.Events)

    def _make(self, begin: int, end: int) -> list[Any]:
        """Creates the items from `begin` to `end` from the source."""
        source = self._source
        if isinstance(source, _core.Events):
            return source.make(begin, end)
        assert source is not None
        rows = [FunctionEventAvg._of(attributes) for attributes in source.make(begin, end)]
        if self._shares_shown:
            show_shares(rows)
        return rows

    def _total(self) -> int:
        source = self._source
        return source.count_shown() if isinstance(source, _core.Events) else super()._total()

    def _fill(self, end: int | None = None) -> None:
        # Rows are few, so all of them are created together.
        super()._fill(None if isinstance(self._source, _core.Averages) else end)

    def _untouched(self) -> Source | None:
        """Returns the source, or `None` if the list may differ from it."""
        source = self._source
        if source is None or (isinstance(source, _core.Events) and source.changed):
            return None
        # Rows are plain objects: once created, their attributes may have been set.
        return source if isinstance(source, _core.Events) or self._filled == 0 else None
