"""When the loaders of torch have their workers start and end, for what is said of waiting."""

from __future__ import annotations

import sys
from time import perf_counter_ns
from types import ModuleType
from typing import Any, NamedTuple

from mindprof._import_watch import ImportWatch
from mindprof._install.replacements import Replacements
from mindprof._run.span import Span

#: Where torch has its loaders, and the class of those with workers.
_MODULE = "torch.utils.data.dataloader"
_LOADER = "_MultiProcessingDataLoaderIter"

#: What starts them, what ends them, and how many there are.
_START = "__init__"
_END = "_shutdown_workers"
_COUNT = "_num_workers"

#: What asks for the next batch, and finds that there is none.
_ASKING = "_next_data"


class WorkersStart(NamedTuple):
    """A loader that has its workers start.

    Args:
        span: When.
        workers: How many there are.
    """

    span: Span
    workers: int


class WorkerTimes:
    """The times at which workers of a program's loaders start and end.

    A loop asks once more than there are batches. That last time it waits for no data: workers end
    then.
    """

    def __init__(self) -> None:
        #: When they were started.
        self.starts: list[WorkersStart] = []
        #: When loops that asked for a batch had them end, as there was none.
        self.ends: list[Span] = []
        self._replacements = Replacements()
        self._imports = ImportWatch([_MODULE], self._watch)

    def start(self) -> None:
        """Watches the loaders of torch, also if they are still to come."""
        if _MODULE in sys.modules:
            self._watch(sys.modules[_MODULE])
        self._imports.start()

    def stop(self) -> None:
        """Puts back what was there, unless something else stands there by now."""
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
            self.starts.append(WorkersStart(span, getattr(loader, _COUNT, 1)))

        def end(loader: Any) -> Any:
            began = perf_counter_ns()
            try:
                return their_end(loader)
            finally:
                # A loader that is let go of ends its workers outside of all waits.
                if sys._getframe(1).f_code.co_name == _ASKING:
                    self.ends.append(Span(began, perf_counter_ns()))

        self._replacements.replace(loader, _START, start)
        self._replacements.replace(loader, _END, end)
