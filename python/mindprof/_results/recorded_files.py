"""`RecordedFiles`: the exports that only recorded events can have.

A flame graph and a speedscope file need the whole recording, which the engine holds. Event lists
and all kinds of profiles inherit them from here.
"""

from __future__ import annotations

import os

from mindprof import _core
from mindprof._results.metrics import check_metric


class RecordedFiles:
    """Exports of recorded events, for every class that can reach them.

    A subclass implements `_recorded` alone.
    """

    def _recorded(self, doing: str, /) -> _core.Events:
        """Returns the recorded events, or raises if there are none.

        Args:
            doing: What the caller is about to do, for error messages.
        """
        raise NotImplementedError

    def export_flamegraph(
        self, path: str | os.PathLike[str], metric: str = "self_cpu_time_total"
    ) -> None:
        """Draws a flame graph: callers below, callees above, as wide as the metric is large.

        Args:
            path: The SVG file to write. Browsers can search it and zoom into it.
            metric: The metric to draw; see `EventList.supported_export_stacks_metrics`.

        Raises:
            AssertionError: The profiler was never started.
            AttributeError: The profiler has no finished recording.
            ValueError: The metric does not exist or is zero everywhere, or the event list was
                changed or created by hand.
        """
        check_metric(metric)
        self._recorded("exporting a flame graph").write_flamegraph(path, metric)

    def export_speedscope(self, path: str | os.PathLike[str]) -> None:
        """Writes a speedscope file: when each event began and ended, thread by thread.

        Args:
            path: The file to write.

        Raises:
            AssertionError: The profiler was never started.
            AttributeError: The profiler has no finished recording.
            ValueError: The event list was changed or created by hand.
        """
        self._recorded("exporting for speedscope").write_speedscope(path)
