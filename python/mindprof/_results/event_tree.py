"""The tree of events in lists that were changed or created by hand.

The engine finds the parents; this module sets them on the events.
"""

from __future__ import annotations

from mindprof import _core
from mindprof._results.function_event import FunctionEvent


def build_tree(events: list[FunctionEvent]) -> list[FunctionEvent]:
    """Sets parents and children, and returns the events without duplicates of their parents."""
    relations = _core.given_tree(events)
    for event, (parent, _) in zip(events, relations, strict=True):
        if parent is not None:
            assert event.cpu_parent is None, f"There is already a CPU parent event for {event.key}"

    def begin(position: int) -> tuple[float, float]:
        times = events[position].time_range
        return times.start, -times.end

    for position in sorted(range(len(events)), key=begin):
        event, (parent, merged) = events[position], relations[position]
        if parent is None:
            continue
        caller = events[parent]
        if merged:
            caller.kernels = event.kernels
        else:
            event.set_cpu_parent(caller)
            caller.append_cpu_child(event)
    kept = [event for event, (_, merged) in zip(events, relations, strict=True) if not merged]
    _show_forward_stacks(kept)
    return kept


def populate_cpu_children(events: list[FunctionEvent]) -> None:
    """Sets parents and children, and nothing else."""
    for event, (parent, _) in zip(events, _core.given_tree(events), strict=True):
        if parent is not None:
            event.set_cpu_parent(events[parent])
            events[parent].append_cpu_child(event)


def _show_forward_stacks(events: list[FunctionEvent]) -> None:
    """Gives backward nodes and the events inside them the stack of the forward operator."""
    nodes = [_backward_node(event) for event in events]
    forward: dict[tuple[int, int | None], list[str]] = {}
    for event, node in zip(events, nodes, strict=True):
        if node is None and event.stack is not None:
            forward.setdefault((event.sequence_nr, event.thread), event.stack)
    for event, node in zip(events, nodes, strict=True):
        if node is not None:
            assert node.fwd_thread is not None, "Expected fwd_thread to be set for backward parent"
            event.stack = forward.get((node.sequence_nr, node.fwd_thread), [])


def _backward_node(event: FunctionEvent) -> FunctionEvent | None:
    at: FunctionEvent | None = event
    while at is not None and at.scope != 1:
        at = at.cpu_parent
    return at
