"""`profile` from a user's side: windows, threads, exceptions, files."""

from __future__ import annotations

import gzip
import json
import os
import threading
from pathlib import Path
from typing import Any

import mindprof
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mindprof import profile, record_function

from tests.workloads import torch


def keys(prof: profile) -> list[str]:
    return [row.key for row in prof.key_averages()]


def trace_events(path: Path) -> list[dict[str, Any]]:
    events: list[dict[str, Any]] = json.loads(path.read_text())["traceEvents"]
    return events


def test_ops_are_recorded_under_torchs_names_and_nesting() -> None:
    with profile() as prof:
        x = torch.ones((4, 4))
        with record_function("double"):
            y = x + x
        (y @ x).relu().sum()
    counts = {row.key: row.count for row in prof.key_averages()}
    assert counts["aten::ones"] == counts["double"] == counts["aten::add"] == 1
    assert counts["aten::matmul"] == counts["aten::mm"] == counts["aten::relu"] == 1
    rows = {row.key: row for row in prof.key_averages()}
    assert rows["double"].cpu_time_total >= rows["aten::add"].cpu_time_total
    assert rows["double"].is_user_annotation
    assert not rows["aten::add"].is_user_annotation


def test_nothing_is_recorded_before_start_and_after_stop() -> None:
    x = torch.ones((2, 2))
    with profile() as prof:
        x + x
    x * x
    assert keys(prof) == ["aten::add"]


def test_of_two_nested_profilers_both_are_complete() -> None:
    x = torch.ones((2, 2))
    with profile() as outer:
        x + x
        with profile() as inner:
            x * x
        x - x
    assert keys(inner) == ["aten::mul"]
    assert keys(outer) == ["aten::add", "aten::mul", "aten::sub"]


def test_a_second_stop_changes_nothing() -> None:
    x = torch.ones((2, 2))
    prof = profile()
    prof.start()
    x + x
    prof.stop()
    x * x
    prof.stop()
    assert keys(prof) == ["aten::add"]


def test_stop_before_start_is_refused() -> None:
    with pytest.raises(AssertionError, match="Profiler must be initialized before stopping trace"):
        profile().stop()


def test_an_exception_closes_the_scope_and_the_profiler() -> None:
    prof = profile()
    with pytest.raises(ZeroDivisionError), prof, record_function("fails"):
        1 / 0  # noqa: B018
    with record_function("afterwards"):
        pass
    assert keys(prof) == ["fails"]


def test_a_profile_without_events_says_so() -> None:
    with profile() as prof:
        pass
    rows = prof.key_averages()
    assert rows == []
    assert rows.table() == "No events were recorded.\n"
    assert rows.self_cpu_time_total == 0
    total = rows.total_average()
    assert (total.key, total.count, total.cpu_time) == ("Total", 0, 0.0)


def test_all_threads_are_recorded() -> None:
    x = torch.ones((2, 2))

    def work() -> None:
        for _ in range(50):
            x + x

    with profile() as prof:
        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert [(row.key, row.count) for row in prof.key_averages()] == [("aten::add", 400)]


@settings(max_examples=30, deadline=None)
@given(budget=st.integers(0, 20_000), ops=st.integers(0, 400), threads=st.integers(1, 8))
def test_events_in_are_events_out_and_lost(budget: int, ops: int, threads: int) -> None:
    x = torch.ones((2, 2))

    def work() -> None:
        for _ in range(ops):
            x + x

    with profile(budget_bytes=budget) as prof:
        workers = [threading.Thread(target=work) for _ in range(threads)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
    rows = prof.key_averages()
    assert sum(row.count for row in rows) + prof.lost_events == ops * threads
    assert (prof.lost_events > 0) == ("Events lost" in rows.table())


def test_rows_are_told_apart_by_shape_when_asked_to() -> None:
    with profile(record_shapes=True) as prof:
        for size in (2, 3, 2):
            x = torch.ones((size, 4))
            x + x
    by_name = [row for row in prof.key_averages() if row.key == "aten::add"]
    assert [(row.count, row.input_shapes) for row in by_name] == [(3, "")]
    by_shape = prof.key_averages(group_by_input_shape=True)
    shapes = [(row.count, row.input_shapes) for row in by_shape if row.key == "aten::add"]
    assert shapes == [(2, [[2, 4], [2, 4], []]), (1, [[3, 4], [3, 4], []])]
    assert "Input Shapes" in by_shape.table()


def test_the_trace_holds_the_events_and_can_be_written_twice(tmp_path: Path) -> None:
    with profile(record_shapes=True) as prof, record_function("naïve — 測試 \x07"):
        torch.ones((2, 2)).sum()
    for name in ("first.json", "deep/er/second.json"):
        prof.export_chrome_trace(tmp_path / name)
        names = [event["name"] for event in trace_events(tmp_path / name) if event["ph"] == "X"]
        assert "naïve — 測試 \x07" in names
        assert "aten::sum" in names


def test_a_trace_named_gz_is_compressed(tmp_path: Path) -> None:
    with profile() as prof:
        torch.ones((2, 2))
    prof.export_chrome_trace(tmp_path / "trace.json.gz")
    with gzip.open(tmp_path / "trace.json.gz", "rt") as file:
        assert json.load(file)["schemaVersion"] == 1


def test_a_trace_tells_of_what_was_lost(tmp_path: Path) -> None:
    with profile(budget_bytes=0) as prof:
        torch.ones((2, 2))
    prof.export_chrome_trace(tmp_path / "trace.json")
    told = json.loads((tmp_path / "trace.json").read_text())["mindprof"]
    assert told["version"] == mindprof.__version__
    assert sum(told["lost"].values()) == prof.lost_events == 3


@pytest.mark.skipif(os.name != "posix", reason="a folder stands where the file should go")
def test_an_unwritable_path_raises_and_leaves_nothing(tmp_path: Path) -> None:
    with profile() as prof:
        torch.ones((2, 2))
    (tmp_path / "folder").mkdir()
    with pytest.raises(IsADirectoryError, match="folder"):
        prof.export_chrome_trace(tmp_path / "folder")
    (tmp_path / "file").write_text("kept")
    with pytest.raises(OSError, match="file/trace"):
        prof.export_chrome_trace(tmp_path / "file" / "trace.json")
    assert sorted(entry.name for entry in tmp_path.rglob("*")) == ["file", "folder"]
    assert (tmp_path / "file").read_text() == "kept"


def test_exporting_before_stop_is_refused(tmp_path: Path) -> None:
    prof = profile()
    prof.start()
    with pytest.raises(AttributeError, match="stop the profiler before exporting"):
        prof.export_chrome_trace(tmp_path / "trace.json")
    prof.stop()
