"""An optimizer by hand that updates one parameter after the other."""

import torch
from torch import nn


class Momentum(torch.optim.Optimizer):
    def __init__(self, parameters, lr):
        super().__init__(parameters, {"lr": lr})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for parameter in group["params"]:
                state = self.state[parameter]
                if "momentum" not in state:
                    state["momentum"] = torch.zeros_like(parameter)
                state["momentum"].mul_(0.9).add_(parameter.grad)
                norm = state["momentum"].norm().item()
                parameter.add_(state["momentum"], alpha=-group["lr"] / max(norm, 1.0))


model = nn.Sequential(*[nn.Linear(16, 16) for _ in range(60)])
optimizer = Momentum(model.parameters(), lr=0.01)
x = torch.randn(8, 16)
for _ in range(50):
    optimizer.zero_grad()
    model(x).square().mean().backward()
    optimizer.step()
