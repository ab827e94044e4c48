"""Records Python's garbage collections as calls, under torch's name for them."""

from __future__ import annotations

import gc
import weakref
from typing import Any

from mindprof import _core


class GarbageCollections:
    """Records every collection between `start` and `stop`, on the thread that it runs on."""

    def __init__(self) -> None:
        self._running: _core.RangeHandle | None = None
        self._listener: _Listener | None = None

    def start(self) -> None:
        """Starts listening to the collector. A second call has no effect."""
        self.stop()
        self._listener = _Listener(weakref.ref(self, _forget_dropped))
        gc.callbacks.append(self._listener)

    def stop(self) -> None:
        """Stops listening. A second call has no effect."""
        if self._listener in gc.callbacks:
            gc.callbacks.remove(self._listener)
        self._listener = None

    def notice(self, phase: str) -> None:
        """Opens a scope when a collection begins, and closes it when the collection ends."""
        running, self._running = self._running, None
        if phase == "start":
            self._running = _core.garbage_collection_enter()
        elif running is not None:
            _core.record_function_with_args_exit(running)


class _Listener:
    """The collector's callback. Its weak reference lets a profiler die that was never stopped."""

    def __init__(self, owner: weakref.ref[GarbageCollections]) -> None:
        self.owner = owner

    def __call__(self, phase: str, info: dict[str, Any]) -> None:  # noqa: ARG002
        owner = self.owner()
        if owner is not None:
            owner.notice(phase)


def _forget_dropped(owner: weakref.ref[GarbageCollections]) -> None:
    gc.callbacks[:] = [
        listener
        for listener in gc.callbacks
        if not (isinstance(listener, _Listener) and listener.owner is owner)
    ]
