"""Analyzes a trace with pandas: events and operator averages as data frames.

Run `python examples/data_frames.py`; it needs pandas. It prints the operator time per step and the
operators with the most self time, and writes `out/events.parquet`. In a notebook,
`trace.key_averages()` as the last line of a cell shows a sortable table.
"""

from __future__ import annotations

import mindprof
import mindtorch_v2 as torch
from mindtorch_v2.profiler import profile, schedule


def main() -> None:
    """Records a trace, reads it back and queries it."""
    model = torch.nn.Sequential(torch.nn.Linear(32, 32), torch.nn.Tanh())
    steps = schedule(wait=0, warmup=1, active=4, repeat=1)  # marks the steps
    with profile(schedule=steps, record_shapes=True) as prof:
        for _ in range(5):
            model(torch.ones((8, 32))).sum().backward()
            prof.step()
    prof.export_chrome_trace("out/frames.json")

    trace = mindprof.load("out/frames.json")  # or any trace written by torch
    frame = trace.events().to_pandas()
    operators = frame[frame["category"] == "cpu_op"]
    print(operators.groupby("step")["self_cpu_time_total"].agg(["count", "sum"]))

    rows = trace.key_averages().to_pandas().set_index("key")
    print(rows.nlargest(5, "self_cpu_time_total")[["count", "self_cpu_time_total"]])

    trace.events().export_parquet("out/events.parquet")  # for DuckDB, polars and others


if __name__ == "__main__":
    main()
