"""Optimizers, and schedulers of their learning rates.

>>> import mindtorch_v2 as torch
>>> model = torch.nn.Linear(2, 1)
>>> optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
>>> model(torch.ones(3, 2)).sum().backward()
>>> optimizer.step()
>>> optimizer.zero_grad()
>>> model.weight.grad is None
True
"""

from mindtorch_v2.optim import lr_scheduler
from mindtorch_v2.optim.adagrad import Adagrad
from mindtorch_v2.optim.adam import Adam
from mindtorch_v2.optim.adamw import AdamW
from mindtorch_v2.optim.optimizer import Optimizer
from mindtorch_v2.optim.rmsprop import RMSprop
from mindtorch_v2.optim.sgd import SGD

__all__ = ["SGD", "Adagrad", "Adam", "AdamW", "Optimizer", "RMSprop", "lr_scheduler"]
