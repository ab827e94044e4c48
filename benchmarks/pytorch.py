"""Compares the overhead of mindprof and torch.profiler while recording real PyTorch.

Each round runs the same work without a profiler, with mindprof paused, with mindprof and with
torch.profiler, one right after the other, because the speed of a machine changes from second to
second. The work runs once to warm up and then several times without garbage collection; the best
run counts. The result is the median over rounds of the thread's CPU time beyond that of the run
without a profiler. A paused profiler shows torch's cost of any observer: torch calls it for each
operator, and it returns at once. Run it with a Python that has torch, on an idle machine:
`make bench-pytorch TORCH_PYTHON=…`.
"""

from __future__ import annotations

import contextlib
import gc
import statistics
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import mindprof
import torch  # type: ignore[import-not-found]

ROUNDS = 60
RUNS = 4
ADDITIONS = 500
CALLS = 2_000
STEPS = 5
EVENTS = 100_000

CPU = [torch.profiler.ProfilerActivity.CPU]


@contextlib.contextmanager
def paused(**options: Any) -> Iterator[None]:
    """Opens a profiler whose collection is paused."""
    with mindprof.profile(**options) as prof:
        prof.toggle_collection_dynamic(False, CPU)
        yield


PROFILERS: dict[str, Callable[..., Any]] = {
    "mindprof": mindprof.profile,
    "torch": torch.profiler.profile,
}
# With memory or stacks, a paused profiler still follows allocations and calls, so it shows the
# cost of a bare observer only for these options.
OBSERVED = "plain", "shapes"
OPTIONS: dict[str, dict[str, Any]] = {
    "plain": {},
    "shapes": {"record_shapes": True},
    "shapes, memory": {"record_shapes": True, "profile_memory": True},
    "stacks": {"with_stack": True},
}


def additions() -> Callable[[], None]:
    """Returns a function that runs many small additions."""
    x = torch.ones(4, 4)

    def run() -> None:
        for _ in range(ADDITIONS):
            x + x

    return run


def calls() -> Callable[[], None]:
    """Returns a function that makes many calls of Python."""

    def called() -> None:
        pass

    def run() -> None:
        for _ in range(CALLS):
            called()

    return run


def training() -> Callable[[], None]:
    """Returns a function that trains a small model for a few steps."""
    layers = torch.nn.Linear(64, 128), torch.nn.ReLU(), torch.nn.Linear(128, 10)
    model = torch.nn.Sequential(*layers)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    x, y = torch.randn(32, 64), torch.randn(32, 10)

    def run() -> None:
        for _ in range(STEPS):
            optimizer.zero_grad()
            torch.nn.functional.mse_loss(model(x), y).backward()
            optimizer.step()

    return run


def encoder() -> Callable[[], None]:
    """Returns a function that trains an encoder of four layers for one step."""
    layer = torch.nn.TransformerEncoderLayer(64, 4, 128, dropout=0.0, batch_first=True)
    model = torch.nn.TransformerEncoder(layer, 4, enable_nested_tensor=False)
    optimizer = torch.optim.AdamW(model.parameters())
    x = torch.randn(8, 16, 64)

    def run() -> None:
        optimizer.zero_grad()
        model(x).square().mean().backward()
        optimizer.step()

    return run


def best(work: Callable[[], None]) -> int:
    """Returns the least CPU time of several runs, in nanoseconds."""
    work()
    return min(timed(work) for _ in range(RUNS))


def timed(action: Callable[[], Any]) -> int:
    """Returns the CPU time that an action takes on this thread, in nanoseconds."""
    started = time.thread_time_ns()
    action()
    return time.thread_time_ns() - started


def extra(work: Callable[[], None], name: str) -> dict[str, float]:
    """Returns the overhead of each profiler and the time without any, as medians over rounds."""
    profilers = PROFILERS | ({"paused": paused} if name in OBSERVED else {})
    found: dict[str, list[int]] = {profiler: [] for profiler in ("none", *profilers)}
    for number in range(ROUNDS + 1):
        gc.collect()
        gc.disable()
        plain = best(work)
        # The order alternates, so that no profiler always runs first.
        for profiler in sorted(profilers, reverse=bool(number % 2)):
            with profilers[profiler](activities=CPU, **OPTIONS[name]):
                taken = best(work)
            # The first round warms up.
            if number > 0:
                found[profiler].append(taken - plain)
        if number > 0:
            found["none"].append(plain)
        gc.enable()
    return {profiler: statistics.median(times) for profiler, times in found.items()}


def compare_recording(
    title: str, work: Callable[[], None], count: int, options: Iterable[str] = OPTIONS
) -> None:
    """Prints the overhead of recording, and its ratio."""
    for name in options:
        taken = extra(work, name)
        theirs = taken["torch"]
        line = (
            f"{title:12} {name:15} mindprof +{taken['mindprof'] / count:9.0f} ns   "
            f"torch.profiler +{theirs / count:9.0f} ns   ratio {taken['mindprof'] / theirs:.2f}   "
            f"{taken['none'] / count / 1e3:.0f} us grow by "
            f"{taken['mindprof'] / taken['none']:.1%}, {theirs / taken['none']:.1%}"
        )
        if "paused" in taken:
            line += f"   any observer {taken['paused'] / theirs:.2f}"
        print(line, flush=True)


def compare_results() -> None:
    """Prints the time of stopping and of the first averages."""
    x = torch.ones(4, 4)
    taken = {}
    for name, profiler in PROFILERS.items():
        prof = profiler(activities=CPU)
        prof.start()
        for _ in range(EVENTS):
            x + x
        taken[name] = timed(prof.stop) + timed(prof.key_averages)
    ratio = taken["torch"] / taken["mindprof"]
    milliseconds = {name: round(time / 1e6, 1) for name, time in taken.items()}
    print(f"stop and first key_averages of {EVENTS} events, ms: {milliseconds}, {ratio:.0f} times")


def main() -> None:
    """Compares recording and results."""
    torch.set_num_threads(1)
    mindprof.supported_activities()
    print(f"torch {torch.__version__}, mindprof {mindprof.__version__}, {ROUNDS} rounds")
    compare_recording("x + x", additions(), ADDITIONS)
    compare_recording("Python call", calls(), CALLS, ["stacks"])
    compare_recording("MLP step", training(), STEPS)
    compare_recording("encoder step", encoder(), 1)
    compare_results()


if __name__ == "__main__":
    main()
