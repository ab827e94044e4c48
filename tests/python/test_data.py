"""Datasets, samplers and loaders."""

from __future__ import annotations

from collections.abc import Iterator

import mindtorch_v2 as torch
import pytest
from mindtorch_v2.profiler import profile
from mindtorch_v2.utils.data import (
    BatchSampler,
    ConcatDataset,
    DataLoader,
    IterableDataset,
    RandomSampler,
    SequentialSampler,
    Subset,
    TensorDataset,
    WeightedRandomSampler,
    default_collate,
    random_split,
)

ROWS = TensorDataset(torch.arange(5), torch.arange(5).float() * 2)


class Squares(IterableDataset[int]):
    """A few squares."""

    def __iter__(self) -> Iterator[int]:
        return (number * number for number in range(5))


def test_batches_come_in_order() -> None:
    loader = DataLoader(ROWS, batch_size=2)
    assert [[column.tolist() for column in batch] for batch in loader] == [
        [[0, 1], [0.0, 2.0]],
        [[2, 3], [4.0, 6.0]],
        [[4], [8.0]],
    ]
    assert len(loader) == 3
    assert len(list(DataLoader(ROWS, batch_size=2, drop_last=True))) == 2


def test_shuffled_batches_hold_everything_once() -> None:
    torch.manual_seed(1)
    numbers = [batch[0].item() for batch in DataLoader(ROWS, shuffle=True)]
    assert sorted(numbers) == [0, 1, 2, 3, 4]


def test_streams_and_single_examples() -> None:
    assert [batch.tolist() for batch in DataLoader(Squares(), 2)] == [[0, 1], [4, 9], [16]]
    assert list(DataLoader(Squares(), batch_size=None)) == [0, 1, 4, 9, 16]
    assert list(DataLoader([7, 8], batch_size=None)) == [7, 8]


def test_samplers() -> None:
    assert list(SequentialSampler(range(3))) == [0, 1, 2]
    assert sorted(RandomSampler(range(4))) == [0, 1, 2, 3]
    assert len(list(RandomSampler(range(3), num_samples=7))) == 7
    assert list(WeightedRandomSampler([0.0, 1.0], 3)) == [1, 1, 1]
    assert sorted(WeightedRandomSampler([1.0, 1.0], 2, replacement=False)) == [0, 1]
    batches = BatchSampler(SequentialSampler(range(5)), 2, drop_last=True)
    assert list(batches) == [[0, 1], [2, 3]]
    found = DataLoader(ROWS, batch_sampler=batches)
    assert [batch[0].tolist() for batch in found] == [[0, 1], [2, 3]]


def test_parts_of_datasets() -> None:
    parts = random_split(ROWS, [0.5, 0.5])
    assert [len(part) for part in parts] == [3, 2]
    both = ConcatDataset([Subset(ROWS, [4]), ROWS])
    assert len(both) == 6
    assert both[0][0].item() == 4
    assert both[-1][0].item() == 4
    with pytest.raises(ValueError, match="Sum of input lengths"):
        random_split(ROWS, [1, 1])


def test_batches_of_nested_examples() -> None:
    found = default_collate([{"x": (1.5, "a")}, {"x": (2.5, "b")}])
    assert found["x"][0].tolist() == [1.5, 2.5]
    assert found["x"][0].dtype == torch.float64
    assert found["x"][1] == ("a", "b")
    with pytest.raises(TypeError, match="default_collate"):
        default_collate([object()])


def test_what_is_not_there_says_so() -> None:
    with pytest.raises(NotImplementedError, match="num_workers=0"):
        DataLoader(ROWS, num_workers=2)
    with pytest.raises(TypeError, match="unexpected keyword argument 'workers'"):
        DataLoader(ROWS, workers=2)
    with pytest.raises(ValueError, match="mutually exclusive"):
        DataLoader(ROWS, shuffle=True, sampler=SequentialSampler(ROWS))


def test_loading_is_a_range_of_the_profile() -> None:
    with profile() as profiler:
        list(DataLoader(ROWS, batch_size=5))
    names = [event.name for event in profiler.events() if "DataLoader" in event.name]
    assert names == ["enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"] * 2
