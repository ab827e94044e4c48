"""Records Python's garbage collections as calls, under torch's name for them."""

from __future__ import annotations

import gc
import weakref

from mindprof import _core


class GarbageCollections:
    """Records every collection between `start` and `stop`, on the thread that it runs on."""

    def __init__(self) -> None:
        self._listener: _core.GarbageListener | None = None

    def start(self) -> None:
        """Starts listening to the collector. A second call has no effect."""
        self.stop()
        self._listener = _core.GarbageListener(weakref.ref(self, _forget_dropped))
        gc.callbacks.append(self._listener)

    def stop(self) -> None:
        """Stops listening. A second call has no effect."""
        if self._listener in gc.callbacks:
            gc.callbacks.remove(self._listener)
        self._listener = None


def _forget_dropped(owner: weakref.ref[GarbageCollections]) -> None:
    gc.callbacks[:] = [
        listener
        for listener in gc.callbacks
        if not (isinstance(listener, _core.GarbageListener) and listener.owner is owner)
    ]
