"""Notes when torch's data loaders start and end their workers."""

from __future__ import annotations

import sys
from time import perf_counter_ns
from types import ModuleType
from typing import Any

from mindprof._import_watch import ImportWatch
from mindprof._install.replacements import Replacements
from mindprof._run.marks import Marks, WorkersStart
from mindprof._run.span import Span

#: The module of torch's data loaders, and the class of iterators with workers.
_MODULE = "torch.utils.data.dataloader"
_LOADER = "_MultiProcessingDataLoaderIter"

#: The methods that start and end workers, and the attribute with their number.
_START = "__init__"
_END = "_shutdown_workers"
_COUNT = "_num_workers"

#: The method that asks for the next batch and may find none.
_ASKING = "_next_data"


class WorkerTimes:
    """Notes when a program's data loaders start and end their workers.

    A loop asks for one batch more than there are. The last request waits for the workers to end,
    not for data.

    Args:
        marks: Receives the times.
    """

    def __init__(self, marks: Marks) -> None:
        self._marks = marks
        self._replacements = Replacements()
        self._imports = ImportWatch([_MODULE], self._watch)

    def start(self) -> None:
        """Watches torch's data loaders, now or when they are imported."""
        if _MODULE in sys.modules:
            self._watch(sys.modules[_MODULE])
        self._imports.start()

    def stop(self) -> None:
        """Restores the replaced methods, unless someone else replaced them since."""
        self._imports.stop()
        self._replacements.undo()

    def _watch(self, module: ModuleType) -> None:
        loader: Any = vars(module).get(_LOADER)
        if loader is None or not {_START, _END} <= vars(loader).keys():
            return
        their_start, their_end = vars(loader)[_START], vars(loader)[_END]

        def start(loader: Any, *args: Any, **kwargs: Any) -> None:
            began = perf_counter_ns()
            their_start(loader, *args, **kwargs)
            span = Span(began, perf_counter_ns())
            self._marks.worker_starts.append(WorkersStart(span, getattr(loader, _COUNT, 1)))

        def end(loader: Any) -> Any:
            began = perf_counter_ns()
            try:
                return their_end(loader)
            finally:
                # A loader that is garbage collected ends its workers outside any wait.
                if sys._getframe(1).f_code.co_name == _ASKING:
                    self._marks.worker_ends.append(Span(began, perf_counter_ns()))

        self._replacements.replace(loader, _START, start)
        self._replacements.replace(loader, _END, end)
