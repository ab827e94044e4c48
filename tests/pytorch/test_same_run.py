"""Both profilers record one run of a real torch, and say the same of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

import mindprof
import pytest
import torch  # type: ignore[import-not-found]

from tests.pytorch.workloads import NAMES, workload


def record_twice(step: Callable[[], Any], **options: Any) -> tuple[Any, Any]:
    """Returns torch's profiler and ours, which both recorded two steps."""
    all_threads = torch._C._profiler._ExperimentalConfig(profile_all_threads=True)
    activities = [torch.profiler.ProfilerActivity.CPU]
    # The observer's probe runs operators, which torch's profiler is not to see.
    mindprof.supported_activities()
    with (
        torch.profiler.profile(
            activities=activities, experimental_config=all_threads, **options
        ) as theirs,
        mindprof.profile(activities=activities, **options) as ours,
    ):
        for _ in range(2):
            step()
    return theirs, ours


@pytest.fixture(scope="module", params=NAMES)
def recordings(request: pytest.FixtureRequest) -> tuple[Any, Any]:
    return record_twice(workload(request.param), record_shapes=True)


def counts(averages: Any) -> Counter[tuple[str, str]]:
    return Counter({(row.key, str(row.input_shapes)): row.count for row in averages})


def ordered(events: Iterable[Any]) -> list[Any]:
    return sorted(events, key=lambda event: (event.time_range.start, -event.time_range.end))


def thread_labels(events: list[Any]) -> dict[int, str]:
    """Returns what threads are called by the first ranges on them: numbers are each one's own."""
    labels: dict[int, str] = {}
    seen: Counter[str] = Counter()
    for event in ordered(event for event in events if event.is_user_annotation):
        if event.thread not in labels:
            labels[event.thread] = f"{event.name} {seen[event.name]}"
            seen[event.name] += 1
    return labels


def told_of(event: Any, labels: dict[int, str]) -> tuple[Any, ...]:
    parents = []
    parent = event.cpu_parent
    while parent is not None:
        parents.append(parent.name)
        parent = parent.cpu_parent
    return (
        event.name,
        event.input_shapes,
        event.sequence_nr,
        labels.get(event.fwd_thread),
        event.scope,
        event.is_async,
        event.is_user_annotation,
        parents,
    )


def test_rows_have_the_same_counts(recordings: tuple[Any, Any]) -> None:
    theirs, ours = (recording.key_averages() for recording in recordings)
    assert counts(ours) == counts(theirs)
    assert len(counts(ours)) > 5


def test_rows_by_shape_have_the_same_counts(recordings: tuple[Any, Any]) -> None:
    theirs, ours = (recording.key_averages(group_by_input_shape=True) for recording in recordings)
    assert counts(ours) == counts(theirs)


def events_by_thread(recording: Any) -> dict[str, list[tuple[Any, ...]]]:
    events = list(recording.events())
    labels = thread_labels(events)
    found: dict[str, list[tuple[Any, ...]]] = {}
    for event in ordered(events):
        found.setdefault(labels[event.thread], []).append(told_of(event, labels))
    return found


def test_events_and_their_tree_are_the_same(recordings: tuple[Any, Any]) -> None:
    theirs, ours = (events_by_thread(recording) for recording in recordings)
    assert ours.keys() == theirs.keys()
    for thread, expected in theirs.items():
        assert ours[thread] == expected
