"""Stacks and flame graphs, of any Python program: it needs no tensors.

`with_stack=True` records the calls of Python functions on all threads that it sees start.
"""

from __future__ import annotations

import json

import mindprof


def parse(lines: list[str]) -> list[dict[str, int]]:
    """Reads a line of JSON each."""
    return [json.loads(line) for line in lines]


def total(rows: list[dict[str, int]]) -> int:
    """Adds up."""
    return sum(row["size"] for row in rows)


def main() -> None:
    """Profiles a small program and draws where its time went."""
    with mindprof.profile(with_stack=True) as prof:
        rows = parse(['{"size": 3}'] * 1000)
        with mindprof.record_function("add up"):  # a name for a part of the program
            total(rows)

    prof.export_flamegraph("out/flames.svg")
    prof.export_speedscope("out/calls.speedscope.json")
    print("wrote out/flames.svg: open it in a browser")
    print("wrote out/calls.speedscope.json: open it at https://www.speedscope.app")


if __name__ == "__main__":
    main()
