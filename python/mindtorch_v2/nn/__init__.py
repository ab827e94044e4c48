"""Layers, losses and the modules that combine them.

>>> import mindtorch_v2 as torch
>>> from mindtorch_v2 import nn
>>> model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
>>> nn.MSELoss()(model(torch.ones(3, 4)), torch.zeros(3, 2)).backward()
>>> model[0].weight.grad.shape == (8, 4)
True
"""

from mindtorch_v2 import _missing
from mindtorch_v2.nn import functional, init, utils
from mindtorch_v2.nn.activation import (
    ELU,
    GELU,
    Identity,
    LeakyReLU,
    LogSoftmax,
    ReLU,
    Sigmoid,
    SiLU,
    Softmax,
    Softplus,
    Tanh,
)
from mindtorch_v2.nn.attention import MultiheadAttention
from mindtorch_v2.nn.container import ModuleDict, ModuleList, Sequential
from mindtorch_v2.nn.conv import Conv1d, Conv2d
from mindtorch_v2.nn.dropout import Dropout
from mindtorch_v2.nn.embedding import Embedding
from mindtorch_v2.nn.flatten import Flatten
from mindtorch_v2.nn.linear import Linear
from mindtorch_v2.nn.loss import (
    BCELoss,
    BCEWithLogitsLoss,
    CrossEntropyLoss,
    HuberLoss,
    L1Loss,
    MSELoss,
    NLLLoss,
    SmoothL1Loss,
)
from mindtorch_v2.nn.module import Module
from mindtorch_v2.nn.normalization import BatchNorm1d, BatchNorm2d, LayerNorm
from mindtorch_v2.nn.parameter import Parameter
from mindtorch_v2.nn.pooling import AdaptiveAvgPool2d, AvgPool2d, MaxPool2d
from mindtorch_v2.nn.recurrent import GRU, LSTM, RNNBase

__all__ = [
    "ELU",
    "GELU",
    "GRU",
    "LSTM",
    "AdaptiveAvgPool2d",
    "AvgPool2d",
    "BCELoss",
    "BCEWithLogitsLoss",
    "BatchNorm1d",
    "BatchNorm2d",
    "Conv1d",
    "Conv2d",
    "CrossEntropyLoss",
    "Dropout",
    "Embedding",
    "Flatten",
    "HuberLoss",
    "Identity",
    "L1Loss",
    "LayerNorm",
    "LeakyReLU",
    "Linear",
    "LogSoftmax",
    "MSELoss",
    "MaxPool2d",
    "Module",
    "ModuleDict",
    "ModuleList",
    "MultiheadAttention",
    "NLLLoss",
    "Parameter",
    "RNNBase",
    "ReLU",
    "Sequential",
    "SiLU",
    "Sigmoid",
    "SmoothL1Loss",
    "Softmax",
    "Softplus",
    "Tanh",
    "functional",
    "init",
    "utils",
]

__getattr__ = _missing.attribute_of(__name__)
