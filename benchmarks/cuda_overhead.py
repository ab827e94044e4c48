"""Compares the overhead of mindprof and torch.profiler while recording CUDA.

    python benchmarks/cuda_overhead.py [--rounds N] [WORKLOAD...]

Each round runs the same steps without a profiler, with mindprof, with torch.profiler and with
torch.profiler for the device alone, one right after the other, until the device has finished. The
result is the median over rounds of the time beyond that of the run without a profiler, and the
ratio to torch's. CUPTI is detached after each recording, as mindprof does by itself, so that every
run starts as in a program without a profiler. The device alone shows what CUPTI costs as torch sets
it up; mindprof leaves out the records of some calls. The first line shows how fast the program is
after each profiler. Run it with a Python that has torch, on a machine with CUDA 13 and nothing else
to do.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import gc
import re
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mindprof
import torch  # type: ignore[import-not-found]

OPTIONS: dict[str, dict[str, Any]] = {
    "plain": {},
    "shapes": {"record_shapes": True},
    "shapes, memory": {"record_shapes": True, "profile_memory": True},
    "everything": {"record_shapes": True, "profile_memory": True, "with_stack": True},
}
TOOLS: dict[str, Callable[..., Any]] = {
    "mindprof": mindprof.profile,
    "torch": torch.profiler.profile,
    "the device alone": lambda **_: torch.profiler.profile(
        activities=[torch.profiler.ProfilerActivity.CUDA]
    ),
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


def detach() -> None:
    """Detaches CUPTI from the process."""
    found = re.search(r"/\S*libcupti\.so\S*", Path("/proc/self/maps").read_text())
    if found:
        ctypes.CDLL(found.group()).cuptiFinalize()


def compare(name: str, rounds: int, steps: int) -> None:
    """Prints the overhead of each profiler on one workload."""
    step = WORKLOADS[name]()
    for _ in range(10):
        step()
    for told, options in OPTIONS.items():
        extra: dict[str, list[float]] = {tool: [] for tool in TOOLS}
        plain = []
        for number in range(rounds + 1):
            base = seconds_per_step(step, contextlib.nullcontext(), steps)
            # The order alternates, and the first round warms up.
            for tool in list(TOOLS)[:: -1 if number % 2 else 1]:
                found = seconds_per_step(step, TOOLS[tool](**options), steps) - base
                detach()
                if number > 0:
                    extra[tool].append(found)
            if number > 0:
                plain.append(base)
        ours, theirs, device = (statistics.median(extra[tool]) * 1e6 for tool in TOOLS)
        print(
            f"{name:6} {told:15} {statistics.median(plain) * 1e6:6.0f} us alone, "
            f"mindprof +{ours:5.0f} us, torch +{theirs:5.0f} us, ratio {ours / theirs:.2f}; "
            f"the device alone +{device:5.0f} us, {device / theirs:.2f}",
            flush=True,
        )


def what_stays(rounds: int) -> None:
    """Prints the time of 200 additions before recordings and after each profiler's."""
    step = additions()

    def alone() -> float:
        times = [seconds_per_step(step, contextlib.nullcontext(), 20) for _ in range(rounds)]
        return statistics.median(times) * 1e6

    alone()
    found = {"before": alone()}
    for tool, kind in list(TOOLS.items())[:2]:
        seconds_per_step(step, kind(), 1)
        found[f"after {tool}"] = alone()
    print("200 additions:", ", ".join(f"{time:.0f} us {when}" for when, time in found.items()))


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
    what_stays(arguments.rounds)
    for name in arguments.workloads or WORKLOADS:
        compare(name, arguments.rounds, arguments.steps)
    results()


if __name__ == "__main__":
    main()
