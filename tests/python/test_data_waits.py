"""What a run says about waiting for data: late all the time, or slow at the start alone."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from mindprof._run.data_waits import DataWaits

SINGLE = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
WORKERS = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"

LATE = "the data is late"
START = "is the start or the end of workers"


def waits(
    times: Sequence[float],
    name: str = WORKERS,
    ends_us: Sequence[float] = (),
    starts: int = 0,
    workers: int | None = None,
) -> DataWaits:
    """Returns what a window says whose batches were waited for so long."""
    recording: Any = SimpleNamespace(durations=lambda _: list(times))
    rows = [SimpleNamespace(key="aten::add", cpu_time_total=7.0)]
    if times:
        rows.append(SimpleNamespace(key=name, cpu_time_total=sum(times)))
    return DataWaits(recording, rows, ends_us, starts, workers)


def hints(found: DataWaits, step_us: float, steps: int, rest_us: float) -> list[str]:
    """Returns the hints of a window with steps of one length; of no length without steps."""
    return list(found.hints([step_us] * steps if step_us else [], steps, rest_us))


def test_waiting_in_every_step_is_late() -> None:
    (hint,) = hints(waits([900] * 40), 1000, 40, 50_000)
    late = "the data is late, 900.000us of the 1.000ms of a step on average: "
    assert hint == f"{late}more workers (DataLoader num_workers), or less work per item"
    (hint,) = hints(waits([900] * 40, SINGLE), 1000, 40, 50_000)
    assert hint.startswith(f"{late}load it in workers (DataLoader num_workers), ")


@pytest.mark.parametrize("workers", [2, 3, 4])
def test_workers_that_finish_in_turns_are_late(workers: int) -> None:
    turns = [0 if number % workers else 900 * workers for number in range(40)]
    (hint,) = hints(waits(turns), 1000, 40, 50_000)
    assert LATE in hint


@pytest.mark.parametrize(
    ("times", "workers"),
    [
        ([400, 291_700, 500], 2),
        ([8_300, 4_300, 192_300, 8_200, 400], 4),
        ([251_000, 6_000, 312_000], 2),
        ([291_700], 2),
    ],
)
def test_workers_that_ran_before_the_window_do_not_start_in_it(
    times: list[float], workers: int
) -> None:
    step_us, steps = sum(times) / len(times) + 1000, len(times)
    (hint,) = hints(waits(times, workers=workers), step_us, steps, step_us * steps)
    assert LATE in hint
    assert START not in hint


def test_one_late_batch_is_no_start_of_workers() -> None:
    (hint,) = hints(waits([10] * 20 + [60_000] + [10] * 19, workers=2), 1000, 40, 100_000)
    assert START not in hint
    assert "is for few batches" in hint


def test_late_data_is_seen_through_the_start_of_workers() -> None:
    times = [429_000, 4_000, 304_000, 3_900, 336_000, 2_900, 325_000, 2_600, 348_000, 3_700]
    found = waits(times, starts=1, workers=2)
    step_times = [30_000, 382_000] * 4 + [30_000]
    (hint,) = found.hints(step_times, 10, 2_300_000)
    assert hint.startswith("the data is late, 169.450ms of the 186.444ms of a step on average: ")
    # Spawned workers take long, each for its first batch.
    slow = waits([5_000_000, 3_000_000, 9, 9, 9, 9], starts=1, workers=2)
    (hint,) = hints(slow, 1000, 6, 9_000_000)
    assert START in hint


def test_a_wait_longer_than_a_step_is_not_told_as_its_part() -> None:
    (hint,) = hints(waits([900] * 40, workers=2), 500, 10, 50_000)
    assert hint.startswith("the data is late: more workers")


def test_waiting_for_the_first_batch_alone_is_the_start_of_workers() -> None:
    (hint,) = hints(waits([60_000] + [10] * 39, starts=1), 1000, 40, 100_000)
    assert START in hint
    assert LATE not in hint
    assert "persistent_workers=True" in hint
    assert hint.startswith("59.990ms of the wait for data")


def test_each_epoch_pays_for_the_start() -> None:
    (hint,) = hints(waits(([20_000] + [10] * 19) * 3, starts=3), 1000, 60, 120_000)
    assert START in hint


def test_a_slow_first_item_is_no_start_of_workers() -> None:
    (hint,) = hints(waits([60_000] + [10] * 39, SINGLE), 1000, 40, 100_000)
    assert START not in hint
    assert "something that the dataset does once" in hint


def test_what_comes_in_time_has_no_hint() -> None:
    assert hints(waits([10] * 40), 1000, 40, 50_000) == []
    assert hints(waits([]), 1000, 40, 50_000) == []


def test_a_long_start_of_the_program_hides_no_late_data() -> None:
    """The share of the steps counts, not that of a run that mostly prepares."""
    (hint,) = hints(waits([900] * 10), 1000, 10, 1_000_000)
    assert LATE in hint


def test_without_steps_the_whole_time_counts() -> None:
    (hint,) = hints(waits([900] * 10), 0, 0, 10_000)
    assert LATE in hint
    assert hints(waits([900] * 10), 0, 0, 100_000) == []


def test_what_was_waited_is_told() -> None:
    (said,) = waits([60_000] + [10] * 39).said(100_000)
    assert said == (
        "the loop waited 60.390ms for its data: 60% of the time without imports; "
        "about 10.000us for a batch, 60.000ms for the longest wait"
    )
    (said,) = waits([50]).said(100)
    assert said == "the loop waited 50.000us for its data: 50% of the time without imports"
    assert list(waits([]).said(100)) == []


def test_the_end_of_workers_is_no_wait_for_data() -> None:
    # An epoch ends with a call that finds no batch; another one's first batch is as slow.
    found = waits([200_000] + [100] * 19 + [180_100], ends_us=[180_000])
    ends, waited = found.said(1_000_000)
    assert ends == "the end of loaders' workers: 180.000ms"
    assert waited.startswith("the loop waited 201.900ms for its data: 20% ")
    assert waited.endswith("200.000ms for the longest wait")
    (hint,) = hints(found, 1000, 20, 1_000_000)
    assert START in hint
