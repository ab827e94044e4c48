"""`profile`: the profiler as its users hold it."""

from __future__ import annotations

import os
from types import TracebackType

from mindprof import _core
from mindprof._event_list import EventList


class profile:
    """Records what the host runs, on all threads, from `start()` to `stop()`.

    Profilers may be nested or overlap: each gets every event of its own time.

    Args:
        record_shapes: Keep the shapes of what operators are given.
        budget_bytes: How much memory the recording may take. Beyond it the newest events are
            dropped; how many is told in the table's footer, in exported traces and by
            `lost_events`.

    Example:
        >>> import mindtorch_v2 as torch
        >>> with profile() as prof:
        ...     total = torch.ones((2, 2)).sum()
        >>> "aten::sum" in [row.key for row in prof.key_averages()]
        True
    """

    def __init__(self, *, record_shapes: bool = False, budget_bytes: int = 256 << 20) -> None:
        self.record_shapes = record_shapes
        self._budget_bytes = budget_bytes
        self._session: _core.Session | None = None
        self._profile: _core.Profile | None = None

    def start(self) -> None:
        """Begins to record. What an earlier run recorded is forgotten."""
        self._profile = None
        self._session = _core.Session(
            record_shapes=self.record_shapes, budget_bytes=self._budget_bytes
        )

    def stop(self) -> None:
        """Ends the recording. A second call changes nothing.

        Raises:
            AssertionError: `start()` was never called.
        """
        assert self._was_started, "Profiler must be initialized before stopping trace"
        if self._session is not None:
            self._profile = self._session.stop()
            self._session = None

    def __enter__(self) -> profile:
        self.start()
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc_val: BaseException | None,
        exc_tb: TracebackType | None,
    ) -> None:
        self.stop()

    def key_averages(
        self, group_by_input_shape: bool = False, *, include_python_functions: bool = False
    ) -> EventList:
        """Returns one row per name, with counts and sums.

        While the profiler records, the list is empty.

        Args:
            group_by_input_shape: Tell rows of one name apart by the shapes they were given.
            include_python_functions: Have rows for calls of Python functions too.

        Raises:
            AssertionError: `start()` was never called.
        """
        assert self._was_started, "Profiler must be initialized before getting key averages"
        if self._profile is None:
            return EventList()
        rows = self._profile.averages(
            group_by_input_shape=group_by_input_shape,
            include_python_functions=include_python_functions,
        )
        return EventList(rows, profile=self._profile)

    @property
    def _was_started(self) -> bool:
        return self._session is not None or self._profile is not None

    @property
    def lost_events(self) -> int:
        """How many events were not kept; 0 while the profiler records."""
        return 0 if self._profile is None else self._profile.lost

    def export_chrome_trace(self, path: str | os.PathLike[str]) -> None:
        """Writes the recording as a Chrome trace, compressed if `path` ends in `.gz`.

        The file is whole or absent. Exporting again works.

        Args:
            path: Where to; folders on the way are made.

        Raises:
            AssertionError: There is no finished recording.
            OSError: The file cannot be written.
        """
        assert self._profile is not None, "Profiler must be stopped before exporting chrome trace"
        self._profile.write_chrome_trace(path)
