"""What recording real PyTorch costs, beside torch.profiler on the same work in the same process.

Each round runs the work without a profiler, under ours, and under torch's, in turn: once to warm
up, then a few times, of which the best counts, without Python's collector of garbage. What is
compared is the processor time of the thread beyond that of the same round without a profiler, by
the medians of the rounds. Run it with a Python that has torch, on an idle machine:
`make bench-pytorch TORCH_PYTHON=…`.
"""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable
from typing import Any

import mindprof
import torch  # type: ignore[import-not-found]

ROUNDS = 25
RUNS = 5
ADDITIONS = 2_000
STEPS = 20
EVENTS = 100_000

CPU = [torch.profiler.ProfilerActivity.CPU]
PROFILERS = {"mindprof": mindprof.profile, "torch": torch.profiler.profile}
OPTIONS: dict[str, dict[str, Any]] = {
    "plain": {},
    "shapes": {"record_shapes": True},
    "shapes, memory": {"record_shapes": True, "profile_memory": True},
    "stacks": {"with_stack": True},
}


def additions() -> Callable[[], None]:
    """Returns many small additions."""
    x = torch.ones(4, 4)

    def run() -> None:
        for _ in range(ADDITIONS):
            x + x

    return run


def training() -> Callable[[], None]:
    """Returns steps of a small model."""
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


def best(work: Callable[[], None]) -> int:
    """Returns the least processor time of several runs, in nanoseconds."""
    gc.collect()
    gc.disable()
    try:
        work()
        return min(timed(work) for _ in range(RUNS))
    finally:
        gc.enable()


def timed(action: Callable[[], Any]) -> int:
    """Returns the processor time of this thread, in nanoseconds."""
    started = time.thread_time_ns()
    action()
    return time.thread_time_ns() - started


def extra(work: Callable[[], None], options: dict[str, Any]) -> dict[str, list[int]]:
    """Returns by profiler what each round took beyond the work itself."""
    found: dict[str, list[int]] = {name: [] for name in PROFILERS}
    for number in range(ROUNDS + 1):
        plain = best(work)
        # Whoever comes first in one round comes last in the next.
        for name in sorted(PROFILERS, reverse=bool(number % 2)):
            with PROFILERS[name](activities=CPU, **options):
                taken = best(work)
            # The first round warms up.
            if number > 0:
                found[name].append(taken - plain)
    return found


def compare_recording(title: str, work: Callable[[], None], count: int) -> None:
    """Prints the ratio of what the profilers cost while they record."""
    for name, options in OPTIONS.items():
        found = extra(work, options)
        ours, theirs = (statistics.median(times) / count for times in found.values())
        print(
            f"{title:12} {name:15} mindprof +{ours:9.0f} ns   torch.profiler +{theirs:9.0f} ns   "
            f"ratio {ours / theirs:.2f}"
        )


def compare_results() -> None:
    """Prints how long stopping and the first averages take."""
    x = torch.ones(4, 4)
    taken = {}
    for name, profile in PROFILERS.items():
        prof = profile(activities=CPU)
        prof.start()
        for _ in range(EVENTS):
            x + x
        taken[name] = timed(prof.stop) + timed(prof.key_averages)
    ratio = taken["torch"] / taken["mindprof"]
    milliseconds = {name: round(time / 1e6, 1) for name, time in taken.items()}
    print(f"stop and first key_averages of {EVENTS} events, ms: {milliseconds}, {ratio:.0f} times")


def main() -> None:
    """Prints all of it."""
    torch.set_num_threads(1)
    mindprof.supported_activities()
    print(f"torch {torch.__version__}, mindprof {mindprof.__version__}, {ROUNDS} rounds")
    compare_recording("x + x", additions(), ADDITIONS)
    compare_recording("MLP step", training(), STEPS)
    compare_results()


if __name__ == "__main__":
    main()
