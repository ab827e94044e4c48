"""The arguments of torch's profilers: ours accept each one, and docs/compat.md tells its effect.

A torch that adds an argument fails these tests, and the failure lists what is new.
"""

from __future__ import annotations

import inspect
import json
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import mindprof
import pytest
import torch  # type: ignore[import-not-found]
from mindprof import profiler_util
from mindprof._profiler import autograd_profile, kineto_profile
from mindprof._settings.profiler_config import _ExperimentalConfig
from mindprof.profiler import KinetoStepTracker
from torch.autograd import profiler as older  # type: ignore[import-not-found]
from torch.autograd import profiler_util as util

COMPAT = Path(__file__).parents[2] / "docs" / "compat.md"

#: torch's classes and functions, and ours. A name that a torch lacks is not compared.
PAIRS: dict[str, tuple[Any, Any]] = {
    "torch.profiler.profile": (torch.profiler, mindprof.profile),
    "torch.profiler._KinetoProfile": (torch.profiler, kineto_profile._KinetoProfile),
    "torch.profiler.schedule": (torch.profiler, mindprof.schedule),
    "torch.profiler.supported_activities": (torch.profiler, mindprof.supported_activities),
    "torch.profiler.tensorboard_trace_handler": (
        torch.profiler,
        mindprof.tensorboard_trace_handler,
    ),
    "torch.profiler.ExecutionTraceObserver": (torch.profiler, mindprof.ExecutionTraceObserver),
    "torch.profiler.ProfilerActivityConfig": (torch.profiler, mindprof.ProfilerActivityConfig),
    "torch.profiler.PerformanceMetricsConfig": (torch.profiler, mindprof.PerformanceMetricsConfig),
    "torch.profiler.CuspyConfig": (torch.profiler, mindprof.CuspyConfig),
    "torch.autograd.profiler.profile": (older, autograd_profile.profile),
    "torch.autograd.profiler.record_function": (older, mindprof.record_function),
    "torch.autograd.profiler.KinetoStepTracker": (older, KinetoStepTracker),
    "torch.autograd.profiler_util.EventList": (util, mindprof.EventList),
    "torch.autograd.profiler_util.FunctionEvent": (util, mindprof.FunctionEvent),
    "torch.autograd.profiler_util.FunctionEventAvg": (util, mindprof.FunctionEventAvg),
    "torch.autograd.profiler_util.Interval": (util, profiler_util.Interval),
    "torch.autograd.profiler_util.Kernel": (util, profiler_util.Kernel),
}


#: Arguments of older torches that torch 2.15 removed, and that ours refuse as it does.
REMOVED = {"use_cuda", "metadata_json", "profiler_metrics", "profiler_measure_per_kernel"}


def functions(name: str, torchs: Any, ours: Any) -> Iterator[tuple[str, Any, Any]]:
    """Yields a function, or the constructor and the public methods of a class, of both sides."""
    yield name, torchs, ours
    if inspect.isclass(torchs):
        for method, value in vars(torchs).items():
            if inspect.isroutine(getattr(torchs, method)) and not method.startswith("_"):
                yield f"{name}.{method}", value, getattr(ours, method, None)


def compared() -> Iterator[tuple[str, Any, Any]]:
    for name, (module, ours) in PAIRS.items():
        torchs = getattr(module, name.rpartition(".")[2], None)
        if torchs is not None:
            yield from functions(name, torchs, ours)


def parameters(function: Any) -> dict[str, inspect.Parameter]:
    function = getattr(function, "__func__", function)
    return dict(inspect.signature(function).parameters)


def is_accepted(parameter: inspect.Parameter, ours: dict[str, inspect.Parameter]) -> bool:
    if parameter.kind in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL):
        return True
    return parameter.name in ours or any(p.kind is p.VAR_KEYWORD for p in ours.values())


def test_ours_accept_every_argument_of_this_torch() -> None:
    missing = []
    for name, torchs, ours in compared():
        if ours is None:
            missing.append(f"{name}()")
            continue
        own = parameters(ours)
        ignored = {"self", "cls", *REMOVED}
        wanted = [p for p in parameters(torchs).values() if p.name not in ignored]
        missing += [f"{name}({p})" for p in wanted if not is_accepted(p, own)]
    assert not missing, f"torch {torch.__version__} has what mindprof does not accept: {missing}"


def options_of_torch() -> set[str]:
    """Returns the options of torch's native `_ExperimentalConfig`, which has no signature."""
    text = torch._C._profiler._ExperimentalConfig.__init__.__doc__ or ""
    return set(re.findall(r"(\w+): [\w.\[\]]+ = ", text))


def test_ours_accept_every_experimental_option_of_this_torch() -> None:
    own = set(inspect.signature(_ExperimentalConfig).parameters)
    missing = options_of_torch() - own - REMOVED
    assert options_of_torch(), "the docstring of torch's class has changed"
    assert not missing, f"torch {torch.__version__} has what mindprof does not accept: {missing}"


def test_the_documentation_tells_the_effect_of_every_argument() -> None:
    section = COMPAT.read_text().split("\n## Arguments\n")[1].split("\n## ")[0]
    first_cells = [row.split("|")[1] for row in section.splitlines() if row.startswith("| `")]
    documented = {name for cell in first_cells for name in re.findall(r"`(\w+)`", cell)}
    of_profilers = [
        function
        for name, _, function in compared()
        if function is not None
        and name.startswith(("torch.profiler.profile", "torch.autograd.profiler.profile"))
    ]
    wanted = {name for function in of_profilers for name in parameters(function)}
    wanted |= set(inspect.signature(_ExperimentalConfig).parameters) | options_of_torch()
    wanted -= {"self", *REMOVED}
    assert not wanted - documented, f"not in docs/compat.md: {sorted(wanted - documented)}"


@pytest.mark.parametrize("value", [None, {}, {1: "name"}])
def test_arguments_of_an_export_without_effect_change_nothing(value: Any, tmp_path: Path) -> None:
    with mindprof.profile() as prof:
        torch.ones(2)
    path = tmp_path / "trace.json"
    prof.export_chrome_trace(path)
    plain = path.read_text()
    prof.export_chrome_trace(
        path,
        use_python_export=True,
        cuda_graph_annotations=value,
        graph_lanes="all" if value else "none",
        default_stream=3,
    )
    assert path.read_text() == plain


def test_lanes_need_annotations() -> None:
    with mindprof.profile() as prof:
        torch.ones(2)
    with pytest.raises(ValueError, match="graph_lanes='all' needs cuda_graph_annotations"):
        prof.export_chrome_trace(os.devnull, graph_lanes="all")
    with pytest.raises(ValueError, match="graph_lanes must be"):
        prof.export_chrome_trace(os.devnull, graph_lanes="some")


def test_activities_may_be_dictionaries_of_torchs_classes(tmp_path: Path) -> None:
    config = getattr(torch.profiler, "ProfilerActivityConfig", None)
    cpu = torch.profiler.ProfilerActivity.CPU
    wanted = ["USER_ANNOTATION"]
    for value in [wanted] if config is None else [wanted, config(activity_types=wanted)]:
        with (
            mindprof.profile(activities=[{cpu: value}]) as prof,
            torch.profiler.record_function("mine"),
        ):
            torch.ones(2)
        path = tmp_path / "trace.json"
        prof.export_chrome_trace(path)
        found = {event.get("cat") for event in json.loads(path.read_text())["traceEvents"]}
        assert "user_annotation" in found
        assert "cpu_op" not in found


def overloaded(prof: Any) -> Counter[tuple[str, str]]:
    names = ("aten::add", "aten::mul", "aten::neg")
    return Counter((e.name, e.overload_name) for e in prof.events() if e.name in names)


def workload(x: torch.Tensor) -> None:
    x + x
    torch.ops.aten.add.out(x, x, out=torch.empty(2))
    x * x
    x.neg()


def test_overloads_are_told_where_torch_tells_them(tmp_path: Path) -> None:
    x = torch.ones(2)
    config = torch._C._profiler._ExperimentalConfig(capture_overload_names=True)
    cpu = [torch.profiler.ProfilerActivity.CPU]
    profilers = (torch.profiler.profile, mindprof.profile)
    results = []
    for profiler in profilers:
        with profiler(activities=cpu, experimental_config=config) as prof:
            workload(x)
        by_overload = prof.key_averages(group_by_overload_name=True)
        rows = {(row.key, row.overload_name, row.count) for row in by_overload}
        plain = {(row.key, row.overload_name, row.count) for row in prof.key_averages()}
        results.append((overloaded(prof), rows, plain, "Overload Name" in by_overload.table()))
    torchs, ours = results
    assert torchs[0] == {
        ("aten::add", "Tensor"): 1,
        ("aten::add", "out"): 1,
        ("aten::mul", "Tensor"): 1,
        ("aten::neg", ""): 1,
    }
    assert ours == torchs
    path = tmp_path / "trace.json"
    prof.export_chrome_trace(path)
    found = {event["name"] for event in json.loads(path.read_text())["traceEvents"]}
    assert {"aten::add.Tensor", "aten::add.out", "aten::neg"} <= found


def test_overloads_are_not_told_unasked(tmp_path: Path) -> None:
    asked = mindprof.ExperimentalConfig(capture_overload_names=True)
    with mindprof.profile() as prof, mindprof.profile(experimental_config=asked) as other:
        workload(torch.ones(2))
    assert {overload for _, overload in overloaded(prof)} == {""}
    assert {overload for _, overload in overloaded(other)} == {"Tensor", "out", ""}
    keys = {row.key: row.count for row in prof.key_averages(group_by_overload_name=True)}
    assert keys["aten::add"] == 2
    path = tmp_path / "trace.json"
    prof.export_chrome_trace(path)
    assert "aten::add.Tensor" not in path.read_text()


class Inner(torch.nn.Module):  # type: ignore[misc]
    def scaled(self, x: torch.Tensor) -> torch.Tensor:
        return x * 3

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.scaled(x) + 1


class Outer(torch.nn.Module):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self.inner = Inner()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.inner(x).neg()


def hierarchies(profile: Any, run: Any, path: Path, **options: Any) -> list[tuple[str, str | None]]:
    with profile(activities=[torch.profiler.ProfilerActivity.CPU], **options) as prof:
        run()
    prof.export_chrome_trace(str(path))
    events = json.loads(path.read_text())["traceEvents"]
    events = [event for event in events if event.get("cat") in ("cpu_op", "user_annotation")]
    return [(event["name"], event["args"].get("Module Hierarchy")) for event in events]


@pytest.mark.parametrize("with_stack", [False, True])
@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning")
def test_operators_of_torchscript_have_their_modules(tmp_path: Path, with_stack: bool) -> None:
    model = torch.jit.script(Outer())
    x = torch.ones(2, requires_grad=True)

    def run() -> None:
        model(x)
        x + x

    for _ in range(3):
        run()
    options = {"with_modules": True, "with_stack": with_stack}
    theirs, ours = (
        Counter(hierarchies(profile, run, tmp_path / "trace.json", **options))
        for profile in (torch.profiler.profile, mindprof.profile)
    )
    assert ours == theirs
    texts = {text for _, text in ours}
    assert None in texts
    assert any("inner(Inner)::forward." in text for text in texts if text)
    # torch shifts the modules of everything behind a backward node.
    backward = hierarchies(
        mindprof.profile, lambda: model(x).sum().backward(), tmp_path / "trace.json", **options
    )
    nodes = [text for name, text in backward if name.endswith("DifferentiableGraphBackward")]
    assert nodes == [None, None]
    assert [text for name, text in backward if name == "<backward op>"] == ["TOP()::<backward op>."]
    unasked = hierarchies(mindprof.profile, run, tmp_path / "trace.json", with_stack=with_stack)
    assert {text for _, text in unasked} == {None}


def test_the_total_of_the_inner_profiler_has_python_calls() -> None:
    x = torch.ones(2)
    with mindprof.profile(with_stack=True) as prof:
        workload(x)
    inner = prof.profiler
    assert inner is not None
    assert inner.total_average().count == len(prof.events()) == prof.events().total_average().count
    assert inner.self_cpu_time_total == prof.events().self_cpu_time_total
    assert any(event.is_python_function for event in prof.events())


DAEMON = """
import sys, torch
if sys.argv[1] == "ours":
    import mindprof
    mindprof.install()
tracker = torch.autograd.profiler.KinetoStepTracker
model = torch.nn.Linear(2, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
plan = torch.profiler.schedule(wait=1, warmup=1, active=1, repeat=1)
counts = []
with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], schedule=plan) as p:
    for step in range(3):
        model(torch.ones(1, 2)).sum().backward()
        optimizer.step()
        p.step()
        counts.append((tracker.current_step(), sorted(tracker._step_dict.items())))
print(counts, sorted(tracker._step_dict.items()))
"""


def test_steps_are_counted_for_kinetos_daemon() -> None:
    # Without a daemon, torch tells on stderr that it did not reach one.
    environment = {**os.environ, "KINETO_USE_DAEMON": "1"}
    told = [
        subprocess.run(
            [sys.executable, "-c", DAEMON, whose],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        ).stdout.splitlines()[-1]
        for whose in ("ours", "torch's")
    ]
    assert told[0] == told[1]
    assert "('ProfilerStep', 3)" in told[0]
