"""`FormattedTimesMixin`: the means and formatted times that events and rows share."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

from mindprof._results.format import _format_time


class FormattedTimesMixin:
    """Mean times, and times as text. Events and rows inherit from it, as in torch."""

    # For type checkers only: some libraries read the annotations of a row as its fields.
    if TYPE_CHECKING:
        count: Any
        cpu_time_total: Any
        device_time_total: Any
        self_cpu_time_total: Any
        self_device_time_total: Any

    @property
    def cpu_time_str(self) -> str:
        """The mean CPU time as text."""
        return _format_time(self.cpu_time)

    @property
    def device_time_str(self) -> str:
        """The mean device time as text."""
        return _format_time(self.device_time)

    @property
    def cpu_time_total_str(self) -> str:
        """The total CPU time as text."""
        return _format_time(self.cpu_time_total)

    @property
    def device_time_total_str(self) -> str:
        """The total device time as text."""
        return _format_time(self.device_time_total)

    @property
    def self_cpu_time_total_str(self) -> str:
        """The self CPU time as text."""
        return _format_time(self.self_cpu_time_total)

    @property
    def self_device_time_total_str(self) -> str:
        """The self device time as text."""
        return _format_time(self.self_device_time_total)

    @property
    def cpu_time(self) -> float:
        """The mean CPU time in microseconds."""
        return 0.0 if self.count == 0 else 1.0 * self.cpu_time_total / self.count

    @property
    def device_time(self) -> float:
        """The mean device time in microseconds."""
        return 0.0 if self.count == 0 else 1.0 * self.device_time_total / self.count

    @property
    def cuda_time(self) -> float:
        """The deprecated name of `device_time`."""
        warn_of_former_name("`cuda_time` is deprecated, please use `device_time` instead.")
        return self.device_time


def warn_of_former_name(message: str) -> None:
    """Warns the reader of a property that its name is deprecated."""
    warnings.warn(message, FutureWarning, stacklevel=3)
