"""DuckDB, polars and pandas find in our Parquet file what is in torch's own trace."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pandas
import polars
import pytest

from tests.clients.traces import DEVICE, HOST, complete_events, convert, covered, golden, record

Key = tuple[str, str]
Sums = dict[Key, tuple[int, int]]


def by_duckdb(path: Path) -> Sums:
    rows = duckdb.sql(
        "select category, key, count(*), cast(round(sum(end_us - start_us) * 1000) as bigint) "
        f"from '{path}' group by category, key"
    ).fetchall()
    return {(category, name): (count, ns) for category, name, count, ns in rows}


def by_polars(path: Path) -> Sums:
    groups = polars.read_parquet(path).group_by("category", "key")
    length = (polars.col("end_us") - polars.col("start_us")).sum() * 1000
    rows = groups.agg(polars.len().alias("count"), length.round().cast(int).alias("ns")).rows()
    return {(category, name): (count, ns) for category, name, count, ns in rows}


def by_pandas(path: Path) -> Sums:
    frame = pandas.read_parquet(path)
    lengths = (frame["end_us"] - frame["start_us"]).groupby([frame["category"], frame["key"]])
    return {key: (len(part), round(part.sum() * 1000)) for key, part in lengths}


def in_json_by_duckdb(name: str) -> Sums:
    """Returns the same of torch's own file, which DuckDB reads without us."""
    columns = "{traceEvents: 'struct(ph varchar, cat varchar, name varchar, dur double)[]'}"
    file = f"read_json('{golden(name)}', columns = {columns})"
    rows = duckdb.sql(
        "select event.cat, regexp_replace(event.name, '^ProfilerStep#.*', 'ProfilerStep*') as key, "
        "count(*), cast(round(sum(event.dur) * 1000) as bigint) "
        f"from (select unnest(traceEvents) as event from {file}) "
        "where event.ph = 'X' and event.cat != 'Trace' group by event.cat, key"
    ).fetchall()
    return {(category, key): (count, ns) for category, key, count, ns in rows}


def self_nesting(name: str) -> set[Key]:
    """Returns the names that run inside of themselves.

    torch's list of events, which the columns are of, has an operator once that only calls itself.
    """
    spans: dict[tuple[Key, Any], list[tuple[int, int]]] = defaultdict(list)
    for event in complete_events(name):
        start = round(event["ts"] * 1000)
        key = (event["cat"], event["name"])
        spans[key, event["tid"]].append((start, start + round(event["dur"] * 1000)))
    lengths = {key: sum(end - start for start, end in times) for key, times in spans.items()}
    return {key[0] for key, times in spans.items() if covered(times) < lengths[key]}


@pytest.mark.parametrize("read", [by_duckdb, by_polars, by_pandas])
@pytest.mark.parametrize("name", [*DEVICE, *HOST])
def test_counts_and_times_are_those_of_the_trace(
    name: str, read: Callable[[Path], Sums], tmp_path: Path
) -> None:
    original = in_json_by_duckdb(name)
    for key, (count, ns) in original.items():
        if key[0] == "gpu_user_annotation":  # which torch draws two nanoseconds wider than it was
            original[key] = (count, ns - 2 * count)
    seen = read(convert(name, tmp_path / "trace.parquet"))
    nested = self_nesting(name)
    assert nested <= seen.keys()
    compared = {key: sums for key, sums in seen.items() if key in original and key not in nested}
    assert compared == {key: sums for key, sums in original.items() if key not in nested}
    assert len(compared) > 10
    assert {key for key in seen if key not in original} <= {("cpu_instant_event", "[memory]")}


@pytest.mark.parametrize("read", [by_duckdb, by_polars, by_pandas])
def test_a_recording_of_our_own_is_whole(read: Callable[[Path], Sums], tmp_path: Path) -> None:
    prof = record()
    prof.events().export_parquet(str(tmp_path / "own.parquet"))
    sums = read(tmp_path / "own.parquet")
    assert sum(count for count, _ in sums.values()) == len(prof.events())
    assert sums["user_annotation", "forward"][0] == 2
