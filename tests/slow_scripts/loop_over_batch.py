"""A forward pass that computes one sample after the other."""

import torch
from torch import nn


class Scorer(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 1))

    def forward(self, batch):
        scores = []
        for sample in batch:
            scores.append(self.layers(sample))
        return torch.stack(scores)


def train(model, x, y):
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(40):
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()


train(Scorer(), torch.randn(128, 64), torch.randn(128, 1))
