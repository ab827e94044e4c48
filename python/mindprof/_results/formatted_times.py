"""What events and rows have alike: means, and times as text."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

from mindprof._results.format import _format_time


class FormattedTimesMixin:
    """Means, and times as text."""

    # Not there at run time, when libraries take the annotations of a row for its fields.
    if TYPE_CHECKING:
        count: Any
        cpu_time_total: Any
        device_time_total: Any
        self_cpu_time_total: Any
        self_device_time_total: Any

    @property
    def cpu_time_str(self) -> str:
        """The mean time on the host as text."""
        return _format_time(self.cpu_time)

    @property
    def device_time_str(self) -> str:
        """The mean time on devices as text."""
        return _format_time(self.device_time)

    @property
    def cpu_time_total_str(self) -> str:
        """The time on the host as text."""
        return _format_time(self.cpu_time_total)

    @property
    def device_time_total_str(self) -> str:
        """The time on devices as text."""
        return _format_time(self.device_time_total)

    @property
    def self_cpu_time_total_str(self) -> str:
        """The time on the host without the children as text."""
        return _format_time(self.self_cpu_time_total)

    @property
    def self_device_time_total_str(self) -> str:
        """The time on devices without the children's as text."""
        return _format_time(self.self_device_time_total)

    @property
    def cpu_time(self) -> float:
        """The mean time on the host in microseconds."""
        return 0.0 if self.count == 0 else 1.0 * self.cpu_time_total / self.count

    @property
    def device_time(self) -> float:
        """The mean time on devices in microseconds."""
        return 0.0 if self.count == 0 else 1.0 * self.device_time_total / self.count

    @property
    def cuda_time(self) -> float:
        """The former name of `device_time`."""
        warn_of_former_name("`cuda_time` is deprecated, please use `device_time` instead.")
        return self.device_time


def warn_of_former_name(message: str) -> None:
    """Warns whoever read a property of the property's former name."""
    warnings.warn(message, FutureWarning, stacklevel=3)
