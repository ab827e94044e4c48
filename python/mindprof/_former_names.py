"""The names that modules of pickled classes once had: what was written then is still read."""

from __future__ import annotations

import sys

from mindprof._profiler import activity, profiler_config, schedule, stats
from mindprof._results import device_type, event_list, function_event, function_event_avg, records

_MOVED = (
    activity,
    device_type,
    event_list,
    function_event,
    function_event_avg,
    profiler_config,
    records,
    schedule,
    stats,
)


def keep_former_names() -> None:
    """Lets the modules be found where they were before they had a folder."""
    for module in _MOVED:
        name = module.__name__.rpartition(".")[2]
        sys.modules[f"mindprof._{name}"] = module
