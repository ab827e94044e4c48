"""`DataLoader`: batches of examples, built on the calling thread."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from mindtorch_v2 import profiler
from mindtorch_v2.utils.data._collate import default_collate
from mindtorch_v2.utils.data.dataset import Dataset, IterableDataset
from mindtorch_v2.utils.data.sampler import BatchSampler, RandomSampler, SequentialSampler

# Options of worker processes, which are ignored because there are none.
_WORKER_OPTIONS = {
    "pin_memory",
    "timeout",
    "worker_init_fn",
    "multiprocessing_context",
    "prefetch_factor",
    "persistent_workers",
    "pin_memory_device",
    "in_order",
}


class DataLoader:
    """Draws examples in some order and combines them into batches.

    Args:
        dataset: The examples.
        batch_size: The number of examples in a batch; `None` yields single examples.
        shuffle: Whether to draw in random order.
        sampler: The indices of the examples, instead of `shuffle`.
        batch_sampler: Lists of indices, instead of the three above.
        num_workers: Must be 0: worker processes are not supported.
        collate_fn: Combines a list of examples into a batch.
        drop_last: Whether to omit a smaller last batch.
        generator: Ignored: all random numbers come from the generator that `manual_seed` seeds.
        options: torch's options for worker processes; ignored.

    Raises:
        NotImplementedError: If worker processes are requested.

    Example:
        >>> list(DataLoader(range(3), batch_size=2))
        [tensor([0, 1]), tensor([2])]
    """

    def __init__(
        self,
        dataset: Any,
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler: Iterable[int] | None = None,
        batch_sampler: Iterable[list[int]] | None = None,
        num_workers: int = 0,
        collate_fn: Callable[[Any], Any] | None = None,
        drop_last: bool = False,
        generator: Any = None,
        **options: Any,
    ) -> None:
        if num_workers:
            raise NotImplementedError(
                f"DataLoader(num_workers={num_workers}) is not supported: this runtime has no "
                "worker processes, use num_workers=0"
            )
        unknown = set(options) - _WORKER_OPTIONS
        if unknown:
            raise TypeError(
                f"DataLoader.__init__() got an unexpected keyword argument {min(unknown)!r}"
            )
        if sampler is not None and shuffle:
            raise ValueError("sampler option is mutually exclusive with shuffle")
        if batch_sampler is not None:
            if batch_size != 1 or shuffle or sampler is not None or drop_last:
                raise ValueError(
                    "batch_sampler option is mutually exclusive with batch_size, shuffle, "
                    "sampler, and drop_last"
                )
            batch_size = None
        elif batch_size is None and drop_last:
            raise ValueError(
                "batch_size=None option disables auto-batching and is mutually exclusive with "
                "drop_last"
            )
        self.dataset = dataset
        self.num_workers = num_workers
        self.batch_size = batch_size
        self.drop_last = drop_last
        self.generator = generator
        self.sampler: Any = sampler
        self.batch_sampler: Any = batch_sampler
        if isinstance(dataset, IterableDataset):
            if shuffle or sampler is not None or batch_sampler is not None:
                raise ValueError(
                    "DataLoader with IterableDataset: expected unspecified shuffle, sampler and "
                    "batch_sampler options"
                )
        elif batch_sampler is None:
            if sampler is None:
                self.sampler = RandomSampler(dataset) if shuffle else SequentialSampler(dataset)
            if batch_size is not None:
                self.batch_sampler = BatchSampler(self.sampler, batch_size, drop_last)
        is_batched = batch_size is not None or batch_sampler is not None
        self.collate_fn = collate_fn or (default_collate if is_batched else _unchanged)

    def __iter__(self) -> Iterator[Any]:
        batches = self._batches()
        name = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
        while True:
            with profiler.record_function(name):
                batch = next(batches, _END)
            if batch is _END:
                return
            yield batch

    def __len__(self) -> int:
        if isinstance(self.dataset, IterableDataset):
            count = len(self.dataset)  # type: ignore[arg-type]
            if self.batch_size is None:
                return count
            return count // self.batch_size if self.drop_last else -(-count // self.batch_size)
        return len(self.sampler if self.batch_sampler is None else self.batch_sampler)

    def _batches(self) -> Iterator[Any]:
        if isinstance(self.dataset, IterableDataset):
            yield from self._from_stream(iter(self.dataset))
        elif self.batch_sampler is None:
            for number in self.sampler:
                yield self.collate_fn(self.dataset[number])
        else:
            for numbers in self.batch_sampler:
                yield self.collate_fn(self._examples(numbers))

    def _from_stream(self, examples: Iterator[Any]) -> Iterator[Any]:
        if self.batch_size is None:
            yield from map(self.collate_fn, examples)
            return
        while batch := list(itertools.islice(examples, self.batch_size)):
            if len(batch) == self.batch_size or not self.drop_last:
                yield self.collate_fn(batch)

    def _examples(self, numbers: list[int]) -> Any:
        fetch = getattr(self.dataset, "__getitems__", None)
        return fetch(numbers) if fetch else [self.dataset[number] for number in numbers]


_END = object()


def _unchanged(example: Any) -> Any:
    return example


__all__ = ["DataLoader", "Dataset"]
