"""Training that logs the norm and the largest part of each gradient as Python numbers."""

import torch
from torch import nn


def log_gradients(model, history):
    total = 0.0
    for name, parameter in model.named_parameters():
        norm = parameter.grad.detach().norm(2).item()
        largest = parameter.grad.detach().abs().max().item()
        history.setdefault(name, []).append((norm, largest))
        total += norm**2
    return total**0.5


class Deep(nn.Module):
    def __init__(self, depth, width):
        super().__init__()
        layers = [[nn.LayerNorm(width), nn.Linear(width, width)] for _ in range(depth)]
        self.layers = nn.ModuleList(nn.Sequential(*pair, nn.ReLU()) for pair in layers)

    def forward(self, x):
        for layer in self.layers:
            x = x + layer(x)
        return x


model, history = Deep(48, 24), {}
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for _ in range(40):
    x = torch.randn(16, 24)
    loss = (model(x) - x).square().mean()
    optimizer.zero_grad()
    loss.backward()
    log_gradients(model, history)
    optimizer.step()
