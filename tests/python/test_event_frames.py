"""Events and rows for other libraries: through Arrow's interface, and as files."""

from __future__ import annotations

import dataclasses
import importlib
import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from mindprof import EventList, FunctionEvent, FunctionEventAvg, _core

pa: Any = importlib.import_module("pyarrow")
parquet: Any = importlib.import_module("pyarrow.parquet")

GOLDENS = Path(__file__).parents[1] / "goldens"
TRACE = GOLDENS / "cpu-torch2.15" / "cnn-full.trace.json.gz"


def recorded() -> EventList:
    return EventList(_core.Profile.read(TRACE).events())


def made() -> EventList:
    events = EventList(
        [
            FunctionEvent(1, "aten::mm", 1, 0, 10, stack=["f.py(1): f"], flops=None),
            FunctionEvent(2, "aten::mm", 1, 20, 50, input_shapes=[[2, 3]], flops=7),
            FunctionEvent(3, "名前", 2, 20, 21, is_async=True, flops=0),
        ]
    )
    events._build_tree()
    return events


@pytest.mark.parametrize("items", [recorded, made], ids=["recorded", "made"])
def test_columns_say_what_the_items_say(items: Any) -> None:
    events = items()
    assert events.to_arrow().to_pylist() == list(map(rounded, items().to_dicts()))
    rows = events.key_averages(group_by_input_shapes=True, group_by_stack_n=2)
    expected = [rounded(values) for values in rows.to_dicts()]
    again = events.key_averages(group_by_input_shapes=True, group_by_stack_n=2)
    assert again.to_arrow().to_pylist() == expected
    # The same from rows that someone holds.
    assert EventList(list(rows)).to_arrow().to_pylist() == expected


def rounded(values: dict[str, Any]) -> dict[str, Any]:
    """Times made by hand may be integers; a column is of one type."""
    return {
        name: float(value) if name.endswith(("_total", "_us")) else value
        for name, value in values.items()
    }


def test_texts_stay_numbered_and_numbers_are_plain() -> None:
    table = recorded().to_arrow()
    assert table.schema.field("key").type == pa.dictionary(pa.int32(), pa.string())
    assert table.schema.field("cpu_time_total").type == pa.float64()
    assert table.schema.field("count").type == pa.int64()
    assert table.schema.field("is_async").type == pa.bool_()
    assert made().to_arrow()["flops"].null_count == 1
    stacks = pa.list_(pa.dictionary(pa.int32(), pa.string()))
    assert table.schema.field("stack").type == stacks
    assert table.schema.field("input_shapes").type == pa.list_(pa.list_(pa.int64()))


def test_an_empty_list_has_columns_without_values() -> None:
    table = EventList([]).to_arrow()
    assert (table.num_rows, table.column_names[0]) == (0, "key")


def test_events_and_rows_in_one_list_leave_out_what_they_do_not_say() -> None:
    event, row = made()[0], made().key_averages()[0]
    assert EventList([event, row]).to_arrow()["start_us"].to_pylist() == [0.0, None]
    assert EventList([row, event]).to_arrow()["p50"].to_pylist() == [row.p50, None]
    assert EventList([FunctionEventAvg()]).to_arrow()["is_user_annotation"].null_count == 1


def test_the_capsules_are_those_of_the_interface() -> None:
    columns = recorded()._columns()
    assert len(columns) == 1593
    assert '"arrow_array_stream"' in repr(columns.__arrow_c_stream__())
    schema, array = columns.__arrow_c_array__()
    assert '"arrow_schema"' in repr(schema)
    assert '"arrow_array"' in repr(array)
    assert pa.record_batch(columns).num_rows == pa.table(columns).num_rows == 1593
    assert pa.schema(columns).names == pa.table(columns).column_names
    stream = pa.RecordBatchReader.from_stream(recorded())
    assert stream.read_all().num_rows == 1593


def test_columns_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ValueError, match="columns of equal length"):
        _core.ArrowTable.of_columns([("a", "int", [1]), ("b", "int", [1, 2])])
    with pytest.raises(ValueError, match="unknown kind of column `date`"):
        _core.ArrowTable.of_columns([("a", "date", [1])])


def test_a_column_outlives_its_list() -> None:
    table = recorded().to_arrow()
    assert sum(table["count"].to_pylist()) == 1593


def test_data_frames_of_pandas() -> None:
    frame = recorded().to_pandas()
    assert frame.shape == (1593, 30)
    own = frame.groupby("key", observed=True)["self_cpu_time_total"].sum()
    row = next(row for row in recorded().key_averages() if row.key == "aten::conv2d")
    assert own["aten::conv2d"] == pytest.approx(row.self_cpu_time_total)


@pytest.mark.parametrize("items", [recorded, made], ids=["recorded", "made"])
def test_rows_themselves_become_frames_of_the_same_columns(items: Any) -> None:
    pandas = importlib.import_module("pandas")
    rows = items().key_averages()
    frame = pandas.DataFrame(rows)
    assert list(frame.columns) == list(items().key_averages().to_pandas().columns)
    assert frame["count"].tolist() == [row.count for row in rows]


def test_events_and_rows_look_like_dataclasses() -> None:
    rows = recorded().key_averages(group_by_input_shapes=True)
    found = dataclasses.asdict(rows[0])
    assert (found["key"], found["count"]) == (rows[0].key, rows[0].count)
    assert found["input_shapes"] == rows[0].input_shapes
    for event in (recorded()[5], made()[0]):
        found = dataclasses.asdict(event)
        assert (found["key"], found["start_us"]) == (event.key, event.time_range.start)
        assert dataclasses.is_dataclass(event)


def test_events_say_where_they_ran_and_what_they_are_tied_to() -> None:
    trace = GOLDENS / "h200-torch2.11" / "gpt-full.trace.json.gz"
    table = EventList(_core.Profile.read(trace).events()).to_arrow()
    events = table.to_pylist()
    kernel = next(event for event in events if event["category"] == "kernel")
    assert (kernel["device_type"], kernel["device_index"], kernel["stream"]) == ("CUDA", 0, 7)
    assert (kernel["process"], kernel["thread_id"]) == (None, None)
    launches = [event for event in events if event["correlation"] == kernel["correlation"]]
    assert {event["category"] for event in launches} == {"cuda_runtime", "kernel"}
    caller = [event for event in events if event["external_id"] == kernel["external_id"]]
    assert any(event["category"] == "cpu_op" for event in caller)
    host = caller[0]
    assert (host["process"], host["thread_id"], host["device_index"]) == (399, 399, None)
    assert {event["thread_name"] for event in events} >= {"python3", "pt_autograd_0"}
    assert {event["step"] for event in events} == {1, 2}
    assert host["rank"] is None
    linear = next(event for event in events if event["key"] == "aten::linear")
    assert all(isinstance(dim, int) for shape in linear["input_shapes"] for dim in shape)
    assert any("forward" in frame for frame in linear["stack"])


def test_the_rank_is_that_of_the_trace(tmp_path: Path) -> None:
    path = tmp_path / "rank.json"
    event = {"ph": "X", "cat": "cpu_op", "name": "a", "pid": 1, "tid": 1, "ts": 1, "dur": 2}
    path.write_text(json.dumps({"distributedInfo": {"rank": 3}, "traceEvents": [event]}))
    events = EventList(_core.Profile.read(path).events())
    assert events.to_arrow()["rank"].to_pylist() == [3] == [events[0].rank]


def test_pandas_without_pyarrow_takes_plain_values(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert made().to_pandas()["count"].tolist() == [1, 1, 1]


def test_polars_is_handed_the_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "polars", SimpleNamespace(DataFrame=pa.table))
    assert made().to_polars().num_rows == 3


@pytest.mark.parametrize("library", ["pyarrow", "pandas", "polars"])
def test_a_library_that_is_missing_is_named(library: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(ImportError, match=f"{library} is not installed: pip install {library}"):
        getattr(made(), f"to_{library.replace('py', '', 1)}")()


def test_parquet_holds_the_columns(tmp_path: Path) -> None:
    events = recorded()
    events.export_parquet(tmp_path / "events.parquet")
    found = parquet.read_table(tmp_path / "events.parquet")
    assert found.to_pylist() == events.to_arrow().to_pylist()


def test_pictures_and_speedscope_are_written(tmp_path: Path) -> None:
    events = recorded()
    events.export_flamegraph(tmp_path / "new" / "flame.svg")
    assert "aten::conv2d" in (tmp_path / "new" / "flame.svg").read_text()
    events.export_speedscope(tmp_path / "run.speedscope.json")
    file = json.loads((tmp_path / "run.speedscope.json").read_text())
    assert file["$schema"] == "https://www.speedscope.app/file-format-schema.json"
    with pytest.raises(ValueError, match="metric should be one of"):
        events.export_flamegraph(tmp_path / "flame.svg", "count")
    with pytest.raises(ValueError, match="no events with self time"):
        events.export_flamegraph(tmp_path / "none.svg", "self_cuda_time_total")
    assert not (tmp_path / "none.svg").exists()
    with pytest.raises(ValueError, match="not an unchanged recording"):
        made().export_speedscope(tmp_path / "made.json")


def test_speedscope_opens_on_the_main_thread(tmp_path: Path) -> None:
    common = {"ph": "X", "cat": "cpu_op", "pid": 7, "dur": 5}
    threads = [(9, "helper"), (7, "main"), (8, "other")]
    events = [
        {**common, "tid": tid, "ts": ts, "name": name} for ts, (tid, name) in enumerate(threads)
    ]
    (tmp_path / "trace.json").write_text(json.dumps({"traceEvents": events}))
    EventList(_core.Profile.read(tmp_path / "trace.json").events()).export_speedscope(
        tmp_path / "run.speedscope.json"
    )
    file = json.loads((tmp_path / "run.speedscope.json").read_text())
    opened = file["profiles"][file["activeProfileIndex"]]
    assert file["shared"]["frames"][opened["events"][0]["frame"]]["name"] == "main"


def test_files_of_a_recording_are_those_of_its_items(tmp_path: Path) -> None:
    events = recorded()
    copied = EventList(list(events))
    metric = "self_cpu_time_total"
    events.export_stacks(tmp_path / "engine.txt", metric)
    copied.export_stacks(tmp_path / "items.txt", metric)
    assert (tmp_path / "engine.txt").read_text() == (tmp_path / "items.txt").read_text()
    events.export_chrome_trace(tmp_path / "engine.json")
    copied.export_chrome_trace(tmp_path / "items.json")
    engine, items = (tmp_path / "engine.json").read_text(), (tmp_path / "items.json").read_text()
    assert json.loads(engine) == json.loads(items)
    assert engine[:200] == items[:200]
