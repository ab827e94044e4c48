"""Objects of torch's own profiler are taken as they are."""

from __future__ import annotations

from pathlib import Path

import mindprof
import torch  # type: ignore[import-not-found]
from mindprof import ExperimentalConfig
from torch.profiler import (  # type: ignore[import-not-found]
    ProfilerActivity,
    record_function,
    schedule,
    tensorboard_trace_handler,
)


def test_activities() -> None:
    with mindprof.profile(activities=[ProfilerActivity.CPU]) as prof:
        torch.ones(2)
    assert prof.activities == {mindprof.ProfilerActivity.CPU}
    assert "aten::ones" in [row.key for row in prof.key_averages()]


def test_activities_that_are_narrowed_down() -> None:
    narrowed = {ProfilerActivity.CPU: ["CPU_OP"]}
    assert mindprof.profile(activities=[narrowed]).activities == {mindprof.ProfilerActivity.CPU}


def test_a_schedule_and_a_handler_for_traces(tmp_path: Path) -> None:
    plan = schedule(wait=1, warmup=1, active=2, repeat=1)
    handler = tensorboard_trace_handler(str(tmp_path))
    with mindprof.profile(schedule=plan, on_trace_ready=handler) as prof:
        for _ in range(5):
            torch.ones(2)
            prof.step()
    [trace] = tmp_path.iterdir()
    rows = {row.key: row.count for row in mindprof.load(trace).key_averages()}
    assert rows["aten::ones"] == 2


def test_what_is_imported_from_torch_is_there_to_be_imported_from_here() -> None:
    import mindprof.profiler as ours

    names = {*torch.profiler.__all__, "_ExperimentalConfig", "_KinetoProfile"}
    assert names <= vars(ours).keys()
    assert set(torch.profiler.__all__) <= set(ours.__all__)
    assert ours._ExperimentalConfig is ExperimentalConfig


def test_a_configuration() -> None:
    config = torch._C._profiler._ExperimentalConfig(verbose=True, profile_all_threads=True)
    prof = mindprof.profile(experimental_config=config)
    assert isinstance(prof.experimental_config, ExperimentalConfig)
    assert prof.experimental_config.all_threads


def test_an_observer_of_executions(tmp_path: Path) -> None:
    observer = torch.profiler.ExecutionTraceObserver()
    observer.register_callback(str(tmp_path / "execution.json"))
    with mindprof.profile(execution_trace_observer=observer) as prof:
        torch.ones(2)
    assert "aten::ones" in (tmp_path / "execution.json").read_text()
    assert "aten::ones" in [row.key for row in prof.key_averages()]


def test_ranges_of_both_worlds_nest_in_one_profile() -> None:
    with (
        mindprof.profile() as prof,
        record_function("theirs"),
        mindprof.record_function("ours"),
        record_function("inner"),
    ):
        torch.ones(2)
    parents = {event.name: event.cpu_parent and event.cpu_parent.name for event in prof.events()}
    assert parents["theirs"] is None
    assert parents["ours"] == "theirs"
    assert parents["inner"] == "ours"
    assert parents["aten::ones"] == "inner"
    assert all(event.is_user_annotation for event in prof.events() if event.name in "theirs ours")
