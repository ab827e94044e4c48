"""Trains a small model slowly: a program to try `mindprof run` on without PyTorch.

Run `mindprof run examples/slow_features.py`. Nothing in the program knows of the profiler. The
model learns whether a point lies inside a circle. A function computes one of its features number
by number.
"""

from __future__ import annotations

import mindtorch_v2 as torch
from mindtorch_v2 import nn

STEPS = 60
POINTS = 256
NEAR = 0.1


class Classifier(nn.Module):
    """Two layers on top of the features of a point."""

    def __init__(self, features: int) -> None:
        super().__init__()
        self.hidden = nn.Linear(features, 64)
        self.out = nn.Linear(64, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Returns a score for outside and for inside."""
        scores: torch.Tensor = self.out(torch.tanh(self.hidden(x)))
        return scores


def crowding(points: list[list[float]]) -> list[float]:
    """Returns how many other points are near each point."""
    return [float(sum((x - a) ** 2 + (y - b) ** 2 < NEAR for a, b in points)) for x, y in points]


def train() -> float:
    """Trains the model and returns its last loss."""
    torch.manual_seed(0)
    model = Classifier(features=3)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    criterion = nn.CrossEntropyLoss()
    for _ in range(STEPS):
        points = torch.randn(POINTS, 2)
        inside = ((points * points).sum(1) < 1.0).to(torch.int64)
        crowds = torch.tensor(crowding(points.tolist())) / POINTS
        features = torch.cat([points, crowds.reshape(POINTS, 1)], dim=1)
        loss = criterion(model(features), inside)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return float(loss.item())


if __name__ == "__main__":
    print(f"loss {train():.3f}")
