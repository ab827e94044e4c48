"""`mindprof.load`: a trace file says what the recording said."""

from __future__ import annotations

import gzip
import io
import json
from pathlib import Path
from typing import Any

import mindprof
import pytest
from mindprof import EventList, RepairWarning

from tests.workloads import torch

GOLDENS = Path(__file__).parents[1] / "goldens"
FULL = GOLDENS / "cpu-torch2.15" / "cnn-full.trace.json.gz"


def recorded() -> mindprof.profile:
    with mindprof.profile(record_shapes=True, profile_memory=True) as prof:
        for size in (2, 3):
            with mindprof.record_function("step"):
                (torch.ones(size, size) @ torch.ones(size, size)).sum()
    return prof


def rows(events: EventList) -> list[tuple[object, ...]]:
    names = ("key", "count", "input_shapes", "cpu_time_total", "self_cpu_time_total")
    return [tuple(getattr(row, name) for name in names) for row in events]


@pytest.mark.parametrize("name", ["trace.json", "trace.json.gz"])
def test_a_loaded_profile_says_what_the_live_one_says(name: str, tmp_path: Path) -> None:
    prof = recorded()
    prof.add_metadata("model", "small")
    prof.export_chrome_trace(tmp_path / name)
    loaded = mindprof.load(tmp_path / name)
    for shapes in (False, True):
        live = rows(prof.key_averages(group_by_input_shape=shapes))
        assert rows(loaded.key_averages(group_by_input_shape=shapes)) == live
    assert [event.name for event in loaded.events()] == [event.name for event in prof.events()]
    table = prof.key_averages().table(sort_by="count")
    assert loaded.key_averages().table(sort_by="count") == table
    assert loaded.metadata["model"] == "small"
    assert loaded.metadata["record_shapes"] == 1
    assert (loaded.repairs, loaded.loss, loaded.lost_events) == ((), {}, 0)


def test_a_range_with_the_name_of_memory_is_read_as_a_range(tmp_path: Path) -> None:
    with mindprof.profile(profile_memory=True) as prof, mindprof.record_function("[memory]"):
        kept = torch.ones(100)
    loaded = mindprof.load(prof.export_chrome_trace(tmp_path / "trace.json"))
    (found,) = (event for event in loaded.events() if event.name == "[memory]")
    assert [child.name for child in found.cpu_children] == ["aten::ones"]
    assert rows(loaded.key_averages()) == rows(prof.key_averages())
    assert sum(row.self_cpu_memory_usage for row in loaded.key_averages()) == 4 * kept.numel()


def test_everything_can_be_written_again(tmp_path: Path) -> None:
    loaded = mindprof.load(FULL)
    again = mindprof.load(loaded.export_chrome_trace(tmp_path / "again.json.gz"))
    assert rows(again.key_averages()) == rows(loaded.key_averages())
    loaded.export_stacks(tmp_path / "stacks.txt")
    lines = (tmp_path / "stacks.txt").read_text().splitlines()
    assert lines
    assert all(line.rpartition(" ")[2].isdigit() for line in lines)
    loaded.export_memory_timeline(tmp_path / "memory.json")
    times, sizes = json.loads((tmp_path / "memory.json").read_text())
    assert len(times) == len(sizes) > 0
    loaded.export_memory_timeline(str(tmp_path / "memory.html"), "cpu")
    assert "<html" in (tmp_path / "memory.html").read_text()


def test_what_a_trace_lacks_cannot_be_written(tmp_path: Path) -> None:
    loaded = mindprof.load(GOLDENS / "cpu-torch2.15" / "gpt-plain.trace.json.gz")
    with pytest.raises(ValueError, match="profile_memory=True required"):
        loaded.export_memory_timeline(tmp_path / "memory.json")
    with pytest.raises(ValueError, match="metric should be one of"):
        loaded.export_stacks(tmp_path / "stacks.txt", "colour")
    assert list(tmp_path.iterdir()) == []


def test_repairs_are_warned_of_and_kept(tmp_path: Path) -> None:
    path = tmp_path / "damaged.json"
    event = {"ph": "X", "cat": "cpu_op", "name": "a", "pid": 1, "tid": 1, "ts": 1, "dur": 2}
    path.write_text(json.dumps({"traceEvents": [event, {**event, "ts": "soon"}]}))
    with pytest.warns(RepairWarning, match=r"damaged\.json: 1 "):
        loaded = mindprof.load(path)
    assert [repair.count for repair in loaded.repairs] == [1]
    assert [row.key for row in loaded.key_averages()] == ["a"]


def test_what_is_no_trace_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"missing\.json"):
        mindprof.load(tmp_path / "missing.json")
    (tmp_path / "text.json").write_text("hello")
    with pytest.raises(mindprof.ProfilerError, match=r"text\.json"):
        mindprof.load(tmp_path / "text.json")
    with pytest.raises(IsADirectoryError):
        mindprof.load(tmp_path)


def test_it_says_what_it_is() -> None:
    with gzip.open(FULL, "rt") as file:
        trace = json.load(file)
    loaded = mindprof.load(str(FULL))
    complete = [event for event in trace["traceEvents"] if event.get("ph") == "X"]
    # One of them is the span of the window.
    assert repr(loaded) == f"<mindprof.LoadedProfile of {str(FULL)!r}, {len(complete) - 1} events>"
    assert loaded.metadata["host_name"] == trace["host_name"]


def test_reading_has_a_ceiling_that_can_be_set(tmp_path: Path) -> None:
    path = recorded().export_chrome_trace(tmp_path / "trace.json.gz")
    size = len(gzip.decompress(Path(path).read_bytes()))
    assert mindprof.load(path, max_bytes=size).lost_events == 0
    with pytest.raises(mindprof.ProfilerError, match=rf"more than {size - 1} bytes.*`max_bytes`"):
        mindprof.load(path, max_bytes=size - 1)
    with pytest.raises(mindprof.ProfilerError, match="`max_bytes`"):
        mindprof.load(Path(path).read_bytes(), max_bytes=size - 1)
    with pytest.raises(ValueError, match="at least one"):
        mindprof.load(path, max_bytes=0)


def test_bytes_and_open_files_are_traces_too() -> None:
    keys = [row.key for row in mindprof.load(FULL).key_averages()]
    content = FULL.read_bytes()
    with FULL.open("rb") as file:
        sources: list[Any] = [
            content,
            bytearray(content),
            memoryview(content),
            io.BytesIO(content),
            file,
        ]
        for source in sources:
            assert [row.key for row in mindprof.load(source).key_averages()] == keys
    text = io.StringIO(gzip.decompress(content).decode())
    loaded = mindprof.load(text)
    assert [row.key for row in loaded.key_averages()] == keys
    assert loaded.path == "<StringIO>"
    with pytest.raises(mindprof.ProfilerError, match="<bytes>"):
        mindprof.load(b"no trace")
    with pytest.raises(TypeError, match="expected a path, bytes or an open file, found int"):
        mindprof.load(3)  # type: ignore[arg-type]


def test_a_loaded_profile_writes_all_that_a_recording_does(tmp_path: Path) -> None:
    names = {name for name in dir(mindprof.profile) if name.startswith("export_")}
    assert names <= set(dir(mindprof.LoadedProfile))
    loaded = mindprof.load(FULL)
    loaded.export_flamegraph(tmp_path / "flame.svg")
    loaded.export_speedscope(tmp_path / "run.speedscope.json")
    loaded.export_parquet(tmp_path / "events.parquet")
    assert (tmp_path / "flame.svg").read_text().startswith("<?xml")
    assert (tmp_path / "events.parquet").read_bytes().startswith(b"PAR1")
    assert "shared" in json.loads((tmp_path / "run.speedscope.json").read_text())
