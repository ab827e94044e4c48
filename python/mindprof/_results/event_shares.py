"""The percentages that torch's tables write onto their rows, as text."""

from __future__ import annotations

from typing import Any

from mindprof import _core
from mindprof._results.device_type import DeviceType


def show_shares(items: list[Any]) -> None:
    """Sets the percentages of events or rows that were shown in one table."""
    whole = sum(item.self_cpu_time_total for item in items)
    devices = sum(item.self_device_time_total for item in items if _is_device_work(item))
    has_device = any(item.self_device_time_total > 0 for item in items)
    for item in items:
        item.self_cpu_percent = _share(item.self_cpu_time_total, whole)
        item.total_cpu_percent = 0 if item.is_async else _share(item.cpu_time_total, whole)
        if has_device:
            item.total_device_percent = _share(item.self_device_time_total, devices)


def _share(part: float, whole: float) -> str:
    return _core.format_time_share(part, whole) if whole else "NaN"


def _is_device_work(item: Any) -> bool:
    if item.device_type == DeviceType.CPU:
        return bool(item.is_legacy)
    return _core.is_device_work(item.device_type.name) and not item.is_user_annotation
