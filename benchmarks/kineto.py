"""What results cost where torch's own collector records: ours beside torch's, of one collection.

One collection of many small additions, on CUDA where there is one, is stopped once. What torch
takes to end it is paid by both; what comes after is timed for both on the same raw results. Run it
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
    """Returns how many milliseconds an action takes, and what it returns."""
    gc.collect()
    started = time.perf_counter_ns()
    result = action()
    return (time.perf_counter_ns() - started) / 1e6, result


class Collection:
    """One collection: both profilers end it by the same call of torch's.

    Args:
        device: The kind of device to work on, None for the host.
        options: What is recorded.
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
        """Ends it, and keeps what torch hands over."""
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
        """Returns torch's rows, made of the same by the steps of its own profiler."""
        parser = torch.autograd.profiler.profile(use_kineto=True, use_device=self.device)
        events = torch.autograd.profiler_util.EventList(
            parser._parse_kineto_results(self.result), use_device=self.device
        )
        events._build_tree()
        return events.key_averages()


def compare(title: str, device: str | None, **options: Any) -> None:
    """Prints how long both take, with and without what torch takes to end the collection."""
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
            raise SystemExit(f"other rows: {counts}")
        shares.append(torch_ms / own_ms)
        wholes.append((collection.collector_ms + torch_ms) / (stop_ms + rows_ms))
        print(
            f"{title:8} {sum(counts[0].values()):7} events   end of the collection "
            f"{collection.collector_ms:7.0f} ms   after it: mindprof {own_ms:7.1f} ms, "
            f"torch {torch_ms:8.0f} ms"
        )
    print(
        f"{title:8} medians: {statistics.median(wholes):.1f} times faster from stop to rows, "
        f"{statistics.median(shares):.0f} times in what is not the collector's"
    )


def main() -> None:
    """Prints all of it."""
    device = "cuda" if torch.cuda.is_available() else None
    name = torch.cuda.get_device_name() if device else "CPU"
    print(f"torch {torch.__version__}, mindprof {mindprof.__version__}, {name}")
    compare("plain", device)
    compare("shapes", device, record_shapes=True)


if __name__ == "__main__":
    main()
