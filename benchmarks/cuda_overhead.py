"""Compares the overhead of mindprof and torch.profiler while recording CUDA.

    python benchmarks/cuda_overhead.py [--rounds N] [WORKLOAD...]

Three processes take turns, so that a profiler affects no other program: one without a profiler, one
with mindprof and one with torch.profiler. In each round they run the same steps one right after the
other, until the device has finished. The result is the median over rounds of the time beyond that
of the program without a profiler, and the ratio of the two medians. "between recordings" is the
time beyond it of the same steps after a recording has stopped. Run it with a Python that has torch,
on a machine with CUDA and nothing else to do.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import multiprocessing
import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any

import mindprof
import torch  # type: ignore[import-not-found]

OPTIONS: dict[str, dict[str, Any]] = {
    "plain": {},
    "shapes": {"record_shapes": True},
    "shapes, memory": {"record_shapes": True, "profile_memory": True},
    "everything": {"record_shapes": True, "profile_memory": True, "with_stack": True},
}
TOOLS = "none", "mindprof", "torch"
OPERATORS = 100_000


def mlp() -> Callable[[], None]:
    """Returns a training step of a small network with AdamW and a copy on a second stream."""
    torch.manual_seed(0)
    layers = [torch.nn.Linear(256, 256) for _ in range(8)]
    net = torch.nn.Sequential(*[part for layer in layers for part in (layer, torch.nn.ReLU())])
    net.cuda()
    optimizer = torch.optim.AdamW(net.parameters())
    side = torch.cuda.Stream()
    x = torch.randn(64, 256, device="cuda")

    def step() -> None:
        with torch.cuda.stream(side):
            x.clone()
        optimizer.zero_grad()
        net(x).square().mean().backward()
        optimizer.step()

    return step


def gpt() -> Callable[[], None]:
    """Returns a training step of a small transformer."""
    torch.manual_seed(0)
    layer = torch.nn.TransformerEncoderLayer(128, 4, 512, dropout=0.0, batch_first=True)
    net = torch.nn.TransformerEncoder(layer, 4, enable_nested_tensor=False).cuda()
    optimizer = torch.optim.AdamW(net.parameters())
    x = torch.randn(8, 64, 128, device="cuda")

    def step() -> None:
        optimizer.zero_grad()
        net(x).square().mean().backward()
        optimizer.step()

    return step


def additions() -> Callable[[], None]:
    """Returns 200 small additions."""
    x = torch.ones(4, 4, device="cuda")

    def step() -> None:
        for _ in range(200):
            x + x

    return step


WORKLOADS = {"mlp": mlp, "gpt": gpt, "x + x": additions}


def seconds_per_step(step: Callable[[], None], profiler: Any, steps: int) -> float:
    """Returns the time of a step inside a profiler, without its start and its stop."""
    gc.collect()
    gc.disable()
    try:
        with profiler:
            step()
            torch.cuda.synchronize()
            begin = time.perf_counter()
            for _ in range(steps):
                step()
            torch.cuda.synchronize()
            return (time.perf_counter() - begin) / steps
    finally:
        gc.enable()


def work(name: str, tool: str, steps: int, orders: Any) -> None:
    """Measures a workload whenever it is told to, as a process of its own.

    An order is the options of a profiler, or `None` for steps without one; the answer is the time
    of a step.
    """
    step = WORKLOADS[name]()
    for _ in range(10):
        step()
    kinds: dict[str, Any] = {"mindprof": mindprof.profile, "torch": torch.profiler.profile}
    kind = kinds.get(tool)
    while True:
        options = orders.recv()
        if options == "end":
            return
        profiler = contextlib.nullcontext() if kind is None or options is None else kind(**options)
        orders.send(seconds_per_step(step, profiler, steps))


@contextlib.contextmanager
def workers(name: str, steps: int) -> Iterator[dict[str, Any]]:
    """Starts a process for each tool, and yields how to give orders to them."""
    context = multiprocessing.get_context("spawn")
    orders = {}
    for tool in TOOLS:
        orders[tool], theirs = context.Pipe()
        context.Process(target=work, args=(name, tool, steps, theirs), daemon=True).start()
    try:
        yield orders
    finally:
        for pipe in orders.values():
            pipe.send("end")


def compare(name: str, rounds: int, steps: int) -> None:
    """Prints the overhead of both profilers on one workload."""
    with workers(name, steps) as orders:

        def seconds(tool: str, options: dict[str, Any] | None) -> float:
            orders[tool].send(options)
            return float(orders[tool].recv())

        for told, options in OPTIONS.items():
            times: dict[str, list[float]] = {tool: [] for tool in TOOLS}
            left: dict[str, list[float]] = {tool: [] for tool in TOOLS}
            for number in range(rounds + 1):
                # The order alternates, and the first round warms up.
                for tool in TOOLS[:: -1 if number % 2 else 1]:
                    found = seconds(tool, options)
                    after = seconds(tool, None)
                    if number > 0:
                        times[tool].append(found)
                        left[tool].append(after)
            alone = statistics.median(times["none"] + left["none"])
            extra, rest = (
                {tool: statistics.median(found[tool]) - alone for tool in TOOLS}
                for found in (times, left)
            )
            print(
                f"{name:6} {told:15} {alone * 1e6:6.0f} us alone, "
                f"mindprof +{extra['mindprof'] * 1e6:5.0f} us, "
                f"torch +{extra['torch'] * 1e6:5.0f} us, "
                f"ratio {extra['mindprof'] / extra['torch']:.2f}; between recordings "
                f"{rest['mindprof'] / alone:+.0%}, {rest['torch'] / alone:+.0%}",
                flush=True,
            )


def results() -> None:
    """Prints how long the stop and the first rows of many operators take."""
    step = additions()
    for told in ("plain", "everything"):
        with mindprof.profile(**OPTIONS[told]) as prof:
            for _ in range(OPERATORS // 200):
                step()
            torch.cuda.synchronize()
            begin = time.perf_counter()
        stopped = time.perf_counter()
        prof.key_averages()
        shown = time.perf_counter()
        print(
            f"{OPERATORS} operators, {told}: stop {(stopped - begin) * 1e3:.0f} ms, "
            f"rows {(shown - stopped) * 1e3:.0f} ms",
            flush=True,
        )


def main() -> None:
    """Measures the workloads of the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("workloads", nargs="*", choices=[*WORKLOADS, []], metavar="WORKLOAD")
    parser.add_argument("--rounds", type=int, default=25)
    parser.add_argument("--steps", type=int, default=10)
    arguments = parser.parse_args()
    for name in arguments.workloads or WORKLOADS:
        compare(name, arguments.rounds, arguments.steps)
    results()


if __name__ == "__main__":
    main()
