"""Schedulers, in all their ways, run both with torch and with the embedded host.

Every function is given the module that it calls torch.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from tests.python.host_fixtures.cases import parameters, plain

EPOCHS = 30

SCHEDULERS: dict[str, Callable[[Any, Any], Any]] = {
    "StepLR": lambda s, o: s.StepLR(o, 7, gamma=0.5),
    "MultiStepLR": lambda s, o: s.MultiStepLR(o, [3, 3, 11, 20], gamma=0.3),
    "LambdaLR": lambda s, o: s.LambdaLR(o, lambda epoch: 0.9**epoch),
    "LambdaLR by group": lambda s, o: s.LambdaLR(o, [lambda e: 1 / (1 + e), lambda e: 0.5**e]),
    "MultiplicativeLR": lambda s, o: s.MultiplicativeLR(o, lambda epoch: 1 - 0.01 * epoch),
    "ExponentialLR": lambda s, o: s.ExponentialLR(o, 0.8),
    "ConstantLR": lambda s, o: s.ConstantLR(o),
    "ConstantLR longer": lambda s, o: s.ConstantLR(o, factor=0.7, total_iters=12),
    "LinearLR": lambda s, o: s.LinearLR(o),
    "LinearLR down": lambda s, o: s.LinearLR(o, 0.9, 0.2, total_iters=17),
    "PolynomialLR": lambda s, o: s.PolynomialLR(o, total_iters=13),
    "PolynomialLR power": lambda s, o: s.PolynomialLR(o, total_iters=25, power=2.3),
    "CosineAnnealingLR": lambda s, o: s.CosineAnnealingLR(o, 10, eta_min=0.01),
    "CosineAnnealingWarmRestarts": lambda s, o: s.CosineAnnealingWarmRestarts(o, 7),
    "CosineAnnealingWarmRestarts longer": lambda s, o: s.CosineAnnealingWarmRestarts(
        o, 4, T_mult=2, eta_min=0.02
    ),
    "CyclicLR": lambda s, o: s.CyclicLR(o, 0.01, 0.2, step_size_up=4),
    "CyclicLR triangular2": lambda s, o: s.CyclicLR(
        o, [0.01, 0.02], [0.2, 0.3], step_size_up=3, step_size_down=5, mode="triangular2"
    ),
    "CyclicLR exp_range": lambda s, o: s.CyclicLR(
        o, 0.01, 0.2, step_size_up=6, mode="exp_range", gamma=0.93, base_momentum=0.7
    ),
    "CyclicLR by function": lambda s, o: s.CyclicLR(
        o,
        0.01,
        0.2,
        step_size_up=4,
        scale_fn=lambda x: 1 / (1 + x),
        scale_mode="iterations",
        cycle_momentum=False,
    ),
    "OneCycleLR": lambda s, o: s.OneCycleLR(o, 1.0, total_steps=EPOCHS),
    "OneCycleLR linear": lambda s, o: s.OneCycleLR(
        o, [1.0, 2.0], epochs=6, steps_per_epoch=5, anneal_strategy="linear"
    ),
    "OneCycleLR in three phases": lambda s, o: s.OneCycleLR(
        o, 1.0, total_steps=EPOCHS, three_phase=True, cycle_momentum=False
    ),
    "SequentialLR": lambda s, o: s.SequentialLR(
        o, [s.ConstantLR(o, 0.1, 3), s.ExponentialLR(o, 0.9), s.StepLR(o, 4)], [5, 14]
    ),
    "SequentialLR after a rise": lambda s, o: s.SequentialLR(
        o, [s.LinearLR(o, 0.1, total_iters=6), s.CosineAnnealingLR(o, 20)], [6]
    ),
    "ChainedScheduler": lambda s, o: s.ChainedScheduler(
        [s.ConstantLR(o, 0.1, 4), s.ExponentialLR(o, 0.9)]
    ),
    "SequentialLR of chains": lambda s, o: s.SequentialLR(
        o,
        [s.ChainedScheduler([s.LinearLR(o), s.ExponentialLR(o, 0.9)], o), s.PolynomialLR(o, 9)],
        [8],
    ),
    "ReduceLROnPlateau": lambda s, o: s.ReduceLROnPlateau(o, factor=0.5, patience=2),
    "ReduceLROnPlateau max": lambda s, o: s.ReduceLROnPlateau(
        o, "max", patience=1, cooldown=3, min_lr=[0.01, 0.02], threshold=0.3
    ),
    "ReduceLROnPlateau abs": lambda s, o: s.ReduceLROnPlateau(
        o, patience=0, factor=0.7, threshold=0.4, threshold_mode="abs"
    ),
}


def metric(epoch: int) -> float:
    """Returns a measure that gets better for a while and then no more."""
    return 3.0 / (1 + min(epoch, 9)) + (0.01 * (epoch % 3))


def run_scheduler(torch: Any, name: str) -> dict[str, Any]:
    """Runs a scheduler; returns the rates and the momentum of each epoch and its state."""
    first, second = parameters(torch)
    groups = [{"params": [first]}, {"params": [second], "lr": 0.3}]
    optimizer = torch.optim.SGD(groups, lr=0.1, momentum=0.9)
    with warnings.catch_warnings():
        # A chain that a sequence begins with is stepped twice, which both warn about.
        warnings.simplefilter("ignore")
        scheduler = SCHEDULERS[name](torch.optim.lr_scheduler, optimizer)
    rates, momenta = [], []
    for epoch in range(EPOCHS - 1):
        rates.append(scheduler.get_last_lr())
        momenta.append([group["momentum"] for group in optimizer.param_groups])
        optimizer.step()
        if name.startswith("ReduceLROnPlateau"):
            scheduler.step(metric(epoch))
        else:
            scheduler.step()
    rates.append(scheduler.get_last_lr())
    return {"rates": rates, "momenta": momenta, "state": plain(scheduler.state_dict())}
