"""Compares the overhead of mindprof and torch.profiler while recording CUDA.

    python benchmarks/cuda_overhead.py [--rounds N] [WORKLOAD...]

Each round runs the same steps without a profiler, with mindprof and with torch.profiler, one right
after the other, and measures them until the device has finished. The result is the median over
rounds of the time beyond that of the run without a profiler, and the ratio of the two medians. The
time of a step before the first recording and after the last one shows what recordings leave. Run
it with a Python that has torch, on a machine with CUDA and nothing else to do.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import statistics
import time
from collections.abc import Callable
from typing import Any

import mindprof
import torch  # type: ignore[import-not-found]

OPTIONS: dict[str, dict[str, Any]] = {
    "plain": {},
    "shapes": {"record_shapes": True},
    "shapes, memory": {"record_shapes": True, "profile_memory": True},
    "everything": {"record_shapes": True, "profile_memory": True, "with_stack": True},
}
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


def compare(name: str, rounds: int, steps: int) -> None:
    """Prints the overhead of both profilers on one workload."""
    step = WORKLOADS[name]()
    for _ in range(10):
        step()
    profilers: dict[str, Callable[..., Any]] = {
        "mindprof": mindprof.profile,
        "torch": torch.profiler.profile,
    }
    for told, options in OPTIONS.items():
        extra: dict[str, list[float]] = {tool: [] for tool in profilers}
        plain = []
        for _ in range(rounds):
            base = seconds_per_step(step, contextlib.nullcontext(), steps)
            plain.append(base)
            for tool, kind in profilers.items():
                extra[tool].append(seconds_per_step(step, kind(**options), steps) - base)
        ours, theirs = (statistics.median(extra[tool]) * 1e6 for tool in profilers)
        alone = statistics.median(plain) * 1e6
        print(
            f"{name:6} {told:15} {alone:8.0f} us alone, mindprof +{ours:6.0f} us, "
            f"torch +{theirs:6.0f} us, ratio {ours / theirs:.2f}",
            flush=True,
        )


def step_alone(rounds: int) -> float:
    """Returns the median time of 200 additions without a profiler, in microseconds."""
    step = additions()
    times = [seconds_per_step(step, contextlib.nullcontext(), 20) for _ in range(rounds)]
    return statistics.median(times) * 1e6


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
    untouched = step_alone(arguments.rounds)
    with mindprof.profile(), contextlib.suppress(RuntimeError):
        torch.ones(1, device="cuda")
    for name in arguments.workloads or WORKLOADS:
        compare(name, arguments.rounds, arguments.steps)
    results()
    afterwards = step_alone(arguments.rounds)
    print(f"200 additions: {untouched:.0f} us before any recording, {afterwards:.0f} us after all")


if __name__ == "__main__":
    main()
