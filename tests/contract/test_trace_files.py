"""Section 6: what is in an exported trace."""

from __future__ import annotations

import os
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from host import events, export, load, mark, names, profile, record, torch, work

INTERVAL_SECONDS = 7889238


def step(**flags: Any) -> Any:
    """Records a forward and a backward pass."""
    weight = torch.ones(4, 4, requires_grad=True)
    with profile(**flags) as profiler, record("step"):
        (weight @ weight).sum().backward()
    return profiler


def of_category(trace: dict[str, Any], category: str) -> list[dict[str, Any]]:
    """Returns the events of a category, by time."""
    found = [event for event in trace["traceEvents"] if event.get("cat") == category]
    return sorted(found, key=lambda event: (event["ts"], -event.get("dur", 0)))


def test_c_1_only_the_last_cycle_is_written(tmp_path: Path) -> None:
    profiler = profile()
    for name in ("first", "second"):
        profiler.start()
        mark(name)
        profiler.stop()
    assert names(export(profiler, tmp_path)) == {"second": 1}


def test_c_5_a_name_in_gz_is_compressed(tmp_path: Path) -> None:
    path = tmp_path / "trace.json.gz"
    step().export_chrome_trace(str(path))
    assert path.read_bytes()[:2] == b"\x1f\x8b"
    assert "step" in names(load(path))


@pytest.mark.differs("torch returns None")
def test_c_8_the_path_is_returned(tmp_path: Path) -> None:
    path = str(tmp_path / "trace.json")
    assert step().export_chrome_trace(path) == path


@pytest.mark.differs("torch takes texts only")
def test_c_4_paths_are_taken(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    step().export_chrome_trace(path)
    assert "step" in names(load(path))


def test_the_top_has_torchs_keys(tmp_path: Path) -> None:
    trace = export(step(record_shapes=True), tmp_path)
    assert {"trace_id", "record_shapes", "host_name", "traceEvents"} <= trace.keys()
    assert trace["schemaVersion"] == 1
    assert trace["deviceProperties"] == []
    assert trace["displayTimeUnit"] == "ms"
    assert trace["traceName"] == str(tmp_path / "trace.json")
    assert trace["baseTimeNanoseconds"] % (INTERVAL_SECONDS * 10**9) == 0
    assert all(event["ts"] >= 0 for event in trace["traceEvents"])


def test_times_have_three_digits(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    step().export_chrome_trace(str(path))
    parts = path.read_text().replace(" ", "").split('"ts":')[1:]
    assert all(len(part.split(",")[0].split("}")[0].strip().split(".")[1]) == 3 for part in parts)


def test_processes_and_threads_are_named(tmp_path: Path) -> None:
    facts: dict[str, dict[int, Any]] = defaultdict(dict)
    for event in export(step(), tmp_path)["traceEvents"]:
        if event["ph"] == "M" and event["pid"] == os.getpid():
            facts[event["name"]][event["tid"]] = event["args"]
    process = os.getpid()
    assert facts["process_labels"] == {0: {"labels": "CPU"}}
    assert facts["process_sort_index"] == {0: {"sort_index": process}}
    name = facts["process_name"][0]["name"]
    assert facts["thread_name"][process] == {"name": f"thread {process} ({name})"}
    assert facts["thread_sort_index"][process] == {"sort_index": process}


def test_the_window_is_marked(tmp_path: Path) -> None:
    trace = export(step(), tmp_path)
    (window,) = of_category(trace, "Trace")
    assert (window["name"], window["pid"], window["tid"]) == (
        "PyTorch Profiler (0)",
        "Spans",
        "PyTorch Profiler",
    )
    marks = {event["name"] for event in trace["traceEvents"] if event["ph"] == "i"}
    assert marks == {"Iteration Start: PyTorch Profiler", "Record Window End"}
    starts = [event["ts"] for event in events(trace)]
    assert window["ts"] <= min(starts)
    assert max(starts) <= window["ts"] + window["dur"]


def test_operators_have_torchs_arguments(tmp_path: Path) -> None:
    trace = export(step(record_shapes=True), tmp_path)
    operator = next(event for event in events(trace) if event["name"] == "aten::mm")
    arguments = operator["args"]
    assert arguments["Input Dims"] == [[4, 4], [4, 4]]
    assert arguments["Input Strides"] == [[4, 1], [4, 1]]
    assert arguments["Input type"] == ["float", "float"]
    assert arguments["Concrete Inputs"] == ["", ""]
    assert arguments["Fwd thread id"] == 0
    assert arguments["Record function id"] == 0
    assert {"External id", "Sequence number", "Ev Idx"} <= arguments.keys()
    assert (operator["ph"], operator["pid"], operator["tid"]) == ("X", os.getpid(), os.getpid())
    (annotation,) = of_category(trace, "user_annotation")
    assert annotation["name"] == "step"
    assert annotation["args"].keys() == {"External id", "Record function id", "Ev Idx"}


def test_numbers_of_inputs_are_written_as_torch_writes_them(tmp_path: Path) -> None:
    with profile(record_shapes=True) as profiler:
        torch.ones(2, 3).sum(dim=[0, 1], keepdim=True)
        torch.ones(2) * 0.1
        torch.cat([torch.ones(2, 2), torch.ones(1, 2)])
    found = {event["name"]: event["args"] for event in events(export(profiler, tmp_path))}
    assert found["aten::sum"]["Concrete Inputs"] == ["", "[0, 1]", "True", ""]
    assert found["aten::sum"]["Input type"] == ["float", "ScalarList", "Scalar", ""]
    assert found["aten::mul"]["Input type"][0] == "float"
    assert found["aten::cat"]["Input Dims"] == [[[2, 2], [1, 2]], []]
    assert found["aten::cat"]["Input Strides"] == [[[2, 1], [2, 1]], []]
    assert found["aten::cat"]["Input type"] == ["TensorList", "Scalar"]


def test_arrows_lead_to_backward_nodes(tmp_path: Path) -> None:
    trace = export(step(), tmp_path)
    ends = of_category(trace, "fwdbwd")
    operators = {(event["tid"], event["ts"]): event for event in of_category(trace, "cpu_op")}
    tails = {end["id"]: operators[end["tid"], end["ts"]] for end in ends if end["ph"] == "s"}
    heads = {end["id"]: operators[end["tid"], end["ts"]] for end in ends if end["ph"] == "f"}
    arrows = {(tails[number]["name"], heads[number]["name"]) for number in tails}
    assert tails.keys() == heads.keys() == {1, 2}
    assert arrows == {("aten::sum", "SumBackward0"), ("aten::mm", "MmBackward0")}
    for number, tail in tails.items():
        assert tail["args"]["Sequence number"] == heads[number]["args"]["Sequence number"]
        assert heads[number]["args"]["Fwd thread id"] == 1


def test_memory_is_marked(tmp_path: Path) -> None:
    with profile(profile_memory=True) as profiler:
        kept = torch.ones(256)
        del kept
    marks = of_category(export(profiler, tmp_path), "cpu_instant_event")
    assert [(mark["name"], mark["ph"], mark["s"]) for mark in marks] == [("[memory]", "i", "t")] * 2
    taken, given = (mark["args"] for mark in marks)
    assert taken.keys() == {
        "Total Reserved",
        "Total Allocated",
        "Bytes",
        "Device Id",
        "Device Type",
        "Addr",
        "finished",
        "Ev Idx",
    }
    assert (taken["Bytes"], given["Bytes"]) == (1024, -1024)
    assert taken["Total Allocated"] - given["Total Allocated"] == 1024
    assert taken["Addr"] == given["Addr"]
    assert (taken["Device Id"], taken["Device Type"], taken["finished"]) == (-1, 0, False)


def test_what_is_open_at_the_end_is_not_finished(tmp_path: Path) -> None:
    open_range = record("open")
    with profile() as profiler:
        open_range.__enter__()
        work()
    open_range.__exit__(None, None, None)
    (found,) = of_category(export(profiler, tmp_path), "user_annotation")
    assert found["args"]["finished"] is False
