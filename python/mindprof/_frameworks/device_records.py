"""The records of CUDA devices, taken from CUPTI's buffers in place of Kineto's results.

We have CUPTI record what is needed, which costs a fraction of what Kineto has it record. Kineto is
held meanwhile, so that nobody else uses CUPTI. If CUPTI refuses, Kineto starts and stops it, and it
then has buffers of ours, so Kineto has nothing to process when it stops, which takes it longer than
anything else. If CUPTI is not as expected, Kineto keeps the records and returns them as results.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import Any

from mindprof import _core
from mindprof._results.logger import inform
from mindprof._settings.activity import ProfilerActivity
from mindprof._settings.options import SessionOptions

_logged: set[str] = set()

# Why CUPTI did not record without Kineto, once it did not. It is not tried again.
_refused: list[str] = []

# A kind of device that no torch with CUDA has.
_HOLDS_KINETO = "HPU"


class RecordsOfCollection:
    """The records of one collection. It is empty if Kineto keeps them.

    Attributes:
        are_alone: Whether CUPTI records without Kineto.
        has_started: Whether Kineto has started.
        has_ended: Whether Kineto has stopped.
        stays_attached: Whether CUPTI must not be detached, because it may be in use.
    """

    def __init__(self) -> None:
        self._own: _core.DeviceRecords | None = None
        self.are_alone = False
        self.has_started = False
        self.has_ended = False
        self.stays_attached = False

    def begin_alone(self, options: SessionOptions) -> bool:
        """Has CUPTI record without Kineto, and returns whether it does.

        Args:
            options: The options of the collection, for which `can_be_alone` returned true.
        """
        try:
            self._own = _core.DeviceRecords(options.budget_bytes, options.keeps_last, is_alone=True)
        except _core.ProfilerError as error:
            refuse(str(error))
            return False
        self.are_alone = True
        _inform_once("device events come from CUPTI")
        return True

    def begin(self, options: SessionOptions) -> None:
        """Takes over the records, after Kineto has started.

        Args:
            options: The options of the collection.
        """
        reason = _obstacle(options)
        if reason is None:
            try:
                self._own = _core.DeviceRecords(
                    options.budget_bytes, options.keeps_last, is_alone=False
                )
            except _core.ProfilerError as error:
                reason = str(error)
        if reason is None:
            why = f": {_refused[0]}" if _refused else ""
            _inform_once(f"device events come from CUPTI's buffers, started by Kineto{why}")
        else:
            _inform_once(f"device events come from Kineto's results: {reason}")

    def pause(self) -> None:
        """Takes what CUPTI has so far, before Kineto stops or starts kinds of records."""
        if self._own is not None:
            # What is not taken now comes later.
            with suppress(_core.ProfilerError):
                self._own.pause()

    def resume(self) -> bool:
        """Goes on after a pause, and after Kineto has started its kinds of records.

        Returns false if nothing is recorded any more.
        """
        if self._own is None:
            return True
        try:
            self._own.resume()
        except _core.ProfilerError:
            # A kernel without its record is counted at the end, if its launch is recorded.
            return not self.are_alone
        return True

    def stop(self) -> None:
        """Takes the last records, before Kineto stops."""
        if self._own is not None:
            with suppress(_core.ProfilerError):
                self._own.stop()

    def give_way(self) -> None:
        """Takes the last records before another profiler uses CUPTI, and leaves it attached."""
        self.stays_attached = True
        self.stop()
        # Threads that were launching meanwhile may have filled another buffer.
        self.pause()

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
        if own is not None and _core.DeviceRecords.other_threads_launch_graphs():
            refuse("other threads launch CUDA graphs")
        elif own is not None and _may_detach() and not self.stays_attached:
            # CUPTI then stays attached, as after torch's own profiler.
            with suppress(_core.ProfilerError):
                own.detach()


def can_be_alone(options: SessionOptions) -> bool:
    """Returns whether CUPTI can record without Kineto.

    Args:
        options: The options of the collection.
    """
    config = options.experimental_config
    waits = config is not None and config.for_torch().get("enable_cuda_sync_events")
    return (
        _obstacle(options) is None
        and not waits
        and not _refused
        and _HOLDS_KINETO in vars(sys.modules["torch"]._C._profiler.ProfilerActivity)
        # Kineto subscribes to CUPTI when it is first prepared, and CUPTI is then detached from it.
        and _may_detach()
        and _core.DeviceRecords.can_record_alone()
    )


def refuse(reason: str) -> None:
    """Has Kineto start CUPTI from now on.

    Args:
        reason: Why CUPTI did not record without it, for the log.
    """
    if not _refused:
        _refused.append(reason)


def activities_that_hold_kineto() -> set[Any]:
    """Returns activities with which Kineto starts, but records nothing."""
    groups = sys.modules["torch"]._C._profiler.ProfilerActivity
    return {getattr(groups, _HOLDS_KINETO)}


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
