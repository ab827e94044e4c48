"""torch's own traces in, torch's own rows and tables out."""

from __future__ import annotations

import gzip
import json
import subprocess
from collections import Counter
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from mindprof import EventList, _core

ROOT = Path(__file__).parents[2]
GOLDENS = ROOT / "tests" / "goldens"
SESSIONS = [
    "cpu-torch2.15/gpt-plain",
    "cpu-torch2.15/cnn-full",
    "cpu-torch2.15/mlp-full",
    "cpu-torch2.15/oom-plain",
    "h200-torch2.11/mlp-plain",
    "h200-torch2.11/gpt-full",
]
"""All but `h200-torch2.11/threads-full`: there torch moves calls of threads that it did not follow
to the starting one, where they overlap, and takes their time away twice. The tests of the crate
`formats` do so too, and compare all seven tables, the rows, the events and the stacks."""

GROUPINGS: dict[str, dict[str, Any]] = {
    "default": {},
    "by_input_shape": {"group_by_input_shapes": True},
    "by_stack_5": {"group_by_stack_n": 5},
}

TABLES: dict[str, tuple[str, dict[str, Any]]] = {
    "default": ("default", {}),
    "sort:self_cpu_time_total": ("default", {"sort_by": "self_cpu_time_total", "row_limit": -1}),
    "sort:count,limit5": ("default", {"sort_by": "count", "row_limit": 5}),
    "sort:self_cuda_time_total": ("default", {"sort_by": "self_cuda_time_total", "row_limit": 20}),
    "sort:self_cpu_memory_usage": (
        "default",
        {"sort_by": "self_cpu_memory_usage", "row_limit": 10},
    ),
    "by_input_shape": ("by_input_shape", {"sort_by": "cpu_time_total", "row_limit": 25}),
    "by_stack_5": ("by_stack_5", {"sort_by": "self_cpu_time_total", "row_limit": 5}),
}

UNASKED = ("cudaDeviceSynchronize", "cudaStreamIsCapturing")
"""Calls of `gpt-full` that no operator made."""

EXACT = [
    "id",
    "name",
    "thread",
    "scope",
    "sequence_nr",
    "fwd_thread",
    "is_async",
    "is_user_annotation",
    "overload_name",
    "cpu_time_total",
    "device_time_total",
    "cpu_memory_usage",
    "device_memory_usage",
    "self_cpu_memory_usage",
    "self_device_memory_usage",
    "input_shapes",
    "flops",
]

PROGRAM_FLAGS = {
    "group_by_input_shapes": "--group-by=shape",
    "group_by_stack_n": "--group-by=stack:{}",
    "sort_by": "--sort-by={}",
    "row_limit": "--row-limit={}",
}


@cache
def says(session: str) -> dict[str, Any]:
    with gzip.open(GOLDENS / f"{session}.says.json.gz", "rt") as file:
        said: dict[str, Any] = json.load(file)
    return said


@pytest.fixture(scope="module")
def traces(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The traces as torch understood them: 2.11 leaves Python functions out of its events."""
    folder = tmp_path_factory.mktemp("traces")
    for session in SESSIONS:
        with gzip.open(GOLDENS / f"{session}.trace.json.gz", "rt") as file:
            trace = json.load(file)
        if "2.11" in session:
            trace["traceEvents"] = [
                event for event in trace["traceEvents"] if event.get("cat") != "python_function"
            ]
        (folder / session).parent.mkdir(exist_ok=True)
        (folder / session).write_text(json.dumps(trace))
    return folder


def events_of(traces: Path, session: str) -> EventList:
    return EventList(_core.Profile.read(traces / session).events())


@pytest.mark.parametrize(
    ("session", "grouping"),
    [(session, asked) for session in SESSIONS for asked in GROUPINGS if asked in says(session)],
)
def test_rows_are_torchs_rows(traces: Path, session: str, grouping: str) -> None:
    expected = says(session)[grouping]
    rows = events_of(traces, session).key_averages(**GROUPINGS[grouping])
    if grouping == "by_stack_5" and "h200" in session:
        rows = EventList(row for row in rows if not lost_its_callers(vars(row)))
        expected = [row for row in expected if not lost_its_callers(row)]
    assert [row.key for row in rows] == [row["key"] for row in expected]
    for row, said in zip(rows, expected, strict=True):
        for name in said.keys() - {"device_type", "self_cpu_time_total", "self_device_time_total"}:
            assert getattr(row, name) == said[name], (row, name)
        assert str(row.device_type) == said["device_type"]
        for name in ("self_cpu_time_total", "self_device_time_total"):
            assert getattr(row, name) == pytest.approx(said[name], abs=1e-3 * row.count)


def lost_its_callers(row: dict[str, Any]) -> bool:
    """Returns whether the callers of a row are Python functions alone.

    2.11 leaves these out after it has looked at them, and this file before. The tests of the crate
    `formats` leave them out as late as torch does, and compare these rows too.
    """
    of_device = str(row["device_type"]) != "DeviceType.CPU" and row["is_user_annotation"]
    return of_device or row["key"] in UNASKED


@pytest.mark.parametrize("session", SESSIONS)
def test_events_are_torchs_events(traces: Path, session: str) -> None:
    events = events_of(traces, session)
    expected = says(session)["event_list"]
    assert len(events) == len(expected) == says(session)["events"]
    for event, said in zip(events, expected, strict=True):
        for name in EXACT:
            assert getattr(event, name) == said[name], (event, name)
        assert (event.time_range.start, event.time_range.end) == (said["start"], said["end"])
        parent = None if event.cpu_parent is None else event.cpu_parent.id
        assert parent == said["parent"]
        kernels = [[kernel.name, kernel.device] for kernel in event.kernels]
        assert kernels == [kernel[:2] for kernel in said["kernels"]]


@pytest.mark.parametrize("session", SESSIONS)
def test_totals_are_torchs_totals(traces: Path, session: str) -> None:
    rows = events_of(traces, session).key_averages()
    said = says(session)
    assert rows.self_cpu_time_total == pytest.approx(said["self_cpu_time_total"])
    total = rows.total_average()
    for name, value in said["total_average"].items():
        found = getattr(total, name)
        assert found == (pytest.approx(value) if isinstance(value, float) else value), name


@pytest.mark.parametrize(
    ("session", "table"),
    [
        (session, asked)
        for session in SESSIONS
        for asked in TABLES
        if asked in says(session)["tables"]
    ],
)
def test_tables_are_torchs_tables(traces: Path, session: str, table: str) -> None:
    expected = says(session)["tables"][table]
    grouping, options = TABLES[table]
    expected = with_cells_under_their_headers(expected)
    rows = events_of(traces, session).key_averages(**GROUPINGS[grouping])
    assert rows.table(**options) == expected
    assert program_table(traces / session, {**GROUPINGS[grouping], **options}) == expected
    # The same from the attributes of rows that someone holds.
    assert EventList(
        list(rows), profile_memory=rows._profile_memory, with_flops=rows._with_flops
    ).table(**options) == (expected)


def program() -> Path:
    path = ROOT / "target" / "debug" / "mindprof"
    if not path.exists():
        pytest.fail(f"expected the program at {path}, found nothing (hint: run `make build`)")
    return path


def program_table(trace: Path, options: dict[str, Any]) -> str:
    arguments = [PROGRAM_FLAGS[name].format(value) for name, value in options.items()]
    # The program sorts by default; the list does not.
    order = [] if "sort_by" in options else ["--sort-by=none"]
    command = [str(program()), "table", str(trace), *order, *arguments]
    return subprocess.run(command, capture_output=True, check=True, text=True).stdout


def with_cells_under_their_headers(text: str) -> str:
    """torch writes FLOPs under "Source Location" and frames under FLOPs; this puts them right."""
    lines = text.splitlines()
    if "Source Location" not in lines[1] or "FLOPs" not in lines[1]:
        return text
    *others, width, number = [len(rule) for rule in lines[0].split()]
    begin = sum(other + 2 for other in others)
    for index, line in enumerate(lines):
        if index > 2 and not line.startswith(("-", "Self")):
            flops, frame = line[begin : begin + width].strip(), line[begin + width :].strip()
            lines[index] = f"{line[:begin]}{frame:<{width}}  {flops:>{number}}  "
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("session", ["cpu-torch2.15/cnn-full", "cpu-torch2.15/mlp-full"])
def test_stacks_are_torchs_stacks(traces: Path, session: str, tmp_path: Path) -> None:
    events = events_of(traces, session)
    events.export_stacks(tmp_path / "stacks.txt", "self_cpu_time_total")
    with gzip.open(GOLDENS / f"{session}.stacks.txt.gz", "rt") as file:
        expected = Counter(file)
    found = Counter((tmp_path / "stacks.txt").read_text().splitlines(keepends=True))
    assert stack_lines((event, torchs_self_time(event)) for event in events) == expected
    assert stack_lines((event, event.self_cpu_time_total) for event in events) == found
    # The differences are those of self times: where children overlap, torch takes the time that
    # they share away twice; and torch cuts off what is a whole number but for the last digit.
    for event in events:
        difference = event.self_cpu_time_total - torchs_self_time(event)
        assert difference == pytest.approx(shared_time(event.cpu_children), abs=1e-6), event


def stack_lines(weights: Iterable[tuple[Any, float]]) -> Counter[str]:
    """Returns the lines of a file of stacks, from events with a weight each."""
    blanks = str.maketrans(" ;\t\n", "____")
    lines: Counter[str] = Counter()
    for event, weight in weights:
        if event.stack and int(weight) > 0:
            stack = ";".join(frame.translate(blanks) for frame in reversed(event.stack))
            lines[f"{stack} {int(weight)}\n"] += 1
    return lines


def torchs_self_time(event: Any) -> float:
    if event.is_async or event.device_type != "CPU":
        return 0
    children = sum(child.cpu_time_total for child in event.cpu_children)
    return float(event.cpu_time_total - children)


def shared_time(children: list[Any]) -> float:
    """Returns by how much the times of children are more than the time in which there are some."""
    spans = sorted((child.time_range.start, child.time_range.end) for child in children)
    shared, reached = 0.0, float("-inf")
    for start, end in spans:
        shared += max(min(end, reached) - start, 0.0)
        reached = max(reached, end)
    return shared
