"""A training loop with hooks everywhere: nothing of the program outlives it."""

from __future__ import annotations

import threading
from typing import Any

import mindtorch_v2 as torch
from mindprof import profile, record_function

from soak.accounts import check_some, names_in
from soak.rounds import Round

try:
    import numpy
except ImportError:
    numpy = None  # type: ignore[assignment]


class Twice(torch.autograd.Function):
    """An autograd function of the user."""

    @staticmethod
    def forward(ctx: Any, value: Any) -> Any:
        """Doubles."""
        ctx.save_for_backward(value)
        return value * 2

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        """Doubles too, in a range."""
        assert len(ctx.saved_tensors) == 1
        with record_function("backward of the user"):
            return gradient * 2


def train(given: Round) -> None:
    """Trains with hooks on tensors, modules and the optimizer, perhaps on several threads."""
    random = given.random
    flags = ("record_shapes", "profile_memory", "with_stack", "with_modules", "with_flops")
    chosen: dict[str, Any] = {flag: given.chance(0.4) for flag in flags}
    prof = profile(**chosen)
    steps = [random.randrange(1, 6) for _ in range(random.choice([1, 1, 3]))]
    with prof:
        threads = [threading.Thread(target=train_model, args=(given, count)) for count in steps]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    given.watch(prof, prof.events())
    out = names_in(prof)
    assert out["Optimizer.step#SGD.step"] == sum(steps), dict(out)
    assert out["backward of the user"] == sum(steps)
    check_some(prof, type(out)({"hook of the user": 2 * sum(steps)}))


def train_model(given: Round, steps: int) -> None:
    """Trains a small model for some steps."""
    model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU(), torch.nn.Linear(4, 1))
    optimizer = torch.optim.SGD(model.parameters(), 0.01, momentum=0.9)
    given.watch(model, model[0], optimizer)

    def hook(*_: Any) -> None:
        with record_function("hook of the user"):
            pass

    model[0].register_forward_hook(hook)
    optimizer.register_step_post_hook(lambda *_: None)
    for _ in range(steps):
        data = batch()
        data.requires_grad_(True)
        hidden = Twice.apply(data * 1)
        hidden.register_hook(hook)
        loss = model(hidden).sum()
        given.watch(data, hidden, loss)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def batch() -> Any:
    """Returns a batch, from numpy if it is installed."""
    if numpy is None:
        return torch.ones((3, 4))
    array = numpy.ones((3, 4), dtype=numpy.float32)
    shared = torch.from_numpy(array)
    array[0] = 2
    assert shared.numpy()[0, 0] == 2
    return shared.clone()
