"""Layers and losses, and the modules they are made of.

>>> import mindtorch_v2 as torch
>>> from mindtorch_v2 import nn
>>> model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
>>> nn.MSELoss()(model(torch.ones(3, 4)), torch.zeros(3, 2)).backward()
>>> model[0].weight.grad.shape == (8, 4)
True
"""

from mindtorch_v2.nn import functional, init
from mindtorch_v2.nn.activation import GELU, ReLU, Sigmoid, Softmax, Tanh
from mindtorch_v2.nn.container import ModuleList, Sequential
from mindtorch_v2.nn.conv import Conv2d
from mindtorch_v2.nn.dropout import Dropout
from mindtorch_v2.nn.embedding import Embedding
from mindtorch_v2.nn.flatten import Flatten
from mindtorch_v2.nn.linear import Linear
from mindtorch_v2.nn.loss import CrossEntropyLoss, MSELoss
from mindtorch_v2.nn.module import Module
from mindtorch_v2.nn.normalization import BatchNorm2d, LayerNorm
from mindtorch_v2.nn.parameter import Parameter
from mindtorch_v2.nn.pooling import AdaptiveAvgPool2d, MaxPool2d

__all__ = [
    "GELU",
    "AdaptiveAvgPool2d",
    "BatchNorm2d",
    "Conv2d",
    "CrossEntropyLoss",
    "Dropout",
    "Embedding",
    "Flatten",
    "LayerNorm",
    "Linear",
    "MSELoss",
    "MaxPool2d",
    "Module",
    "ModuleList",
    "Parameter",
    "ReLU",
    "Sequential",
    "Sigmoid",
    "Softmax",
    "Tanh",
    "functional",
    "init",
]
