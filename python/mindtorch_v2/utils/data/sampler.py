"""Samplers: the order in which examples are drawn."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence, Sized
from typing import Any, Generic, TypeVar

import mindtorch_v2 as torch

_T = TypeVar("_T", covariant=True)


class Sampler(Generic[_T]):
    """An iterable of example indices, or of lists of them; subclasses define `__iter__`."""

    def __iter__(self) -> Iterator[_T]:
        raise NotImplementedError


class SequentialSampler(Sampler[int]):
    """Draws examples in order.

    Args:
        data_source: The examples.
    """

    def __init__(self, data_source: Sized) -> None:
        self.data_source = data_source

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self.data_source)))

    def __len__(self) -> int:
        return len(self.data_source)


class RandomSampler(Sampler[int]):
    """Draws examples in random order.

    Args:
        data_source: The examples.
        replacement: Whether an example may be drawn more than once.
        num_samples: The number of draws; by default, the number of examples.
        generator: Ignored: all random numbers come from the generator that `manual_seed` seeds.
    """

    def __init__(
        self,
        data_source: Sized,
        replacement: bool = False,
        num_samples: int | None = None,
        generator: Any = None,
    ) -> None:
        self.data_source = data_source
        self.replacement = replacement
        self.generator = generator
        self._num_samples = num_samples
        if not isinstance(self.num_samples, int) or self.num_samples <= 0:
            raise ValueError(
                f"num_samples should be a positive integer value, but got num_samples="
                f"{self.num_samples}"
            )

    @property
    def num_samples(self) -> int:
        """The number of draws."""
        return len(self.data_source) if self._num_samples is None else self._num_samples

    def __iter__(self) -> Iterator[int]:
        count, left = len(self.data_source), self.num_samples
        if self.replacement:
            yield from torch.randint(0, count, (left,)).tolist()
            return
        while left > 0:
            order = torch.randperm(count).tolist()[:left]
            yield from order
            left -= len(order)

    def __len__(self) -> int:
        return self.num_samples


class SubsetRandomSampler(Sampler[int]):
    """Draws a subset of examples in random order, each once.

    Args:
        indices: The indices of the examples.
        generator: Ignored: all random numbers come from the generator that `manual_seed` seeds.
    """

    def __init__(self, indices: Sequence[int], generator: Any = None) -> None:
        self.indices = indices
        self.generator = generator

    def __iter__(self) -> Iterator[int]:
        for place in torch.randperm(len(self.indices)).tolist():
            yield self.indices[place]

    def __len__(self) -> int:
        return len(self.indices)


class WeightedRandomSampler(Sampler[int]):
    """Draws examples randomly by weight.

    Args:
        weights: The weight of each example.
        num_samples: The number of draws.
        replacement: Whether an example may be drawn more than once.
        generator: Ignored: all random numbers come from the generator that `manual_seed` seeds.
    """

    def __init__(
        self,
        weights: Sequence[float],
        num_samples: int,
        replacement: bool = True,
        generator: Any = None,
    ) -> None:
        self.weights = [float(weight) for weight in weights]
        self.num_samples = num_samples
        self.replacement = replacement
        self.generator = generator

    def __iter__(self) -> Iterator[int]:
        weights = list(self.weights)
        for draw in torch.rand(self.num_samples).tolist():
            sums = list(itertools.accumulate(weights))
            wanted = draw * sums[-1]
            place = next(place for place, total in enumerate(sums) if total > wanted)
            if not self.replacement:
                weights[place] = 0.0
            yield place

    def __len__(self) -> int:
        return self.num_samples


class BatchSampler(Sampler["list[int]"]):
    """Groups the indices of another sampler into lists.

    Args:
        sampler: The sampler of indices.
        batch_size: The length of a list.
        drop_last: Whether to omit a shorter last list.

    Example:
        >>> list(BatchSampler(SequentialSampler(range(5)), 2, drop_last=False))
        [[0, 1], [2, 3], [4]]
    """

    def __init__(self, sampler: Iterable[int], batch_size: int, drop_last: bool) -> None:
        if not isinstance(batch_size, int) or isinstance(batch_size, bool) or batch_size <= 0:
            raise ValueError(
                f"batch_size should be a positive integer value, but got batch_size={batch_size}"
            )
        self.sampler = sampler
        self.batch_size = batch_size
        self.drop_last = drop_last

    def __iter__(self) -> Iterator[list[int]]:
        numbers = iter(self.sampler)
        while batch := list(itertools.islice(numbers, self.batch_size)):
            if len(batch) == self.batch_size or not self.drop_last:
                yield batch

    def __len__(self) -> int:
        count = len(self.sampler)  # type: ignore[arg-type]
        return count // self.batch_size if self.drop_last else -(-count // self.batch_size)
