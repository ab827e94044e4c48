"""A compiled function that is compiled again for each value of an argument."""

import torch
from torch import nn


@torch.compile(backend="eager", dynamic=False)
def scaled(x, mode):
    if mode == "wide":
        return x * 2
    return torch.relu(x) + len(mode)


model = nn.Linear(64, 64)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
x = torch.randn(32, 64)
for step in range(16):
    optimizer.zero_grad()
    scaled(model(x), "m" * (step % 8)).square().mean().backward()
    optimizer.step()
