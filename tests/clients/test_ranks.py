"""Parquet of all ranks of a job, read as one table by DuckDB and polars."""

from __future__ import annotations

from pathlib import Path

import duckdb
import polars
import pytest
from mindprof import ranks

from tests.python.rank_traces import RANKS, SLOW, STEPS, write_job


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_job(tmp_path)
    written = ranks.open(tmp_path).export_parquet(tmp_path / "job")
    assert len(written) == RANKS
    return tmp_path / "job"


def test_duckdb_finds_the_slow_rank(folder: Path) -> None:
    files = f"read_parquet('{folder}/*/*.parquet', hive_partitioning = true)"
    rows = duckdb.sql(
        f"select rank, count(*), sum(device_time_total) as busy from {files} "
        "where key = 'gemm' group by rank order by busy desc"
    ).fetchall()
    assert len(rows) == RANKS
    assert rows[0] == (SLOW, STEPS, pytest.approx(1500.0 * STEPS))
    assert rows[1][2] == pytest.approx(1000.0 * STEPS)


def test_polars_reads_the_column_of_ranks(folder: Path) -> None:
    events = polars.scan_parquet(f"{folder}/*/*.parquet", hive_partitioning=True)
    counts = events.group_by("rank").len().sort("rank").collect()
    assert counts["rank"].to_list() == list(range(RANKS))
    assert len(set(counts["len"].to_list())) == 1
