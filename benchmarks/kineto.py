"""Compares how long mindprof and torch need to turn raw Kineto results into rows.

Records many small additions with torch's own collector, on CUDA if available, and stops it once.
Both profilers pay for the stop; the work after it is timed for each on the same raw results. Run it
with a Python that has torch: `make bench-kineto TORCH_PYTHON=…`.
"""

from __future__ import annotations

import gc
import os
import statistics
import time
from collections.abc import Callable
from typing import Any

os.environ.setdefault("MINDPROF_TORCH_BACKEND", "kineto")

import mindprof
import torch  # type: ignore[import-not-found]

OPERATORS = 100_000
ROUNDS = 3
NATIVE = torch._C._autograd


def timed(action: Callable[[], Any]) -> tuple[float, Any]:
    """Returns the milliseconds that an action takes, and its result."""
    gc.collect()
    started = time.perf_counter_ns()
    result = action()
    return (time.perf_counter_ns() - started) / 1e6, result


class Collection:
    """One collection, which both profilers end by the same call of torch.

    Args:
        device: The kind of device to work on, or None for the CPU.
        options: Arguments of the profiler.
    """

    def __init__(self, device: str | None, **options: Any) -> None:
        self.device = device
        self.collector_ms = 0.0
        self.result: Any = None
        groups = torch.profiler.ProfilerActivity
        activities = [groups.CPU, groups.CUDA] if device else [groups.CPU]
        self.profiler = mindprof.profile(activities=activities, **options)

    def run(self) -> None:
        """Records many small additions."""
        x = torch.ones(4, 4, device=self.device or "cpu")
        self.profiler.start()
        for _ in range(OPERATORS):
            x + x
        if self.device:
            torch.cuda.synchronize()

    def stop(self) -> None:
        """Stops the profiler, and keeps the raw results and the time that torch takes."""
        disable = NATIVE._disable_profiler

        def keep() -> Any:
            started = time.perf_counter_ns()
            self.result = disable()
            self.collector_ms = (time.perf_counter_ns() - started) / 1e6
            return self.result

        NATIVE._disable_profiler = keep
        try:
            self.profiler.stop()
        finally:
            NATIVE._disable_profiler = disable

    def torch_rows(self) -> Any:
        """Returns torch's rows of the same results, computed as its own profiler does."""
        parser = torch.autograd.profiler.profile(use_kineto=True, use_device=self.device)
        events = torch.autograd.profiler_util.EventList(
            parser._parse_kineto_results(self.result), use_device=self.device
        )
        events._build_tree()
        return events.key_averages()


def compare(title: str, device: str | None, **options: Any) -> None:
    """Prints the times of both, with and without the stop of the collector."""
    shares, wholes = [], []
    for _ in range(ROUNDS):
        collection = Collection(device, **options)
        collection.run()
        stop_ms, _ = timed(collection.stop)
        rows_ms, ours = timed(collection.profiler.key_averages)
        own_ms = stop_ms - collection.collector_ms + rows_ms
        torch_ms, theirs = timed(collection.torch_rows)
        counts = [{row.key: row.count for row in rows} for rows in (ours, theirs)]
        if counts[0] != counts[1]:
            raise SystemExit(f"the rows differ: {counts}")
        shares.append(torch_ms / own_ms)
        wholes.append((collection.collector_ms + torch_ms) / (stop_ms + rows_ms))
        print(
            f"{title:8} {sum(counts[0].values()):7} events   end of the collection "
            f"{collection.collector_ms:7.0f} ms   after it: mindprof {own_ms:7.1f} ms, "
            f"torch {torch_ms:8.0f} ms"
        )
    print(
        f"{title:8} medians: {statistics.median(wholes):.1f} times faster from stop to rows, "
        f"{statistics.median(shares):.0f} times without the collector"
    )


def main() -> None:
    """Compares plain recordings and recordings with shapes."""
    device = "cuda" if torch.cuda.is_available() else None
    name = torch.cuda.get_device_name() if device else "CPU"
    print(f"torch {torch.__version__}, mindprof {mindprof.__version__}, {name}")
    compare("plain", device)
    compare("shapes", device, record_shapes=True)


if __name__ == "__main__":
    main()
