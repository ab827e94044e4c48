"""What is run under both profilers: the training steps of the goldens, and threads."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import torch  # type: ignore[import-not-found]

from tests.host import golden_workloads


def threads(torch: Any, device: str = "cpu") -> Callable[[], Any]:
    """Three threads with ranges of their own, beside the one that starts them."""
    x = torch.randn(64, 64, device=device)
    record_function = torch.profiler.record_function

    def work(number: int) -> None:
        with record_function(f"worker_{number}"):
            for _ in range(5):
                with record_function("inner"):
                    (x @ x).relu().sum().item()

    def step() -> None:
        workers = [threading.Thread(target=work, args=(number,)) for number in range(3)]
        with record_function("main"):
            for worker in workers:
                worker.start()
            (x + x).sum()
            for worker in workers:
                worker.join()

    return step


def workload(name: str, device: str = "cpu") -> Callable[[], Any]:
    """Returns the step of a workload, after two steps: the first ones allocate more."""
    torch.manual_seed(0)
    # Operators within operators would run on threads of a pool, in any order.
    torch.set_num_threads(1)
    makers = {**golden_workloads.WORKLOADS, "threads": threads}
    step = makers[name](torch, device)
    for _ in range(2):
        step()
    return step


NAMES = [*golden_workloads.WORKLOADS, "threads"]
