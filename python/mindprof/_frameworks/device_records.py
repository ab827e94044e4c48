"""The records of CUDA devices, taken from CUPTI's buffers in place of Kineto's results.

Kineto starts and stops CUPTI, which then has buffers of ours. Kineto so has nothing to process when
it stops, which takes it longer than anything else. If CUPTI is not as expected, Kineto keeps the
records and returns them as results.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress

from mindprof import _core
from mindprof._results.logger import inform
from mindprof._settings.activity import ProfilerActivity
from mindprof._settings.options import SessionOptions

_logged: set[str] = set()


class RecordsOfCollection:
    """The records of one collection. It is empty if Kineto keeps them.

    Attributes:
        has_ended: Whether Kineto has stopped.
    """

    def __init__(self) -> None:
        self._own: _core.DeviceRecords | None = None
        self.has_ended = False

    def begin(self, options: SessionOptions) -> None:
        """Takes over the records, after Kineto has started.

        Args:
            options: The options of the collection.
        """
        reason = _obstacle(options)
        if reason is None:
            try:
                self._own = _core.DeviceRecords(options.budget_bytes, options.keeps_last)
            except _core.ProfilerError as error:
                reason = str(error)
        if reason is None:
            _inform_once("device events come from CUPTI's buffers")
        else:
            _inform_once(f"device events come from Kineto's results: {reason}")

    def flush(self) -> None:
        """Takes what CUPTI has so far, before Kineto stops or starts kinds of records."""
        if self._own is not None:
            # What is not flushed now comes later.
            with suppress(_core.ProfilerError):
                self._own.flush()

    def resume(self) -> None:
        """Takes over the records again, after Kineto has started kinds of records."""
        if self._own is not None:
            # A kernel without its record is counted at the end.
            with suppress(_core.ProfilerError):
                self._own.resume()

    def stop(self) -> None:
        """Takes the last records, before Kineto stops."""
        if self._own is not None:
            with suppress(_core.ProfilerError):
                self._own.stop()

    def end(self) -> _core.DeviceRecords | None:
        """Ends the collection after Kineto has stopped, and returns its records."""
        self.has_ended = True
        if self._own is not None:
            self._own.end()
        return self._own

    def detach(self) -> None:
        """Detaches CUPTI, which otherwise slows the program down until it ends.

        The records must have been read, and Kineto must still be ours, because nobody else may use
        CUPTI at the same time. Records that were not read are discarded.
        """
        own, self._own = self._own, None
        if own is not None and _may_detach():
            # CUPTI then stays attached, as after torch's own profiler.
            with suppress(_core.ProfilerError):
                own.detach()


def _obstacle(options: SessionOptions) -> str | None:
    """Returns why the records stay with Kineto whatever CUPTI is like, or `None`."""
    if options.activities != {ProfilerActivity.CUDA}:
        return "other devices than those of CUDA are recorded"
    config = options.experimental_config
    if config is not None and config.for_torch().get("profiler_metrics"):
        return "metrics of the device are measured"
    # Kineto then shuts CUPTI down when it stops, before the last records are read.
    if os.environ.get("TEARDOWN_CUPTI") == "1":
        return "TEARDOWN_CUPTI is set"
    # CUPTI must not be called without a driver.
    if not sys.modules["torch"].cuda.is_available():
        return "there is no CUDA device"
    return None


def _may_detach() -> bool:
    """Returns whether nobody wants CUPTI to stay attached.

    Kineto reads the first variable too. With the second one, it records on request from outside.
    """
    return os.environ.get("TEARDOWN_CUPTI") != "0" and "KINETO_USE_DAEMON" not in os.environ


def _inform_once(text: str) -> None:
    if text not in _logged:
        _logged.add(text)
        inform("%s", text)
