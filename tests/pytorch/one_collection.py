"""One collection of torch's, made into results twice: by torch and by mindprof."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any, NamedTuple

import mindprof
import torch  # type: ignore[import-not-found]

#: What the collector itself takes, on the thread whose work it does it for, by CUPTI's kinds.
OVERHEAD = (
    "Activity Buffer Request",
    "Buffer Flush",
    "Command Buffer Full",
    "Driver Compiler",
    "Instrumentation",
    "Lazy Function Loading",
    "Resource",
    "Runtime Triggered Module Loading",
)

NO_THREAD = -1


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

    def steps() -> None:
        for _ in range(2):
            step()

    return _results(lambda collected: collected, steps, device, options)


def take(made: Any, **options: Any) -> Results:
    """Returns what both make of a collection of CUDA that was made by hand."""
    return _results(lambda _: made, lambda: None, "cuda", options)


def _results(
    change: Callable[[Any], Any], run: Callable[[], Any], device: str, options: dict[str, Any]
) -> Results:
    groups = torch.profiler.ProfilerActivity
    has_device = device != "cpu" and torch.cuda.is_available()
    activities = [groups.CPU, groups.CUDA] if has_device else [groups.CPU]
    # The first profiler checks how results are read on a small collection of its own.
    with mindprof.profile(activities=[groups.CPU]):
        pass
    native = torch._C._autograd
    disable, kept = native._disable_profiler, []

    def keep() -> Any:
        kept.append(change(disable()))
        return kept[-1]

    native._disable_profiler = keep
    try:
        with mindprof.profile(activities=activities, **options) as ours:
            run()
    finally:
        native._disable_profiler = disable
    return Results(torch_events(kept[-1], device, options), ours)


def torch_events(result: Any, device: str, options: dict[str, Any]) -> Any:
    """Returns what torch makes of raw results, by the steps of its own profiler."""
    use_device = None if device == "cpu" else device
    parser = torch.autograd.profiler.profile(use_kineto=True)
    # Afterwards: it refuses a device that is not there, whose results may be made by hand.
    parser.use_device = use_device
    parsed = parser._parse_kineto_results(result)
    correct_calls(parsed, result)
    events = torch.autograd.profiler_util.EventList(
        parsed,
        use_device=use_device,
        profile_memory=options.get("profile_memory", False),
        with_flops=options.get("with_flops", False),
    )
    events._build_tree()
    for event in events:
        if overlap(event.cpu_children):
            event.__class__ = Covered
    return events


class Covered(torch.autograd.profiler_util.FunctionEvent):  # type: ignore[misc]
    """An event whose children overlap: what they cover counts once."""

    @property
    def self_cpu_time_total(self) -> float:
        """Returns the time that no child covers, in microseconds."""
        time: float = self.cpu_time_total
        end = self.time_range.start
        for child in sorted(self.cpu_children, key=lambda child: child.time_range.start):
            time -= max(child.time_range.end - max(child.time_range.start, end), 0)
            end = max(end, child.time_range.end)
        return time


def overlap(events: list[Any]) -> bool:
    """Returns whether some begin before others have ended."""
    spans = sorted((event.time_range.start, event.time_range.end) for event in events)
    return any(start < end for (_, end), (start, _) in itertools.pairwise(spans))


def correct_calls(events: list[Any], result: Any) -> None:
    """Corrects what torch says of calls of CUDA's runtime and of its collector's own work.

    Calls that no operator asked for are counted to the thread that began the collection, whoever
    made them: there they lie across its operators, which loses parents, and time. Before torch 2.15
    numbers of two counts meet as well: such a call then has the work of any operator, and draws
    the calls of that operator to its own thread.
    """
    host = [event for event in events if event.device_type.name == "CPU"]
    calls = [event for event in host if is_call(event.name)]
    made = {id(event) for event in calls}
    scopes = [event for event in host if id(event) not in made]
    asked = asking_threads(result)
    lives = Lives()
    behind: dict[int, set[int]] = {}
    for event in scopes:
        lives.add(event.thread, event)
        behind.setdefault(event.device_resource_id, set()).add(event.thread)
    for call in calls:
        call.kernels.clear()
        if (thread := asked.get(moment(call))) is not None:
            call.thread = thread
            lives.add(thread, call)
            behind.setdefault(call.device_resource_id, set()).add(thread)
    for call in calls:
        number = call.device_resource_id
        if moment(call) in asked:
            continue
        if number and number in behind:
            call.thread = lives.nearest(behind[number], call)
        else:
            # What the collector itself did has none, and lies on no thread of the program.
            call.thread = -number if number else NO_THREAD


class Lives:
    """When threads were at work."""

    def __init__(self) -> None:
        self._spans: dict[int, tuple[float, float]] = {}

    def add(self, thread: int, event: Any) -> None:
        """Notes an event of a thread."""
        start, end = event.time_range.start, event.time_range.end
        first, last = self._spans.get(thread, (start, end))
        self._spans[thread] = min(first, start), max(last, end)

    def nearest(self, threads: set[int], call: Any) -> int:
        """Returns which of some threads was at work when a call began, or nearest to it.

        Its number alone does not tell: those of threads that have ended are used again.
        """
        time: float = call.time_range.start

        def distance(thread: int) -> float:
            first, last = self._spans[thread]
            return max(first - time, time - last, 0)

        return min(threads, key=distance)


def asking_threads(result: Any) -> dict[tuple[Any, ...], int]:
    """Returns the threads of calls that operators asked for, as the collector has them."""
    zero = result.trace_start_ns()
    return {
        (
            event.name(),
            event.device_resource_id(),
            (event.start_ns() - zero) / 1000,
            (event.end_ns() - zero) / 1000,
        ): event.start_thread_id()
        for event in result.events()
        if event.linked_correlation_id() and is_call(event.name())
    }


def moment(call: Any) -> tuple[Any, ...]:
    """Returns what tells calls apart."""
    return (call.name, call.device_resource_id, call.time_range.start, call.time_range.end)


def is_call(name: str) -> bool:
    """Returns whether something is a call of CUDA's runtime, or its collector's own work."""
    return name.startswith("cu") or name in OVERHEAD
