"""Collections of Python's garbage as calls in a recording, under torch's name for them."""

from __future__ import annotations

import gc
import weakref
from typing import Any

from mindprof import _core


class GarbageCollections:
    """Records every collection from `start` to `stop`, on the thread that it runs on."""

    def __init__(self) -> None:
        self._running: _core.RangeHandle | None = None
        self._listener: _Listener | None = None

    def start(self) -> None:
        """Begins to listen to the collector; a second time changes nothing."""
        self.stop()
        self._listener = _Listener(weakref.ref(self, _forget_dropped))
        gc.callbacks.append(self._listener)

    def stop(self) -> None:
        """Stops listening; a second time changes nothing."""
        if self._listener in gc.callbacks:
            gc.callbacks.remove(self._listener)
        self._listener = None

    def notice(self, phase: str) -> None:
        """Opens a call when a collection begins, and closes it when it ends."""
        running, self._running = self._running, None
        if phase == "start":
            self._running = _core.garbage_collection_enter()
        elif running is not None:
            _core.record_function_with_args_exit(running)


class _Listener:
    """What the collector calls. It keeps no profiler alive that was dropped without a stop."""

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
