"""Metrics that look at every item of a batch, one by one."""

import torch
from torch import nn


def accuracy(output, target):
    right = 0
    for i in range(len(target)):
        if output[i].argmax().item() == target[i].item():
            right += 1
    return right / len(target)


def main():
    model = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    x, y = torch.randn(256, 32), torch.randint(0, 10, (256,))
    for _ in range(50):
        output = model(x)
        loss = nn.functional.cross_entropy(output, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        accuracy(output, y)


main()
