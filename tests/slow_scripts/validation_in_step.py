"""A loop that validates after each step."""

import torch
from torch import nn

model = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 10))
optimizer = torch.optim.AdamW(model.parameters())
x, y = torch.randn(64, 64), torch.randint(0, 10, (64,))
held_out = [(torch.randn(256, 64), torch.randint(0, 10, (256,))) for _ in range(8)]


def validate():
    model.eval()
    with torch.no_grad():
        losses = [nn.functional.cross_entropy(model(x), y) for x, y in held_out]
    model.train()
    return torch.stack(losses).mean()


for _ in range(60):
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(x), y).backward()
    optimizer.step()
    validate()
