"""Features that are copied into another layout and back for each operation."""

import torch
from torch import nn


def mix_channels(x):
    for _ in range(6):
        x = x.transpose(1, 2).contiguous()
        x = x * 1.01
        x = x.transpose(1, 2).contiguous()
    return x


model = nn.Linear(128, 8)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
x = torch.randn(16, 256, 128)
for _ in range(30):
    optimizer.zero_grad()
    model(mix_channels(x)).square().mean().backward()
    optimizer.step()
