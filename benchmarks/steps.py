"""Measures how long it takes to split the steps of a million events.

Prints the median time of the answer and, for comparison, that of the table in the same process.
"""

from __future__ import annotations

import json
import statistics
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import perf_counter

from mindprof import _core

EVENTS, STEPS, ROUNDS = 1_000_000, 1_000, 7


def write(path: Path) -> None:
    """Writes a trace of steps that alternate between Python calls and operators."""
    common = {"ph": "X", "pid": 1, "tid": 1}
    events: list[dict[str, object]] = []
    moment = 0
    for step in range(STEPS):
        start = moment
        # Every fiftieth step is slow.
        count = EVENTS // STEPS // 2
        for number in range(count):
            name = f"train.py({number % 40}): f{number % 40}"
            length = 200 if step % 50 == 49 and number % 40 == 7 else 10
            call = {"cat": "python_function", "name": name, "ts": moment, "dur": length}
            operator = {"cat": "cpu_op", "name": "aten::mm", "ts": moment + 2, "dur": 5}
            events += [{**common, **call}, {**common, **operator}]
            moment += length + 1
        name = f"ProfilerStep#{step}"
        span = {"cat": "user_annotation", "name": name, "ts": start, "dur": moment - start}
        events.append({**common, **span})
    path.write_text(json.dumps({"traceEvents": events}))


def median(call: Callable[[], object]) -> float:
    """Returns the median time of a call in milliseconds."""
    times = []
    for _ in range(ROUNDS):
        start = perf_counter()
        call()
        times.append(1e3 * (perf_counter() - start))
    return statistics.median(times)


def main() -> None:
    """Prints the times."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        write(path)
        profile = _core.Profile.read(path)
    answer = json.loads(profile.ask("step_times"))
    assert answer["slow_count"] == STEPS // 50, answer["slow_count"]
    steps = median(lambda: profile.ask("step_times"))
    table = median(lambda: profile.ask("work"))
    print(f"{len(profile):,} events: steps {steps:.0f} ms, table {table:.0f} ms")


if __name__ == "__main__":
    main()
