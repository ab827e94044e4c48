"""Datasets, samplers and the data loader that combines examples into batches.

>>> import mindtorch_v2 as torch
>>> data = TensorDataset(torch.arange(5), torch.arange(5) * 2)
>>> [batch[1].tolist() for batch in DataLoader(data, batch_size=2)]
[[0, 2], [4, 6], [8]]
"""

from mindtorch_v2 import _missing
from mindtorch_v2.utils.data._collate import default_collate
from mindtorch_v2.utils.data.dataloader import DataLoader
from mindtorch_v2.utils.data.dataset import (
    ConcatDataset,
    Dataset,
    IterableDataset,
    Subset,
    TensorDataset,
    random_split,
)
from mindtorch_v2.utils.data.sampler import (
    BatchSampler,
    RandomSampler,
    Sampler,
    SequentialSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)

__all__ = [
    "BatchSampler",
    "ConcatDataset",
    "DataLoader",
    "Dataset",
    "IterableDataset",
    "RandomSampler",
    "Sampler",
    "SequentialSampler",
    "Subset",
    "SubsetRandomSampler",
    "TensorDataset",
    "WeightedRandomSampler",
    "default_collate",
    "random_split",
]

__getattr__ = _missing.attribute_of(__name__)
