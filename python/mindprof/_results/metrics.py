"""torch's names of the metrics that rows sum and that stacks are weighted by."""

from __future__ import annotations

from mindprof import _core

# The metrics that rows sum, in column order, with the kind of their values.
SUMS = dict(_core.metrics())

STACK_METRICS = (
    "self_cpu_time_total",
    "self_cuda_time_total",
    "self_xpu_time_total",
    "self_privateuse1_time_total",
)

_DEVICES = ("cuda", "xpu", "privateuse1")


def of_any_device(name: str) -> str:
    """Replaces the kind of device in a metric's name with `device`."""
    for device in _DEVICES:
        name = name.replace(device, "device")
    return name


def check_metric(metric: str) -> None:
    """Checks that stacks can be weighted by a metric.

    Raises:
        ValueError: The metric does not exist.
    """
    if metric not in STACK_METRICS:
        raise ValueError(f"metric should be one of: {list(STACK_METRICS)}")
