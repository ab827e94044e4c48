"""Draws a flame graph of any Python program; it needs no tensors.

Run `python examples/flame_graph.py`. With `with_stack=True`, the profiler records the Python calls
of all threads that it sees start. The example writes a flame graph and a speedscope profile to
`out/`.
"""

from __future__ import annotations

import json

import mindprof


def parse(lines: list[str]) -> list[dict[str, int]]:
    """Parses each line as JSON."""
    return [json.loads(line) for line in lines]


def total(rows: list[dict[str, int]]) -> int:
    """Returns the sum of the sizes."""
    return sum(row["size"] for row in rows)


def main() -> None:
    """Profiles a small program and draws its flame graph."""
    with mindprof.profile(with_stack=True) as prof:
        rows = parse(['{"size": 3}'] * 1000)
        with mindprof.record_function("add up"):  # names a section of the program
            total(rows)

    prof.export_flamegraph("out/flames.svg")
    prof.export_speedscope("out/calls.speedscope.json")
    print("wrote out/flames.svg: open it in a browser")
    print("wrote out/calls.speedscope.json: open it at https://www.speedscope.app")


if __name__ == "__main__":
    main()
