"""Traces as files: what is in them, whatever the names, the overlaps and the metadata."""

from __future__ import annotations

import json
import logging
import socket
import zlib
from pathlib import Path
from typing import Any

import mindprof
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mindprof import _core, profile, record_function, tensorboard_trace_handler

from tests.trace_schema import check_file, interval
from tests.workloads import torch

GOLDENS = Path(__file__).parents[1] / "goldens"


def recorded(**options: Any) -> Any:
    """Records a small training step."""
    weight = torch.ones(4, 4, requires_grad=True)
    with profile(**options) as profiler, record_function("step"):
        (weight @ weight).relu().sum().backward()
    return profiler


def events_of(trace: dict[str, Any], category: str) -> list[dict[str, Any]]:
    """Returns the events of a category."""
    return [event for event in trace["traceEvents"] if event.get("cat") == category]


def test_a_training_step_has_operators_ranges_memory_and_arrows(tmp_path: Path) -> None:
    profiler = recorded(record_shapes=True, profile_memory=True)
    trace = check_file(profiler.export_chrome_trace(tmp_path / "trace.json"))
    operators = {event["name"]: event["args"] for event in events_of(trace, "cpu_op")}
    assert operators["aten::mm"]["Input Dims"] == [[4, 4], [4, 4]]
    assert operators["aten::mm"]["Input type"] == ["float", "float"]
    assert [event["name"] for event in events_of(trace, "user_annotation")] == ["step"]
    memory = events_of(trace, "cpu_instant_event")
    assert {event["name"] for event in memory} == {"[memory]"}
    assert all(event["args"]["Device Id"] == -1 for event in memory)
    numbers = [
        event["args"]["Ev Idx"]
        for event in trace["traceEvents"]
        if "Ev Idx" in event.get("args", {})
    ]
    assert len(set(numbers)) == len(numbers)
    assert {event["ph"] for event in events_of(trace, "fwdbwd")} == {"s", "f"}


def test_the_pace_of_the_recorder_survives_the_file(tmp_path: Path) -> None:
    # The profiler's own cost is estimated from it.
    profiler = recorded()
    path = profiler.export_chrome_trace(tmp_path / "trace.json")
    pace = check_file(path)["mindprof_recorder_pace_ns"]
    assert pace > 0
    assert mindprof.load(path).metadata["mindprof_recorder_pace_ns"] == pace


def test_the_top_says_where_and_by_what_it_was_written(tmp_path: Path) -> None:
    profiler = recorded(record_shapes=True)
    trace = check_file(profiler.export_chrome_trace(tmp_path / "trace.json"))
    assert trace["host_name"] == socket.gethostname()
    assert trace["record_shapes"] == 1
    assert trace["traceName"] == str(tmp_path / "trace.json")
    assert set(trace["mindprof"]["lost"].values()) == {0}
    assert trace["mindprof"]["version"].count(".") == 2


def test_what_was_lost_is_told(tmp_path: Path) -> None:
    with profile(budget_bytes=1 << 16) as profiler:
        for _ in range(20_000):
            torch.ones(1)
    trace = check_file(profiler.export_chrome_trace(tmp_path / "trace.json"))
    assert trace["mindprof"]["lost"]["budget"] == profiler.lost_events > 0


@pytest.mark.parametrize("name", ["trace.json", "trace.json.gz", "new/folder/trace.pftrace"])
def test_the_path_is_returned_and_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, name: str
) -> None:
    profiler = recorded()
    path = tmp_path / name
    with caplog.at_level(logging.INFO, logger="mindprof"):
        assert profiler.export_chrome_trace(path) == str(path)
    assert caplog.messages == [f"wrote the trace to {path}"]
    assert [file.name for file in path.parent.iterdir()] == [path.name]


def test_a_name_can_ask_for_perfettos_format(tmp_path: Path) -> None:
    profiler = recorded(record_shapes=True)
    profiler.add_metadata("who", "日本")
    path = Path(profiler.export_chrome_trace(tmp_path / "trace.pftrace"))
    tag, data = path.read_bytes()[0], path.read_bytes()
    assert tag == 0x0A
    packets = zlib.decompress(data[data.index(b"\x92\x03") + 4 :])
    assert b"aten::mm" in packets
    assert "日本".encode() in packets
    compressed = Path(profiler.export_chrome_trace(tmp_path / "trace.pftrace.gz"))
    assert zlib.decompress(compressed.read_bytes(), wbits=31) == data


@pytest.mark.parametrize("name", ["../../x", "..", "a/../../x", "/tmp/x"])
def test_the_tensorboard_handler_stays_in_its_folder(name: str, tmp_path: Path) -> None:
    folder = tmp_path / "runs" / "logs"
    with pytest.raises(ValueError, match="worker_name"):
        tensorboard_trace_handler(str(folder), name)
    assert list(tmp_path.iterdir()) == []


def test_a_worker_of_the_tensorboard_handler_may_have_a_folder_of_its_own(tmp_path: Path) -> None:
    handler = tensorboard_trace_handler(str(tmp_path), "node..1/rank0")
    with profile(on_trace_ready=handler), record_function("step"):
        pass
    assert [path.parent for path in tmp_path.rglob("*.pt.trace.json")] == [tmp_path / "node..1"]


@pytest.mark.parametrize("use_gzip", [False, True])
def test_the_tensorboard_handler_writes_the_same_traces(tmp_path: Path, use_gzip: bool) -> None:
    handler = tensorboard_trace_handler(str(tmp_path), "worker", use_gzip=use_gzip)
    with profile(on_trace_ready=handler):
        torch.ones(2)
    (file,) = tmp_path.iterdir()
    assert file.name.startswith("worker.")
    assert file.name.endswith(".pt.trace.json.gz" if use_gzip else ".pt.trace.json")
    assert (file.read_bytes()[:2] == b"\x1f\x8b") is use_gzip
    trace = check_file(file)
    assert {"aten::ones"} <= {event["name"] for event in events_of(trace, "cpu_op")}


def test_launchers_say_which_rank_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"RANK": "3", "WORLD_SIZE": "8", "LOCAL_RANK": "1"}.items():
        monkeypatch.setenv(name, value)
    trace = check_file(recorded().export_chrome_trace(tmp_path / "trace.json"))
    assert trace["distributedInfo"] == {
        "backend": "",
        "rank": 3,
        "world_size": 8,
        "pg_count": 0,
        "pg_config": [],
        "local_rank": 1,
    }


@pytest.mark.parametrize("said", [{}, {"RANK": "3"}, {"RANK": "x", "WORLD_SIZE": "8"}])
def test_without_a_rank_there_is_no_distributed_info(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: dict[str, str]
) -> None:
    for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK"):
        monkeypatch.delenv(name, raising=False)
    for name, value in said.items():
        monkeypatch.setenv(name, value)
    trace = check_file(recorded().export_chrome_trace(tmp_path / "trace.json"))
    assert "distributedInfo" not in trace


def test_ranges_that_cross_are_drawn_beside_each_other(tmp_path: Path) -> None:
    # first  |---------|
    # second      |---------|
    first, second = record_function("first"), record_function("second")
    with profile() as profiler:
        first.__enter__()
        torch.ones(1)
        second.__enter__()
        torch.ones(1)
        first.__exit__(None, None, None)
        torch.ones(1)
        second.__exit__(None, None, None)
    trace = check_file(profiler.export_chrome_trace(tmp_path / "trace.json"))
    ranges = {event["name"]: event for event in events_of(trace, "user_annotation")}
    assert interval(ranges["second"])[0] < interval(ranges["first"])[1]
    assert ranges["first"]["tid"] != ranges["second"]["tid"]
    (spare,) = trace["mindprof"]["spare_tracks"]
    assert {ranges[name]["tid"] for name in ranges} == {spare["tid"], spare["of"]}


@pytest.mark.parametrize("golden", sorted(GOLDENS.glob("*/*.trace.json.gz")), ids=lambda p: p.name)
def test_traces_of_torch_are_written_as_viewers_need_them(tmp_path: Path, golden: Path) -> None:
    path = tmp_path / "trace.json"
    _core.write_chrome_trace(_core.Profile.read(golden), path, metadata=[], activity_types=None)
    check_file(path)


# Letters of any language, control characters, quotes, what is longer than any buffer; lone
# surrogates, which Python takes.
TEXTS = st.one_of(
    st.text(st.characters(codec="utf-8"), max_size=30),
    st.text(st.sampled_from("\x00\x01\n\r\t\x1f\x7f\x85\u2028\"'\\/{}[],:<é日🙂"), max_size=30),
    st.builds(lambda text, times: text * times, st.text(min_size=1, max_size=3), st.just(10_000)),
)
ANY_TEXT = st.one_of(TEXTS, st.text(st.characters(categories=["Cs", "Ll"]), max_size=5))
PLENTY = settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@PLENTY
@given(names=st.lists(ANY_TEXT, max_size=4))
def test_any_name_gives_valid_json(tmp_path: Path, names: list[str]) -> None:
    with profile() as profiler:
        for name in names:
            with record_function(name):
                pass
    trace = check_file(profiler.export_chrome_trace(tmp_path / "trace.json"))
    found = [event["name"] for event in events_of(trace, "user_annotation")]
    assert len(found) == len(names)
    for name, shown in zip(names, found, strict=True):
        # What no file can hold is replaced.
        assert shown == name or not is_text(name)


def is_text(name: str) -> bool:
    """Returns whether a name has no lone surrogates."""
    return not any("\ud800" <= letter <= "\udfff" for letter in name)


@PLENTY
@given(entries=st.dictionaries(ANY_TEXT, ANY_TEXT, max_size=4), as_json=st.booleans())
def test_any_metadata_gives_valid_json(
    tmp_path: Path, entries: dict[str, str], as_json: bool
) -> None:
    with profile() as profiler:
        for key, value in entries.items():
            (profiler.add_metadata_json if as_json else profiler.add_metadata)(key, value)
    trace = check_file(profiler.export_chrome_trace(tmp_path / "trace.json"))
    for key, value in entries.items():
        if as_json or key in trace["mindprof"] or not (key + value).isprintable():
            continue
        found = trace.get(f"user_{key}", trace.get(key))
        assert found == value, key


def test_the_version_is_that_of_the_package(tmp_path: Path) -> None:
    trace = json.loads(Path(recorded().export_chrome_trace(tmp_path / "trace.json")).read_text())
    assert mindprof.__version__ == trace["mindprof"]["version"]
