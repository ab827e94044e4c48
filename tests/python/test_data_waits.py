"""What a run says about waiting for data: late all the time, or slow at the start alone."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from mindprof._run.data_waits import DataWaits, LoopTimes
from mindprof._run.span import Span
from mindprof._run.worker_times import WorkersStart

LATE = "the data is late"
START = "is the wait for workers that start, or their end"
OUTSIDE = "of the wait for data is outside of the optimizer steps"

#: How long a loop works between two waits, in microseconds.
WORK_US = 100


def span(begin_us: float, us: float) -> Span:
    return Span(round(begin_us * 1000), round((begin_us + us) * 1000))


def spans(times: Sequence[float], begin_us: float = 0) -> list[Span]:
    """Returns waits of so many microseconds, with work after each."""
    found = []
    for us in times:
        found.append(span(begin_us, us))
        begin_us += us + WORK_US
    return found


def loop(waits: Sequence[Span], rest_us: float | None = None) -> LoopTimes:
    """Returns a loop that makes a step after each wait, and does nothing else."""
    begins = [wait.begin_ns for wait in waits]
    ends = [*begins[1:], waits[-1].end_ns + WORK_US * 1000]
    step_times = [Span(*times).us for times in zip(begins, ends, strict=True)]
    return LoopTimes(rest_us or sum(step_times), Span(begins[0], ends[-1]), step_times)


def hints(waits: Sequence[Span], found: DataWaits, rest_us: float | None = None) -> list[str]:
    return list(found.hints(loop(waits, rest_us)))


def test_waiting_in_every_step_is_late() -> None:
    waits = spans([900] * 40)
    (hint,) = hints(waits, DataWaits(waits, has_workers=True))
    late = "the data is late, 900.000us of the 1.000ms of a step on average: "
    assert hint == f"{late}more workers (DataLoader num_workers), or less work per item"
    (hint,) = hints(waits, DataWaits(waits))
    assert hint.startswith(f"{late}load it in workers (DataLoader num_workers), ")


@pytest.mark.parametrize("workers", [2, 3, 4])
def test_workers_that_finish_in_turns_are_late(workers: int) -> None:
    waits = spans([0 if number % workers else 900 * workers for number in range(40)])
    (hint,) = hints(waits, DataWaits(waits))
    assert hint.startswith(f"{LATE}, 9")
    assert "mostly" not in hint


def test_few_late_batches_are_told_as_few() -> None:
    waits = spans([10] * 20 + [60_000] + [10] * 19)
    (hint,) = hints(waits, DataWaits(waits))
    assert hint.startswith(
        "the data is late, 1.510ms of the 1.610ms of a step on average, mostly for 1 of 40 batches:"
    )


def test_waiting_for_the_first_batch_alone_is_the_start_of_workers() -> None:
    start = WorkersStart(span(0, 500), 1)
    waits = spans([60_000] + [10] * 39, 501)
    found = DataWaits(waits, [start], has_workers=True)
    (hint,) = hints(waits, found)
    assert hint.startswith(f"60.000ms {START}; ")
    assert "persistent_workers=True" in hint


def test_each_epoch_pays_for_the_start() -> None:
    starts, waits, begin_us = [], [], 0.0
    for _ in range(3):
        starts.append(WorkersStart(span(begin_us, 500), 1))
        waits += spans([20_000] + [10] * 19, begin_us + 500)
        begin_us = waits[-1].end_ns / 1000 + WORK_US
    (hint,) = hints(waits, DataWaits(waits, starts, has_workers=True))
    assert hint.startswith(f"60.000ms {START}; ")


def test_late_data_is_seen_through_the_start_of_workers_and_the_longer_comes_first() -> None:
    start = WorkersStart(span(0, 500), 1)
    waits = spans([9_000] + [900] * 5, 501)
    slow_start, late = hints(waits, DataWaits(waits, [start], has_workers=True))
    assert START in slow_start
    assert late.startswith(LATE)
    waits = spans([900] * 1 + [9_000] * 5, 501)
    (late,) = hints(waits, DataWaits(waits, [start], has_workers=True))
    assert late.startswith(LATE)


def test_each_worker_starts_with_a_batch() -> None:
    """Spawned workers take long, each for its first one."""
    start = WorkersStart(span(0, 500), 2)
    waits = spans([5_000_000, 3_000_000, 9, 9, 9, 9], 501)
    (hint,) = hints(waits, DataWaits(waits, [start], has_workers=True))
    assert hint.startswith(f"8.000s {START}; ")
    late = [429_000, 4_000, 304_000, 3_900, 336_000, 2_900, 325_000, 2_600, 348_000, 3_700]
    waits = spans(late, 501)
    hint, _ = hints(waits, DataWaits(waits, [start], has_workers=True))
    assert hint.startswith(LATE)
    # Two batches of two workers may be late as well.
    waits = spans([5_000, 3_000], 501)
    assert any(LATE in hint for hint in hints(waits, DataWaits(waits, [start])))


def test_workers_that_started_before_the_window_do_not_start_in_it() -> None:
    waits = spans([400, 291_700, 500])
    (hint,) = hints(waits, DataWaits(waits, has_workers=True))
    assert hint.startswith(LATE)


def test_waits_before_and_after_the_steps_are_no_part_of_them() -> None:
    first, steps = spans([60_000]), spans([10] * 39, 61_000)
    evaluation = spans([5_000] * 6, 70_000)
    for others in (first, evaluation):
        waits = sorted([*others, *steps])
        (hint,) = DataWaits(waits).hints(loop(steps, 100_000))
        assert OUTSIDE in hint
        assert LATE not in hint


def test_what_comes_in_time_has_no_hint() -> None:
    waits = spans([10] * 40)
    assert hints(waits, DataWaits(waits)) == []
    assert hints(waits, DataWaits([])) == []


def test_a_long_start_of_the_program_hides_no_late_data() -> None:
    """The share of the steps counts, not that of a run that mostly prepares."""
    waits = spans([900] * 10)
    (hint,) = hints(waits, DataWaits(waits), 1_000_000)
    assert hint.startswith(LATE)


def test_without_steps_the_whole_time_counts() -> None:
    found = DataWaits(spans([900] * 10))
    (hint,) = found.hints(LoopTimes(10_000))
    assert hint.startswith("the data is late: load it in workers")
    assert list(found.hints(LoopTimes(100_000))) == []


def test_what_was_waited_is_told() -> None:
    (said,) = DataWaits(spans([60_000] + [10] * 39)).said(100_000)
    assert said == (
        "the loop waited 60.390ms for its data: 60% of the time without imports; "
        "10.000us for a batch (median), 60.000ms for the longest wait"
    )
    (said,) = DataWaits(spans([50])).said(100)
    assert said == "the loop waited 50.000us for its data: 50% of the time without imports"
    assert list(DataWaits([]).said(100)) == []


def test_a_loop_waited_no_longer_than_there_was_time() -> None:
    """What is imported for a first batch is waited for, and is no part of the time."""
    (said,) = DataWaits(spans([500])).said(100)
    assert said.startswith("the loop waited 100.000us for its data: 100% ")


def test_the_end_of_workers_is_no_wait_for_data() -> None:
    # An epoch ends with a call that finds no batch; another one's first batch is as slow.
    waits = spans([200_000] + [100] * 19 + [180_100])
    inside = span(waits[-1].begin_ns / 1000 + 50, 180_000)
    found = DataWaits(waits, ends=[inside], has_workers=True)
    ends, waited = found.said(1_000_000)
    assert ends == "the end of loaders' workers: 180.000ms"
    assert waited.startswith("the loop waited 201.900ms for its data: 20% ")
    assert waited.endswith("200.000ms for the longest wait")


def test_workers_that_end_elsewhere_end_in_no_wait_of_the_loop() -> None:
    waits = spans([200] * 5)
    elsewhere = span(waits[2].begin_ns / 1000, 5_000)
    _, waited = DataWaits(waits, ends=[elsewhere]).said(10_000)
    assert waited.startswith("the loop waited 1.000ms ")
