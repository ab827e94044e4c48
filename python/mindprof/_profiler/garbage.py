"""Collections of Python's garbage as calls in a recording, under torch's name for them."""

from __future__ import annotations

import gc
from typing import Any

from mindprof import _core


class GarbageCollections:
    """Records every collection from `start` to `stop`, on the thread that it runs on."""

    def __init__(self) -> None:
        self._running: _core.RangeHandle | None = None

    def start(self) -> None:
        """Begins to listen to the collector; a second time changes nothing."""
        self.stop()
        gc.callbacks.append(self._notice)

    def stop(self) -> None:
        """Stops listening; a second time changes nothing."""
        if self._notice in gc.callbacks:
            gc.callbacks.remove(self._notice)

    def _notice(self, phase: str, info: dict[str, Any]) -> None:  # noqa: ARG002
        running, self._running = self._running, None
        if phase == "start":
            self._running = _core.garbage_collection_enter()
        elif running is not None:
            _core.record_function_with_args_exit(running)
