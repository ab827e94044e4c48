"""One collection of torch's, made into results twice: by torch and by mindprof."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import mindprof
import torch  # type: ignore[import-not-found]

#: What the collector itself takes, on the thread whose work it does it for.
OVERHEAD = ("Activity Buffer Request", "Instrumentation", "Resource", "Lazy Function Loading")


class Results(NamedTuple):
    """What both make of one collection.

    Args:
        theirs: torch's list of events.
        ours: Our profiler.
    """

    theirs: Any
    ours: Any


def collect(step: Callable[[], Any], device: str = "cpu", **options: Any) -> Results:
    """Returns what both make of two steps."""
    groups = torch.profiler.ProfilerActivity
    activities = [groups.CPU] if device == "cpu" else [groups.CPU, groups.CUDA]
    native = torch._C._autograd
    disable, kept = native._disable_profiler, []

    def keep() -> Any:
        kept.append(disable())
        return kept[-1]

    native._disable_profiler = keep
    try:
        with mindprof.profile(activities=activities, **options) as ours:
            for _ in range(2):
                step()
    finally:
        native._disable_profiler = disable
    # The first profiler checks how results are read on a small collection of its own.
    result = kept[-1]
    return Results(torch_events(result, device, options), ours)


def torch_events(result: Any, device: str, options: dict[str, Any]) -> Any:
    """Returns what torch makes of raw results, by the steps of its own profiler."""
    use_device = None if device == "cpu" else device
    parser = torch.autograd.profiler.profile(use_kineto=True, use_device=use_device)
    parsed = parser._parse_kineto_results(result)
    for event in parsed:
        # Before torch 2.15, numbers of two counts meet, and these have the work of an operator too.
        if event.name.startswith("cu") or event.name in OVERHEAD:
            event.kernels.clear()
    events = torch.autograd.profiler_util.EventList(
        parsed,
        use_device=use_device,
        profile_memory=options.get("profile_memory", False),
        with_flops=options.get("with_flops", False),
    )
    events._build_tree()
    return events
