"""What was asked for, behaviour by behaviour: one test per line, named for it."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import mindtorch_v2 as torch
import pytest
from mindtorch_v2.profiler import ProfilerActivity, profile, record_function

METRICS = [
    "self_cpu_time_total",
    "self_cuda_time_total",
    "self_xpu_time_total",
    "self_privateuse1_time_total",
]
NEEDS_ALL = (
    "record_shapes=True, profile_memory=True, with_stack=True required for memory profiling."
)
OPTIMIZERS = {
    *("SGD", "Adam", "AdamW", "Adamax", "NAdam", "RAdam", "RMSprop", "Rprop", "ASGD"),
    *("Adagrad", "Adadelta", "LBFGS"),
}
TWO_FLAGS = {"record_shapes": True, "profile_memory": True}


def add_two_shapes(**flags: Any) -> profile:
    """Profiles one addition of two by two and one of three by three."""
    small, large = torch.ones((2, 2)), torch.ones((3, 3))
    with profile(**flags) as prof:
        small + small
        large + large
    return prof


def named(rows: Any, key: str) -> list[Any]:
    """Returns the rows of one name."""
    return [row for row in rows if row.key == key]


def test_m1_rows_are_separated_by_shape_and_by_stack() -> None:
    prof = add_two_shapes(record_shapes=True, with_stack=True)
    assert [row.count for row in named(prof.key_averages(), "aten::add")] == [2]
    by_shape = named(prof.key_averages(group_by_input_shape=True), "aten::add")
    assert sorted(row.input_shapes[0] for row in by_shape) == [[2, 2], [3, 3]]
    by_stack = named(prof.key_averages(group_by_stack_n=1), "aten::add")
    assert [row.count for row in by_stack] == [1, 1]
    assert by_stack[0].stack != by_stack[1].stack


@pytest.mark.parametrize("metric", ["self_cpu_time_total", "cpu_time_total", "count"])
def test_m2_tables_are_sorted_by_torchs_metrics(metric: str) -> None:
    rows = add_two_shapes().key_averages()
    text = rows.table(sort_by=metric)
    first = max(rows, key=lambda row: getattr(row, metric))
    body = text.split("\n", 3)[3]
    assert body.lstrip().startswith(first.key)


def test_m2_an_unknown_metric_is_refused() -> None:
    with pytest.raises(AttributeError):
        add_two_shapes().key_averages().table(sort_by="no_such_metric")


def test_m3_the_own_time_is_the_sum_over_rows_in_microseconds() -> None:
    prof = add_two_shapes()
    rows = prof.key_averages()
    assert rows.self_cpu_time_total == pytest.approx(sum(row.self_cpu_time_total for row in rows))
    lasted = max(e.time_range.end for e in prof.events()) - min(
        e.time_range.start for e in prof.events()
    )
    assert 0 < rows.self_cpu_time_total <= lasted


def test_m4_the_total_is_a_row_of_its_own() -> None:
    rows = add_two_shapes().key_averages()
    total = rows.total_average()
    assert total.key == "Total"
    assert total.count == sum(row.count for row in rows)
    assert total.self_cpu_time_total == pytest.approx(rows.self_cpu_time_total)


def test_m5_a_session_without_events_gives_zeros() -> None:
    with profile() as prof:
        pass
    rows = prof.key_averages()
    assert len(rows) == 0
    assert rows.self_cpu_time_total == 0
    total = rows.total_average()
    assert (total.key, total.count, total.cpu_time, total.self_cpu_time_total) == ("Total", 0, 0, 0)


def test_m6_rows_have_torchs_defaults() -> None:
    (row,) = named(add_two_shapes().key_averages(), "aten::add")
    assert row.device_type == "CPU"
    assert row.input_shapes == ""
    assert row.stack == []
    memory = ["cpu_memory_usage", "self_cpu_memory_usage"]
    memory += ["device_memory_usage", "self_device_memory_usage"]
    assert [getattr(row, name) for name in [*memory, "flops"]] == [0] * 5
    assert row.is_async is False
    assert row.scope == 0
    assert row.use_device is None
    assert row.is_user_annotation is False


def test_m7_shapes_and_memory_come_together() -> None:
    prof = add_two_shapes(record_shapes=True, profile_memory=True)
    rows = prof.key_averages(group_by_input_shape=True)
    adds = named(rows, "aten::add")
    assert len(adds) == 2
    for row in adds:
        assert isinstance(row.input_shapes, list)
        assert row.cpu_memory_usage >= row.self_cpu_memory_usage > 0


def test_m8_rows_are_not_subscriptable() -> None:
    row = add_two_shapes().key_averages()[0]
    with pytest.raises(TypeError):
        row["key"]  # type: ignore[index]


def test_m9_rows_have_times_of_the_device() -> None:
    row = add_two_shapes().key_averages()[0]
    assert (row.device_time, row.device_time_total, row.self_device_time_total) == (0, 0, 0)


def test_m10_stacks_are_weighed_by_torchs_metrics(tmp_path: Path) -> None:
    prof = add_two_shapes(with_stack=True)
    assert prof.events().supported_export_stacks_metrics() == METRICS
    for metric in METRICS[1:]:
        prof.export_stacks(str(tmp_path / metric), metric)
        # No device worked, so no stack has any of its time.
        assert (tmp_path / metric).read_text() == ""


def test_m11_another_metric_is_refused(tmp_path: Path) -> None:
    prof = add_two_shapes(with_stack=True)
    with pytest.raises(ValueError, match="metric should be one of"):
        prof.export_stacks(str(tmp_path / "stacks"), "cpu_time")


def test_m12_stacks_alone_fill_the_file(tmp_path: Path) -> None:
    x = torch.ones((256, 256))
    with profile(with_stack=True) as prof:
        for _ in range(20):
            x @ x
    prof.export_stacks(str(tmp_path / "stacks"), "self_cpu_time_total")
    lines = (tmp_path / "stacks").read_text().splitlines()
    assert lines
    for line in lines:
        frames, value = line.rsplit(" ", 1)
        assert frames.split(";")
        assert int(value) > 0
    assert any("test_m12_stacks_alone_fill_the_file" in line for line in lines)


def test_m13_events_of_all_cycles_can_be_kept() -> None:
    assert profile().acc_events is False
    assert profile(acc_events=True).acc_events is True


def test_m14_metadata_lands_in_the_trace(tmp_path: Path) -> None:
    prof = profile()
    prof.preset_metadata_json("before", '{"a": 1}')
    with prof:
        prof.add_metadata("name", "value")
        prof.add_metadata_json("json", "[1, 2]")
        prof.add_metadata_json("text", "not json")
        with pytest.raises(AttributeError):
            prof.add_metadata("number", 3)  # type: ignore[arg-type]
        torch.ones(2)
    path = tmp_path / "trace.json"
    prof.export_chrome_trace(str(path))
    trace = json.loads(path.read_text())
    found = [trace[key] for key in ("before", "name", "json", "text")]
    assert found == [{"a": 1}, "value", [1, 2], "not json"]


def test_m15_collection_can_be_switched() -> None:
    x = torch.ones(2)
    with profile(activities=[ProfilerActivity.CPU]) as prof:
        prof.toggle_collection_dynamic(False, [ProfilerActivity.CPU])
        x + x
        prof.toggle_collection_dynamic(True, [ProfilerActivity.CPU])
        x * x
    keys = {row.key for row in prof.key_averages()}
    assert "aten::mul" in keys
    assert "aten::add" not in keys


def test_m16_the_memory_timeline_needs_its_three_flags(tmp_path: Path) -> None:
    for flags, text in [({}, NEEDS_ALL), (TWO_FLAGS, "with_stack=True required for memory")]:
        prof = add_two_shapes(**flags)
        with (
            pytest.warns(FutureWarning, match="export_memory_timeline"),
            pytest.raises(ValueError, match=re.escape(text)),
        ):
            prof.export_memory_timeline(str(tmp_path / "timeline.json"), device="cpu")
    assert list(tmp_path.iterdir()) == []
    prof = add_two_shapes(**TWO_FLAGS, with_stack=True)
    with pytest.warns(FutureWarning, match="export_memory_timeline"):
        prof.export_memory_timeline(str(tmp_path / "timeline.json"), device="cpu")
    times, sizes = json.loads((tmp_path / "timeline.json").read_text())
    assert len(times) == len(sizes) > 0
    assert max(sum(row) for row in sizes) > 0


def test_m17_the_neighbours_of_the_profiler_hold() -> None:
    model = torch.nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    x = torch.ones((3, 2), requires_grad=True)
    hidden = x * 2
    hidden.retain_grad()
    seen: list[Any] = []
    hidden.register_hook(seen.append)
    with profile(record_shapes=True, profile_memory=True):
        loss = model(hidden).sum()
        loss.backward(retain_graph=True)
        loss.backward()
        before = model.weight.detach().clone()
        optimizer.step()
    assert len(seen) == 2
    assert hidden.grad is not None
    assert model.weight.grad is not None
    assert (model.weight - (before - 0.1 * model.weight.grad)).abs().max().item() < 1e-6
    unused = torch.ones(2, requires_grad=True)
    assert torch.autograd.grad((x * 3).sum(), [x, unused], allow_unused=True)[1] is None


def test_m18_ops_come_through_the_dispatcher_without_another_framework() -> None:
    model = torch.nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with profile() as prof, record_function("step"):
        model(torch.ones((3, 2))).sum().backward()
        optimizer.step()
    keys = {row.key for row in prof.key_averages()}
    assert {"step", "aten::linear", "aten::addmm", "AddmmBackward0"} <= keys
    assert "Optimizer.step#SGD.step" in keys
    asked = "import sys, mindtorch_v2; print({'mindspore', 'torch', 'numpy'} & set(sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", asked], capture_output=True, check=True)
    assert loaded.stdout.decode().strip() == "set()"


def test_m19_events_answer_by_the_keys_of_mindtorch_v2() -> None:
    x = torch.ones((2, 2))
    with profile() as prof:
        with record_function("outer"):
            x + x
        prof.toggle_collection_dynamic(False, [ProfilerActivity.CPU])
        x * x
        prof.toggle_collection_dynamic(True, [ProfilerActivity.CPU])
        prof.step()
        x + x
    ops = [event["name"] for event in prof.events() if event["kind"] == "op"]
    assert ops == ["aten::add", "aten::add"]
    scopes = [event["name"] for event in prof.events() if event["kind"] == "scope"]
    assert scopes == ["outer"]
    assert [event["step"] for event in prof.events()] == [0, 0, 1]
    for event in prof.events():
        assert event["device_type"] == "CPU"
        assert event["end_ns"] - event["start_ns"] == event["duration_ns"] >= 0
        assert event["start_ns"] / 1000 == event.time_range.start
        assert event["thread_id"] == threading.get_native_id()
        assert not {"input_shapes", "stack", "cpu_memory_allocated_delta"} & set(event)
        with pytest.raises(KeyError, match="no_such_key"):
            event["no_such_key"]
    with pytest.raises(TypeError):
        prof.key_averages()[0]["key"]  # type: ignore[index]


def test_m19_what_was_recorded_has_its_keys() -> None:
    prof = add_two_shapes(record_shapes=True, profile_memory=True, with_stack=True)
    ops = [event for event in prof.events() if event["kind"] == "op"]
    assert [event["input_shapes"][0] for event in ops] == [[2, 2], [3, 3]]
    assert all("test_mission" in event["stack"][0] for event in ops)
    assert len({event["correlation_id"] for event in ops}) == len(ops)
    for event, taken in zip(ops, [16, 36], strict=True):
        before, after = (event[f"cpu_memory_allocated_{end}"] for end in ("before", "after"))
        assert event["cpu_memory_allocated_delta"] == after - before == taken


@pytest.mark.parametrize(
    "name",
    [
        "SGD",
        "Adam",
        "AdamW",
        "Adamax",
        "NAdam",
        "RAdam",
        "RMSprop",
        "Rprop",
        "ASGD",
        "Adagrad",
        "Adadelta",
        "LBFGS",
    ],
)
def test_m20_every_optimizer_lowers_a_loss_with_its_hooks_and_scheduler(name: str) -> None:
    weight = torch.nn.Parameter(torch.ones(3))
    optimizer = getattr(torch.optim, name)([weight], lr=0.1)
    scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.9)
    seen: list[str] = []
    optimizer.register_step_pre_hook(lambda *given: seen.append("pre"))
    optimizer.register_step_post_hook(lambda *given: seen.append("post"))

    def closure() -> Any:
        optimizer.zero_grad()
        loss = (weight * weight).sum()
        loss.backward()
        return loss

    with profile() as prof:
        for _ in range(5):
            optimizer.step(closure)
            scheduler.step()
    scope = f"Optimizer.step#{name}.step"
    assert [row.count for row in named(prof.key_averages(), scope)] == [5]
    assert seen == ["pre", "post"] * 5
    assert scheduler.get_last_lr() == pytest.approx([0.1 * 0.9**5])
    assert closure().item() < 3
    again = getattr(torch.optim, name)([weight], lr=0.5)
    again.load_state_dict(optimizer.state_dict())
    assert again.state_dict()["param_groups"] == optimizer.state_dict()["param_groups"]


def test_m20_autograd_keeps_detaches_and_hooks() -> None:
    x = torch.ones((2, 2), requires_grad=True)
    hidden = x * 3
    hidden.retain_grad()
    handle = hidden.register_hook(lambda gradient: gradient * 2)
    (hidden * hidden.detach()).sum().backward()
    assert hidden.grad is not None
    assert x.grad is not None
    assert hidden.grad.tolist() == [[6.0, 6.0]] * 2
    assert x.grad.tolist() == [[18.0, 18.0]] * 2
    handle.remove()
    linear = torch.nn.Linear(2, 3)
    for sizes in [(2,), (4, 2), (2, 2, 2), (2, 1, 2, 2)]:
        assert linear(torch.ones(sizes)).shape == (*sizes[:-1], 3)
    unused = torch.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="allow_unused"):
        torch.autograd.grad((x * 3).sum(), [unused])
    assert torch.autograd.grad((x * 3).sum(), [unused], allow_unused=True) == (None,)


def test_every_line_has_its_test() -> None:
    found = {name.split("_")[1] for name in globals() if name.startswith("test_m")}
    assert found == {f"m{number}" for number in range(1, 21)}
