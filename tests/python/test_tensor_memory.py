"""Live bytes: what tensors hold, and no more."""

from __future__ import annotations

import gc

import mindtorch_v2 as torch
from mindprof import _core
from mindtorch_v2.nn import functional


def train(steps: int) -> None:
    weight = torch.randn(16, 8, requires_grad=True)
    bias = torch.zeros(16, requires_grad=True)
    for _ in range(steps):
        x = torch.randn(4, 8)
        hidden = functional.linear(x, weight, bias)
        hidden.register_hook(lambda gradient: gradient * 1.0)
        loss = functional.mse_loss(hidden.tanh(), torch.ones(4, 16))
        loss.backward()
        with torch.no_grad():
            for parameter in (weight, bias):
                assert parameter.grad is not None
                parameter.add_(parameter.grad, alpha=-0.1)
                parameter.grad = None


def test_a_training_loop_leaves_nothing_behind() -> None:
    train(1)
    gc.collect()
    before = _core._live_bytes()
    train(5)
    gc.collect()
    assert _core._live_bytes() == before


def test_a_graph_that_is_never_walked_leaves_nothing_behind() -> None:
    gc.collect()
    before = _core._live_bytes()
    x = torch.randn(8, requires_grad=True)
    y = (x * x).exp()
    y[0] = 1.0
    z = torch.cat([y, x])
    del x, y, z
    gc.collect()
    assert _core._live_bytes() == before


def test_views_and_copies_count_as_what_they_are() -> None:
    before = _core._live_bytes()
    x = torch.ones(4, 4)
    assert _core._live_bytes() - before == 64
    view = x.t()[1:]
    assert _core._live_bytes() - before == 64
    del x
    copy = view.clone()
    assert _core._live_bytes() - before == 64 + 48
    del view, copy
    assert _core._live_bytes() == before
