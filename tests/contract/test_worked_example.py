"""The worked example of the contract: one training step of a small model, event by event.

`worked_example.txt` holds the tree (name, sequence number, bytes) and below it the counts by name.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from host import CPU, IS_TORCH, profile, torch

TREE, COUNTS = Path(__file__).with_name("worked_example.txt").read_text().split("\n\n")
LINE = re.compile(r"(?P<indent> *)(?P<name>.*?)(?:  seq=(?P<number>\d+))?(?:  (?P<bytes>-?\d+) B)?")


def step_of_the_example() -> Any:
    """Profiles the second step, with memory."""
    nn = torch.nn
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    x, y = torch.randn(3, 4), torch.randn(3, 2)

    def step() -> None:
        optimizer.zero_grad()
        out = model(x)
        loss = nn.MSELoss()(out, y)
        loss.backward()
        optimizer.step()

    step()
    with profile(activities=[CPU], profile_memory=True) as profiler:
        step()
    return profiler


def known_lines() -> list[tuple[int, str, int | None, int]]:
    """Returns depth, name, sequence number from the first one on, and bytes of every line."""
    found = [LINE.fullmatch(line) for line in TREE.splitlines()]
    rows = [match.groupdict() for match in found if match is not None]
    assert len(rows) == len(found)
    first = min(int(row["number"]) for row in rows if row["number"])
    return [
        (
            len(row["indent"]) // 2,
            row["name"],
            int(row["number"]) - first if row["number"] else None,
            int(row["bytes"] or 0),
        )
        for row in rows
    ]


def found_lines(profiler: Any) -> list[tuple[int, str, int | None, int]]:
    """Returns the same of a recording."""
    events = sorted(profiler.events(), key=lambda event: (event.time_range.start, event.id))
    numbers = [event.sequence_nr for event in events if event.sequence_nr >= 0]

    def depth(event: Any) -> int:
        return 0 if event.cpu_parent is None else 1 + depth(event.cpu_parent)

    return [
        (
            depth(event),
            event.name,
            event.sequence_nr - min(numbers) if event.sequence_nr >= 0 else None,
            event.cpu_memory_usage,
        )
        for event in events
    ]


def without_frees(lines: list[tuple[int, str, int | None, int]]) -> list[Any]:
    return [line for line in lines if line[1] != "[memory]"]


def test_names_parents_numbers_and_bytes_are_those_of_the_example() -> None:
    found, known = without_frees(found_lines(step_of_the_example())), without_frees(known_lines())
    if not IS_TORCH:
        # The gradients of the first step, which torch does not know of, are freed here.
        assert found[0] == (*known[0][:3], -(4 * 8 + 8 + 8 * 2 + 2) * 4)
        found[0] = known[0]
    assert found == known


def test_frees_outside_of_operators_are_those_of_the_example() -> None:
    found, known = found_lines(step_of_the_example()), known_lines()
    frees = [[line[3] for line in lines if line[1] == "[memory]"] for lines in (found, known)]
    assert sorted(frees[0]) == sorted(frees[1])


def test_counts_and_their_order_are_those_of_the_example() -> None:
    rows = [row for row in step_of_the_example().key_averages() if row.key != "[memory]"]
    assert [f"{row.key} = {row.count}" for row in rows] == COUNTS.strip().splitlines()
