"""`export_memory_timeline`: files, devices, totals, and what memory is for."""

from __future__ import annotations

import gzip
import json
import warnings
from collections import Counter
from itertools import accumulate
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mindprof import _core, profile
from mindprof._results.memory_timeline import Action, Category

from tests.host.record_memory import CATEGORIES, changes
from tests.host.workloads import WORKLOADS, Workload
from tests.workloads import torch

pytestmark = pytest.mark.filterwarnings("ignore:`export_memory_timeline`:FutureWarning")

FLAGS: dict[str, Any] = {"record_shapes": True, "profile_memory": True, "with_stack": True}
GOLDENS = Path(__file__).parent.parent / "goldens"
TORCHS = json.loads((Path(__file__).parent.parent / "host" / "memory.json").read_text())

# Where the runtime takes other memory than torch: its squared difference has no buffer of its own
# that lives on, and its convolution keeps scratch in tensors.
OTHER_ALLOCATIONS = {("mlp", "ACTIVATION"), ("cnn", "TEMPORARY")}


def profiled(workload: Workload, steps: int = 2) -> profile:
    for _ in range(2):
        workload.step()
    with profile(**FLAGS) as prof:
        for _ in range(steps):
            workload.step()
    return prof


def raw(prof: profile, folder: Path) -> list[list[int]]:
    path = folder / "memory.raw.json.gz"
    prof.export_memory_timeline(str(path))
    rows: list[list[int]] = json.loads(gzip.decompress(path.read_bytes()))
    return rows


def nbytes(tensor: Any) -> int:
    return int(tensor.numel() * tensor.element_size())


@pytest.mark.parametrize("name", TORCHS)
def test_memory_is_for_what_torch_says_it_is(name: str) -> None:
    found = changes(WORKLOADS[name](torch))
    for category in CATEGORIES:
        if (name, category) in OTHER_ALLOCATIONS:
            continue
        ours, torchs = found[category], TORCHS[name][category]
        taken = [[row for row in rows if row[0] != Action.DESTROY.value] for rows in (ours, torchs)]
        assert taken[0] == taken[1], category
        # What backward has saved it gives back earlier than torch, but gives it back.
        given_back = [Counter(map(tuple, rows)) for rows in (ours, torchs)]
        assert given_back[0] == given_back[1], category


@pytest.mark.parametrize("name", WORKLOADS)
def test_totals_are_those_of_a_count_over_the_trace(name: str, tmp_path: Path) -> None:
    prof = profiled(WORKLOADS[name](torch))
    prof.export_chrome_trace(str(tmp_path / "trace.json"))
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    records = [event["args"] for event in events if event["name"] == "[memory]"]
    live: dict[int, int] = {}
    before = 0
    for record in records:
        address, size = record["Addr"], record["Bytes"]
        if size > 0:
            assert address not in live
            live[address] = size
        else:
            before += 0 if live.pop(address, None) == -size else -size
    rows = raw(prof, tmp_path)
    untouched = sum(size for _, action, size, _ in rows if action == 1) - before
    counted = list(accumulate((record["Bytes"] for record in records), initial=before + untouched))
    totals = list(accumulate(size for _, _, size, _ in rows))
    assert max(totals) == max(counted)
    assert totals[-1] == counted[-1] == sum(live.values()) + untouched


@pytest.mark.parametrize("name", WORKLOADS)
def test_live_bytes_at_the_end_are_those_of_the_runtime(name: str, tmp_path: Path) -> None:
    workload = WORKLOADS[name](torch)
    workload.step()
    prof = profile(**FLAGS)
    before = _core._live_bytes()
    prof.start()
    workload.step()
    prof.stop()
    after = _core._live_bytes()
    rows = raw(prof, tmp_path)
    assert sum(size for _, action, size, _ in rows if action != 1) == after - before


@pytest.mark.parametrize("name", WORKLOADS)
def test_what_the_program_holds_is_in_its_categories_at_the_peak(name: str, tmp_path: Path) -> None:
    workload = WORKLOADS[name](torch)
    prof = profiled(workload)
    path = tmp_path / "memory.json"
    prof.export_memory_timeline(str(path))
    times, sizes = json.loads(path.read_text())
    assert len(times) == len(sizes)
    assert times == sorted(times)
    assert all(size >= 0 for row in sizes for size in row)
    parameters = list(workload.model.parameters())
    states = [
        nbytes(value)
        for state in workload.optimizer.state.values()
        for value in state.values()
        if isinstance(value, torch.Tensor)
    ]
    column = {category: index + 1 for index, category in enumerate(CATEGORIES)}
    peak = max(sizes, key=sum)
    assert peak[column["PARAMETER"]] == sum(map(nbytes, parameters))
    assert peak[column["OPTIMIZER_STATE"]] == sum(states)
    gradients = max(row[column["GRADIENT"]] for row in sizes)
    assert gradients == sum(nbytes(parameter.grad) for parameter in parameters)


def test_inputs_are_what_the_program_is_given(tmp_path: Path) -> None:
    workload = WORKLOADS["mlp"](torch)
    rows = raw(profiled(workload, steps=1), tmp_path)
    taken = [size for _, action, size, index in rows if action == 2 and index == 2]
    assert taken == [nbytes(tensor) for tensor in workload.make()]


def test_an_optimizer_that_begins_in_the_window_tells_of_its_state(tmp_path: Path) -> None:
    parameter = torch.nn.Parameter(torch.ones(10))
    optimizer = torch.optim.Adam([parameter])
    with profile(**FLAGS) as prof:
        parameter.sum().backward()
        optimizer.step()
    rows = raw(prof, tmp_path)
    state = [size for _, action, size, index in rows if action == 2 and index == 1]
    assert state.count(nbytes(parameter)) == 2


def test_the_name_says_which_kind_of_file(tmp_path: Path) -> None:
    prof = profiled(WORKLOADS["mlp"](torch), steps=1)
    for name in ("a.json", "a.json.gz", "a.raw.json", "a.txt", "a.raw.json.gz", "a.html"):
        prof.export_memory_timeline(str(tmp_path / name))
    text = (tmp_path / "a.json").read_text()
    assert gzip.decompress((tmp_path / "a.json.gz").read_bytes()).decode() == text
    assert (tmp_path / "a.raw.json").read_text() == text
    assert (tmp_path / "a.txt").read_text() == text
    assert text == json.dumps(json.loads(text))
    rows = json.loads(gzip.decompress((tmp_path / "a.raw.json.gz").read_bytes()))
    assert {len(row) for row in rows} == {4}
    assert [row[0] for row in rows] == sorted(row[0] for row in rows)
    page = (tmp_path / "a.html").read_text()
    assert page.startswith("<!doctype html>")
    assert 'class="chart"' in page


def test_the_peak_is_held_by_the_lines_that_took_it(tmp_path: Path) -> None:
    with profile(**FLAGS) as prof:
        large = torch.ones(1000, 100)
    assert large.numel() == 100_000
    prof.export_memory_timeline(str(tmp_path / "a.html"))
    _, rest = (tmp_path / "a.html").read_text().split(">Held at the peak</h")
    first = rest.split("<tbody>")[1].split("</tr>")[0]
    assert "aten::ones" in first
    assert "test_the_peak_is_held_by_the_lines_that_took_it" in first


def test_a_device_without_memory_has_no_points(tmp_path: Path) -> None:
    prof = profiled(WORKLOADS["mlp"](torch), steps=1)
    prof.export_memory_timeline(str(tmp_path / "a.json"), device="cuda:0")
    assert json.loads((tmp_path / "a.json").read_text()) == [[], []]
    with pytest.raises(RuntimeError, match="at start of device string: foo"):
        prof.export_memory_timeline(str(tmp_path / "b.json"), device="foo")
    with pytest.raises(RuntimeError, match="Invalid device string: 'cuda:x'"):
        prof.export_memory_timeline(str(tmp_path / "b.json"), device="cuda:x")
    assert not (tmp_path / "b.json").exists()


def test_before_the_end_there_is_no_timeline(tmp_path: Path) -> None:
    prof = profile(**FLAGS)
    expected = "Profiler and kineto_results must be initialized for memory profiling"
    with pytest.raises(AssertionError, match=expected):
        prof.export_memory_timeline(str(tmp_path / "a.json"))
    assert prof.mem_tl is None


def test_the_timeline_stays_with_the_profiler(tmp_path: Path) -> None:
    prof = profiled(WORKLOADS["mlp"](torch), steps=1)
    rows = raw(prof, tmp_path)
    assert prof.mem_tl is not None
    timeline = prof.mem_tl.timeline
    assert [row[:2] for row in rows if row[1] != 3] == [
        [time, action.value]
        for time, action, _, _ in timeline
        if action is not Action.INCREMENT_VERSION
    ]
    known = {prof.mem_tl.categories.get(*key) for _, _, key, _ in timeline}
    assert known >= {Category.PARAMETER, Category.INPUT, Category.GRADIENT, None}
    assert prof.mem_tl.categories.get(10**9, 0) is None


def test_each_call_warns(tmp_path: Path) -> None:
    prof = profiled(WORKLOADS["mlp"](torch), steps=1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(2):
            with pytest.warns(FutureWarning, match="`export_memory_timeline` is deprecated"):
                prof.export_memory_timeline(str(tmp_path / "a.json"))


def test_noting_never_makes_a_program_fail() -> None:
    class Odd(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return x

    module = Odd()
    module.__dict__["_parameters"] = None
    with profile(**FLAGS):
        _core.note_module(module)
        _core.note_optimizer(object())


@st.composite
def programs(draw: st.DrawFn) -> list[tuple[str, int, int]]:
    names = st.sampled_from(["add", "mul", "add_", "drop", "keep", "view", "sum"])
    places = st.integers(0, 9)
    return draw(st.lists(st.tuples(names, places, places), max_size=25))


@pytest.mark.runtime
@settings(max_examples=40, deadline=None)
@given(program=programs())
def test_any_program_ends_with_the_bytes_it_holds(program: list[tuple[str, int, int]]) -> None:
    tensors = [torch.ones(4) for _ in range(3)]
    prof = profile(**FLAGS)
    before = _core._live_bytes()
    prof.start()
    for name, first, second in program:
        if not tensors:
            tensors.append(torch.zeros(4))
        x, y = tensors[first % len(tensors)], tensors[second % len(tensors)]
        if name == "drop":
            del tensors[first % len(tensors)]
        elif name == "view":
            tensors.append(x.view(4))
        elif name == "sum":
            x.sum()
        elif name == "keep":
            tensors.append(torch.ones(4))
        else:
            tensors.append(getattr(x, name)(y))
        del x, y
    prof.stop()
    after = _core._live_bytes()
    recording = prof.profiler.kineto_results if prof.profiler else None
    assert recording is not None
    sizes = [0] * 8
    total = 0
    for _, action, _, _, size, category, behind in recording.memory_changes():
        if action == Action.DESTROY.value:
            sizes[category] -= size
            total -= size
        elif action == Action.INCREMENT_VERSION.value:
            sizes[category] -= size
            sizes[behind] += size
        else:
            sizes[category] += size
            total += size if action == Action.CREATE.value else 0
        assert min(sizes) >= 0
    assert total == after - before


@pytest.mark.parametrize("name", WORKLOADS)
def test_a_written_trace_gives_the_same_timeline(name: str, tmp_path: Path) -> None:
    prof = profiled(WORKLOADS[name](torch))
    prof.export_chrome_trace(str(tmp_path / "trace.json.gz"))
    live = prof.profiler.kineto_results if prof.profiler else None
    assert live is not None
    read = _core.Profile.read(tmp_path / "trace.json.gz")
    assert read.memory_changes() == live.memory_changes()
    for suffix in (".json", ".raw.json.gz", ".html"):
        live.write_memory_timeline(tmp_path / f"live{suffix}", "cpu")
        read.write_memory_timeline(tmp_path / f"read{suffix}", "cpu")
        files = [(tmp_path / f"{kind}{suffix}").read_bytes() for kind in ("live", "read")]
        assert files[0] == files[1], suffix


def test_tensors_that_only_lists_hold_have_their_sizes_in_a_trace(tmp_path: Path) -> None:
    before = [torch.ones(100), torch.ones(20, dtype=torch.int64), torch.ones(3, 0)]
    with profile(**FLAGS) as prof:
        joined = torch.cat(before[:1] * 2)
        torch.stack(before[1:2])
    assert joined.numel() == 200
    prof.export_chrome_trace(str(tmp_path / "trace.json"))
    changes = _core.Profile.read(tmp_path / "trace.json").memory_changes()
    sizes = [size for _, action, _, _, size, _, _ in changes if action == Action.PREEXISTING.value]
    assert sorted(sizes) == [160, 400]


def test_a_trace_file_gives_its_memory(tmp_path: Path) -> None:
    recording = _core.Profile.read(GOLDENS / "h200-torch2.11" / "gpt-full.trace.json.gz")
    assert recording.memory_devices() == ["cuda:0", "cpu"]
    recording.write_memory_timeline(tmp_path / "a.json", "cuda:0")
    times, sizes = json.loads((tmp_path / "a.json").read_text())
    assert len(times) > 600
    assert all(sum(row[:8]) == 0 for row in sizes), "a trace does not say what memory is for"


def test_blocks_without_addresses_are_told_apart_by_their_sizes(tmp_path: Path) -> None:
    # Traces of 2021 say how much was taken and given back, and not where.
    sizes = [100, -100, 100, 100, -100, -100, -50]
    events = [
        {"ph": "i", "name": "[memory]", "pid": 1, "tid": 1, "ts": 10 * number, "s": "t"}
        | {"args": {"Device Type": 0, "Device Id": -1, "Bytes": size}}
        for number, size in enumerate(sizes)
    ]
    (tmp_path / "old.json").write_text(json.dumps({"traceEvents": events}))
    recording = _core.Profile.read(tmp_path / "old.json")
    recording.write_memory_timeline(tmp_path / "memory.json", "cpu")
    _, rows = json.loads((tmp_path / "memory.json").read_text())
    assert max(map(sum, rows)) == 250
    assert sum(rows[-1]) == 0
