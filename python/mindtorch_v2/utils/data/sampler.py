"""The order in which examples are taken."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence, Sized
from typing import Any, Generic, TypeVar

import mindtorch_v2 as torch

_T = TypeVar("_T", covariant=True)


class Sampler(Generic[_T]):
    """Gives the numbers of examples, or lists of them: subclasses have `__iter__`."""

    def __iter__(self) -> Iterator[_T]:
        raise NotImplementedError


class SequentialSampler(Sampler[int]):
    """Takes examples in their order.

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
    """Takes examples at random.

    Args:
        data_source: The examples.
        replacement: Whether an example may come more than once.
        num_samples: How many are taken; all by default.
        generator: Not used: there is one source of random numbers, `manual_seed`'s.
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
        """How many examples are taken."""
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
    """Takes some examples at random, each once.

    Args:
        indices: The numbers of the examples.
        generator: Not used: there is one source of random numbers, `manual_seed`'s.
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
    """Takes examples at random, by weights.

    Args:
        weights: A weight for each example.
        num_samples: How many are taken.
        replacement: Whether an example may come more than once.
        generator: Not used: there is one source of random numbers, `manual_seed`'s.
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
    """Puts the numbers of another sampler together into lists.

    Args:
        sampler: Where the numbers come from.
        batch_size: How many make a list.
        drop_last: Whether a last list that is shorter is left out.

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
