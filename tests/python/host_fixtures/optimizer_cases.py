"""Optimizers, each as it is and with its options, run both with torch and with the embedded host.

Every function is given the module that it calls torch.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.python.host_fixtures.cases import parameters, plain, set_gradients, values

STEPS = 20
# What is kept of many steps, and follows from the rest.
HISTORY = ("al", "old_dirs", "old_stps", "ro")

# What each optimizer is given: by its name, and what else the case is called.
OPTIMIZERS: dict[str, dict[str, Any]] = {
    "SGD": {"lr": 0.1},
    "SGD momentum": {"lr": 0.1, "momentum": 0.9},
    "SGD nesterov": {"lr": 0.1, "momentum": 0.9, "nesterov": True, "weight_decay": 0.1},
    "SGD dampening": {"lr": 0.1, "momentum": 0.9, "dampening": 0.3, "maximize": True},
    "SGD decay": {"lr": 0.1, "weight_decay": 0.1},
    "Adam": {"lr": 0.01},
    "Adam decay": {"lr": 0.01, "weight_decay": 0.1},
    "Adam amsgrad": {"betas": (0.5, 0.7), "amsgrad": True},
    "Adam maximize": {"maximize": True},
    "AdamW": {"lr": 0.01},
    "AdamW without decay": {"weight_decay": 0.0},
    "AdamW amsgrad": {"lr": 0.01, "amsgrad": True, "maximize": True},
    "RMSprop": {},
    "RMSprop decay": {"weight_decay": 0.1},
    "RMSprop centered": {"centered": True, "momentum": 0.9, "weight_decay": 0.1},
    "RMSprop momentum": {"momentum": 0.9},
    "RMSprop maximize": {"maximize": True},
    "Adagrad": {"lr": 0.1},
    "Adagrad decay": {"lr_decay": 0.1, "weight_decay": 0.1, "initial_accumulator_value": 0.5},
    "Adagrad maximize": {"maximize": True},
    "Adadelta": {},
    "Adadelta decay": {"lr": 0.5, "rho": 0.8, "weight_decay": 0.1},
    "Adadelta maximize": {"maximize": True},
    "Adamax": {"lr": 0.05},
    "Adamax decay": {"betas": (0.8, 0.9), "weight_decay": 0.1},
    "Adamax maximize": {"maximize": True},
    "NAdam": {"lr": 0.05},
    "NAdam decay": {"weight_decay": 0.1, "momentum_decay": 0.1},
    "NAdam decoupled": {"weight_decay": 0.1, "decoupled_weight_decay": True, "maximize": True},
    "RAdam": {"lr": 0.05},
    "RAdam decay": {"betas": (0.8, 0.9), "weight_decay": 0.1},
    "RAdam decoupled": {"weight_decay": 0.1, "decoupled_weight_decay": True, "maximize": True},
    "ASGD": {"lr": 0.1},
    "ASGD averaging": {"lr": 0.1, "lambd": 0.01, "t0": 4, "weight_decay": 0.1},
    "ASGD maximize": {"alpha": 0.5, "maximize": True},
    "Rprop": {"lr": 0.05},
    "Rprop bounds": {"etas": (0.3, 1.5), "step_sizes": (1e-3, 0.1)},
    "Rprop maximize": {"maximize": True},
    "Adafactor": {},
    "Adafactor decay": {"lr": 0.5, "beta2_decay": -0.3, "weight_decay": 0.1},
    "Adafactor bounds": {"lr": 0.1, "eps": (0.5, 2.0), "d": 1.5},
    "Adafactor maximize": {"maximize": True},
    "Muon": {},
    "Muon without nesterov": {"lr": 0.05, "momentum": 0.5, "nesterov": False},
    "Muon rounds": {"lr": 0.05, "ns_steps": 3, "ns_coefficients": (2.0, -1.5, 0.5), "eps": 10.0},
    "Muon like AdamW": {"lr": 0.05, "weight_decay": 0.0, "adjust_lr_fn": "match_rms_adamw"},
    "Muon spectral": {"lr": 0.05, "adjust_lr_fn": "spectral_unclamped"},
}

# For what takes matrices only: wide, square and tall.
MATRICES = [(3, 4), (3, 3), (5, 2)]

# These evaluate a loss themselves, and stop while its gradient is more than rounding.
WOLFE = {"line_search_fn": "strong_wolfe", "tolerance_grad": 1e-2}
SEARCHERS: dict[str, dict[str, Any]] = {
    "LBFGS": {"lr": 0.1, "max_iter": 4, "tolerance_grad": 1e-2},
    "LBFGS history": {"lr": 0.1, "max_iter": 6, "history_size": 2, "tolerance_grad": 1e-2},
    "LBFGS strong Wolfe": {"max_iter": 5, **WOLFE},
    "LBFGS long lines": {"lr": 20.0, "max_iter": 6, **WOLFE},
    "LBFGS short lines": {"lr": 0.01, "max_iter": 6, **WOLFE},
    "LBFGS few evaluations": {"max_eval": 4, **WOLFE},
    "LBFGS maximize": {"lr": 0.05, "max_iter": 3, "maximize": True},
}


def params_of(torch: Any, name: str) -> list[Any]:
    """Returns the parameters of a case.

    Those that search a line divide differences by differences, which single precision leaves
    little of.
    """
    if name.startswith("Muon"):
        return [torch.nn.Parameter(values(torch, s, seed)) for seed, s in enumerate(MATRICES)]
    params = parameters(torch)
    if name in SEARCHERS:
        return [torch.nn.Parameter(param.detach().double()) for param in params]
    return params


def make(torch: Any, name: str, params: Any) -> Any:
    """Makes the optimizer of a case."""
    options = OPTIMIZERS[name] if name in OPTIMIZERS else SEARCHERS[name]
    return getattr(torch.optim, name.split()[0])(params, **options)


def closure_of(torch: Any, params: list[Any], sign: float) -> Callable[[], Any]:
    """Returns what computes a loss with valleys, and its gradients, by few operators."""

    def closure() -> Any:
        with torch.no_grad():
            loss = 0.0
            for param in params:
                depth = param * param - 1
                param.grad = sign * (2 * param * depth + 0.3)
                loss = loss + sign * (depth * depth * 0.5 + 0.3 * param).sum()
        return loss

    return closure


def prepare(torch: Any, name: str, params: list[Any], optimizer: Any, step: int) -> Any:
    """Returns what takes a step of a case, by its number."""
    if name in SEARCHERS:
        sign = -1.0 if SEARCHERS[name].get("maximize") else 1.0
        closure = closure_of(torch, params, sign)
        return lambda: optimizer.step(closure)
    set_gradients(torch, params, step)
    return optimizer.step


def run_optimizer(torch: Any, name: str) -> dict[str, Any]:
    """Runs an optimizer for some steps; returns parameters, state and options after them."""
    params = params_of(torch, name)
    optimizer = make(torch, name, params)
    for step in range(STEPS):
        prepare(torch, name, params, optimizer, step)()
    saved = optimizer.state_dict()
    return {
        "parameters": [param.tolist() for param in params],
        "state": {
            str(number): {key: plain(value) for key, value in state.items() if key not in HISTORY}
            for number, state in saved["state"].items()
        },
        "options": {key: plain(value) for key, value in saved["param_groups"][0].items()},
        "text": repr(optimizer),
    }
