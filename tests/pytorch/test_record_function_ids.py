"""A Chrome trace and an execution trace of the same time refer to operators by the same ids."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import mindprof
import torch  # type: ignore[import-not-found]
from torch.profiler import ExecutionTraceObserver  # type: ignore[import-not-found]


def ids_of_execution_trace(path: Path) -> dict[int, str]:
    nodes = json.loads(path.read_text())["nodes"]
    attributes = [(node["name"], {a["name"]: a["value"] for a in node["attrs"]}) for node in nodes]
    return {a["rf_id"]: name for name, a in attributes if not name.startswith("[pytorch|")}


def ids_of_trace(prof: Any, path: Path) -> list[tuple[int, str]]:
    prof.export_chrome_trace(str(path))
    events = json.loads(path.read_text())["traceEvents"]
    scopes = [event for event in events if event.get("cat") in ("cpu_op", "user_annotation")]
    return [(event["args"]["Record function id"], event["name"]) for event in scopes]


def workload() -> None:
    x = torch.ones(2, 3, requires_grad=True)
    with torch.profiler.record_function("mine"):
        (x * 2).sum().backward()


def test_operators_have_the_ids_of_torchs_execution_trace(tmp_path: Path) -> None:
    file = tmp_path / "execution.json"
    observer = ExecutionTraceObserver().register_callback(str(file))
    with mindprof.profile(
        activities=[mindprof.ProfilerActivity.CPU],
        schedule=mindprof.schedule(wait=1, warmup=1, active=2, repeat=1),
        execution_trace_observer=observer,
    ) as prof:
        for _ in range(5):
            workload()
            prof.step()
    found = ids_of_trace(prof, tmp_path / "trace.json")
    wanted = ids_of_execution_trace(file)
    assert len(found) == len(wanted)
    assert dict(found) == wanted
    assert {"aten::mul", "mine", "ProfilerStep#3"} <= set(wanted.values())


def test_without_an_execution_trace_ids_are_zero_as_in_torch(tmp_path: Path) -> None:
    cpu = [torch.profiler.ProfilerActivity.CPU]
    for profiler in (torch.profiler.profile, mindprof.profile):
        with profiler(activities=cpu) as prof:
            workload()
        found = ids_of_trace(prof, tmp_path / "trace.json")
        assert {number for number, _ in found} == {0}


def test_ids_come_and_go_with_the_execution_trace(tmp_path: Path) -> None:
    x = torch.ones(2)
    file = tmp_path / "execution.json"
    observer = ExecutionTraceObserver().register_callback(str(file))
    with mindprof.profile() as prof:
        x + x
        observer.start()
        x * x
        observer.stop()
        x - x
    observer.unregister_callback()
    wanted = ids_of_execution_trace(file)
    [number] = [number for number, name in wanted.items() if name == "aten::mul"]
    found = {name: number for number, name in ids_of_trace(prof, tmp_path / "trace.json")}
    assert found == {"aten::add": 0, "aten::mul": number, "aten::sub": 0}
