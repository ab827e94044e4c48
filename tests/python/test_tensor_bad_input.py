"""Whatever is thrown at tensors: an exception at most, never a panic."""

from __future__ import annotations

import inspect
import itertools
import random
import warnings
from typing import Any

import mindtorch_v2 as torch
from mindprof import _core
from mindtorch_v2.nn import functional

# They print, change settings, or need what is not installed.
LEFT_OUT = {
    "set_printoptions",
    "manual_seed",
    "set_num_threads",
    "numpy",
    "from_numpy",
    "backward",
    "_set_grad_enabled",
}


def values() -> list[Any]:
    return [
        torch.ones(3, 4),
        torch.ones(2, 3, 4, 4),
        torch.ones(3, 4).t(),
        torch.ones(4).expand(3, 4),
        torch.ones(4, requires_grad=True),
        torch.ones(3, 4, requires_grad=True) * 2,
        torch.zeros(0, 3),
        torch.tensor(2.5),
        torch.arange(6).reshape(2, 3),
        torch.tensor([True, False, True]),
        torch.ones(2, dtype=torch.int32),
        torch.ones(2, 2, dtype=torch.float64),
        None,
        0,
        1,
        -1,
        7,
        -(1 << 63),
        (1 << 63) - 1,
        1 << 70,
        0.5,
        float("nan"),
        float("inf"),
        True,
        "cpu",
        "mean",
        (),
        (0, 1),
        [2, -1],
        (1 << 40, 1 << 40),
        slice(None, None, 2),
        ...,
        torch.int64,
        torch.float32,
    ]


def call(function: Any, arguments: tuple[Any, ...]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            function(*arguments)
        except Exception:
            # Any exception will do; a panic is none.
            return


def test_methods_never_panic() -> None:
    chance = random.Random(0)
    methods = [
        name
        for name in dir(torch.Tensor)
        if name not in LEFT_OUT and callable(getattr(torch.Tensor, name)) and name[:2] != "__"
    ]
    operators = ["add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "getitem"]
    methods += [f"__{name}__" for name in [*operators, "and", "or", "xor", "setitem", "contains"]]
    for name in methods:
        for _ in range(60):
            pool = values()
            own = pool[chance.randrange(12)]
            arguments = tuple(chance.choice(pool) for _ in range(chance.randrange(4)))
            if name.startswith(("new_", "expand")) and any(
                isinstance(argument, int) and argument > 1 << 20 for argument in arguments
            ):
                continue
            call(getattr(own, name), arguments)


def test_functions_never_panic() -> None:
    chance = random.Random(1)
    functions = [
        function
        for module in (_core, functional)
        for name, function in vars(module).items()
        if inspect.isroutine(function) and name not in LEFT_OUT and name != "_dimension"
    ]
    for function in functions:
        for _ in range(80):
            pool = values()
            call(function, tuple(chance.choice(pool) for _ in range(chance.randrange(6))))


def test_indices_never_panic() -> None:
    indices: list[Any] = [
        0,
        -1,
        99,
        None,
        ...,
        slice(1, None),
        slice(5, 2),
        slice(None, None, 3),
        True,
        False,
    ]
    indices += [[0, 1], [], torch.tensor([0, 1]), torch.tensor([True, False, True]), 1.5, "a"]
    indices += [torch.tensor(1), torch.tensor([[0]]), torch.ones(3, 4) > 0, slice(-9, 9)]
    for pair in itertools.product(indices, repeat=2):
        for index in (*pair, pair, (pair[0], *pair)):
            x = torch.ones(3, 4)
            call(x.__getitem__, (index,))
            call(x.__setitem__, (index, 2.0))
            call(x.__setitem__, (index, torch.ones(2)))
