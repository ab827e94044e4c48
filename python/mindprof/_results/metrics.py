"""What rows sum and are sorted by, and stacks are weighed by, under torch's names."""

from __future__ import annotations

from mindprof import _core

# What rows sum, in the order of columns, with the kind of the numbers.
SUMS = dict(_core.metrics())

STACK_METRICS = (
    "self_cpu_time_total",
    "self_cuda_time_total",
    "self_xpu_time_total",
    "self_privateuse1_time_total",
)

_DEVICES = ("cuda", "xpu", "privateuse1")


def of_any_device(name: str) -> str:
    """Returns the name of a metric as it is called for any kind of device."""
    for device in _DEVICES:
        name = name.replace(device, "device")
    return name


def check_metric(metric: str) -> None:
    """Refuses what stacks cannot be weighed by.

    Raises:
        ValueError: `metric` is none of those that there are.
    """
    if metric not in STACK_METRICS:
        raise ValueError(f"metric should be one of: {list(STACK_METRICS)}")
