"""Datasets: collections of examples."""

from __future__ import annotations

import bisect
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Generic, TypeVar

import mindtorch_v2 as torch

_T = TypeVar("_T", covariant=True)


class Dataset(Generic[_T]):
    """A dataset with indexed access; subclasses define `__getitem__` and `__len__`."""

    def __getitem__(self, index: Any) -> _T:
        raise NotImplementedError("Subclasses of Dataset should implement __getitem__.")

    def __add__(self, other: Dataset[Any]) -> ConcatDataset:
        return ConcatDataset([self, other])


class IterableDataset(Dataset[_T]):
    """A dataset that is a stream of examples; subclasses define `__iter__`."""

    def __iter__(self) -> Iterator[_T]:
        raise NotImplementedError("Subclasses of IterableDataset should implement __iter__.")


class TensorDataset(Dataset["tuple[torch.Tensor, ...]"]):
    """A dataset of tensor rows.

    Args:
        tensors: Tensors whose first sizes are equal.
    """

    def __init__(self, *tensors: torch.Tensor) -> None:
        if any(tensor.shape[0] != tensors[0].shape[0] for tensor in tensors):
            raise AssertionError("Size mismatch between tensors")
        self.tensors = tensors

    def __getitem__(self, index: Any) -> tuple[torch.Tensor, ...]:
        return tuple(tensor[index] for tensor in self.tensors)

    def __len__(self) -> int:
        return int(self.tensors[0].shape[0])


class ConcatDataset(Dataset[Any]):
    """The concatenation of several datasets.

    Args:
        datasets: The datasets.
    """

    def __init__(self, datasets: Iterable[Dataset[Any]]) -> None:
        self.datasets = list(datasets)
        if not self.datasets:
            raise AssertionError("datasets should not be an empty iterable")
        self.cumulative_sizes: list[int] = []
        for dataset in self.datasets:
            before = self.cumulative_sizes[-1] if self.cumulative_sizes else 0
            self.cumulative_sizes.append(before + len(dataset))  # type: ignore[arg-type]

    def __len__(self) -> int:
        return self.cumulative_sizes[-1]

    def __getitem__(self, index: int) -> Any:
        if index < 0:
            if -index > len(self):
                raise ValueError("absolute value of index should not exceed dataset length")
            index += len(self)
        place = bisect.bisect_right(self.cumulative_sizes, index)
        return self.datasets[place][index - ([0, *self.cumulative_sizes][place])]


class Subset(Dataset[_T]):
    """A subset of a dataset.

    Args:
        dataset: The dataset.
        indices: The indices of the examples.
    """

    def __init__(self, dataset: Dataset[_T], indices: Sequence[int]) -> None:
        self.dataset = dataset
        self.indices = indices

    def __getitem__(self, index: Any) -> _T:
        if isinstance(index, list):
            return self.dataset[[self.indices[place] for place in index]]
        return self.dataset[self.indices[index]]

    def __len__(self) -> int:
        return len(self.indices)


def random_split(
    dataset: Dataset[_T], lengths: Sequence[float], generator: Any = None
) -> list[Subset[_T]]:
    """Splits a dataset randomly into parts of given lengths or fractions.

    Args:
        dataset: The dataset.
        lengths: Numbers of examples, or fractions that sum to one.
        generator: Ignored: all random numbers come from the generator that `manual_seed` seeds.
    """
    del generator
    count = len(dataset)  # type: ignore[arg-type]
    sizes = [int(length) for length in lengths]
    if math.isclose(sum(lengths), 1) and sum(lengths) <= 1:
        sizes = [math.floor(count * share) for share in lengths]
        for place in range(count - sum(sizes)):
            sizes[place % len(sizes)] += 1
    if sum(sizes) != count:
        raise ValueError("Sum of input lengths does not equal the length of the input dataset!")
    order = torch.randperm(count).tolist()
    parts, begin = [], 0
    for size in sizes:
        parts.append(Subset(dataset, order[begin : begin + size]))
        begin += size
    return parts
