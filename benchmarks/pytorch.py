"""What recording real PyTorch costs, beside torch.profiler on the same work in the same process.

Each round runs the work without a profiler, under ours, and under torch's, in turn; what counts is
the processor time of the thread beyond the round without, as a ratio of the two profilers, and the
median of the rounds. Run it with a Python that has torch: `make bench-pytorch TORCH_PYTHON=…`.
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
ADDITIONS = 4_000
STEPS = 40
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


def timed(action: Callable[[], Any]) -> int:
    """Returns the processor time of this thread, in nanoseconds."""
    started = time.thread_time_ns()
    action()
    return time.thread_time_ns() - started


def extra(work: Callable[[], None], options: dict[str, Any]) -> dict[str, list[int]]:
    """Returns by profiler what each round took beyond the work itself."""
    found: dict[str, list[int]] = {name: [] for name in PROFILERS}
    for number in range(ROUNDS + 2):
        plain = timed(work)
        # Whoever comes first in one round comes last in the next.
        for name in sorted(PROFILERS, reverse=bool(number % 2)):
            gc.collect()
            with PROFILERS[name](activities=CPU, **options):
                taken = timed(work)
            # The first rounds warm up.
            if number > 1:
                found[name].append(taken - plain)
    return found


def compare_recording(title: str, work: Callable[[], None], count: int) -> None:
    """Prints the ratio of what the profilers cost while they record."""
    for name, options in OPTIONS.items():
        found = extra(work, options)
        ours, theirs = (statistics.median(times) / count for times in found.values())
        ratios = [a / b for a, b in zip(found["mindprof"], found["torch"], strict=True) if b > 0]
        print(
            f"{title:12} {name:15} mindprof +{ours:9.0f} ns   torch.profiler +{theirs:9.0f} ns   "
            f"ratio {statistics.median(ratios):.2f}"
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
