"""Calls of modules in a profile: their names, their depth and their time."""

from __future__ import annotations

import gc
import json
import weakref
from pathlib import Path
from typing import Any

import mindtorch_v2 as torch
import pytest
from mindtorch_v2 import nn
from mindtorch_v2.profiler import profile


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(4, 4)

    def forward(self, x: Any) -> Any:
        return self.inner(x) + x


def model() -> nn.Module:
    return nn.Sequential(nn.Linear(4, 4), nn.ReLU(), Block(), nn.Linear(4, 4))


def modules(prof: profile) -> list[Any]:
    return [event for event in prof.events() if event.name.startswith("nn.Module: ")]


def names(prof: profile) -> list[str]:
    return [event.name.removeprefix("nn.Module: ") for event in modules(prof)]


ONE_CALL = ["Sequential_0", "Linear_0", "ReLU_0", "Block_0", "Linear_1", "Linear_2"]


def test_modules_are_counted_by_class_in_the_order_of_first_calls() -> None:
    net, x = model(), torch.ones((2, 4))
    with profile(with_stack=True) as prof:
        net(x)
        net(x)
    assert names(prof) == ONE_CALL * 2
    numbers = [event.python_module_id for event in modules(prof)]
    assert numbers == [0, 0, 0, 0, 1, 2] * 2


def test_each_recording_counts_anew() -> None:
    x = torch.ones((2, 4))
    for _ in range(2):
        with profile(with_stack=True) as prof:
            nn.Linear(4, 4)(x)
        assert names(prof) == ["Linear_0"]


def test_operators_know_their_modules() -> None:
    net, x = model(), torch.ones((2, 4))
    with profile(with_stack=True) as prof:
        net(x)
    hierarchies = [
        [frame.removeprefix("nn.Module: ") for frame in event.stack if frame.startswith("nn.Mod")]
        for event in prof.events()
        if event.name == "aten::linear"
    ]
    assert hierarchies == [
        ["Linear_0", "Sequential_0"],
        ["Linear_1", "Block_0", "Sequential_0"],
        ["Linear_2", "Sequential_0"],
    ]


def test_rows_of_modules_have_their_time() -> None:
    net, x = model(), torch.ones((2, 4))
    with profile(with_stack=True) as prof:
        net(x)
        net(x)
    rows = {row.key: row for row in prof.key_averages(include_python_functions=True)}
    whole, block = rows["nn.Module: Sequential_0"], rows["nn.Module: Block_0"]
    assert (whole.count, block.count) == (2, 2)
    assert whole.cpu_time_total >= block.cpu_time_total > 0
    assert block.cpu_time_total >= rows["nn.Module: Linear_1"].cpu_time_total


def test_a_module_that_dies_leaves_its_address_but_not_its_name() -> None:
    x = torch.ones((2, 4))
    references = []
    with profile(with_stack=True) as prof:
        for _ in range(5):
            layer = nn.Linear(4, 4)
            references.append(weakref.ref(layer))
            layer(x)
            del layer
            gc.collect()
    assert names(prof) == [f"Linear_{n}" for n in range(5)]
    assert [reference() for reference in references] == [None] * 5


def test_a_class_without_weak_references() -> None:
    class Bare(nn.Module):
        def forward(self, x: Any) -> Any:
            return x

    layer, x = Bare(), torch.ones((2, 4))
    with profile(with_stack=True) as prof:
        layer(x)
        layer(x)
    assert names(prof) == ["Bare_0", "Bare_0"]


@pytest.mark.filterwarnings("ignore:with_modules is deprecated")
class TestModulesAlone:
    def test_modules_are_recorded_and_nothing_else_of_python(self) -> None:
        net, x = model(), torch.ones((2, 4))
        with profile(with_modules=True) as prof:
            net(x)
        assert names(prof) == ONE_CALL
        calls = [event for event in prof.events() if event.is_python_function]
        assert len(calls) == len(ONE_CALL)
        assert all(event.stack == [] for event in prof.events())

    def test_operators_lie_in_their_modules(self) -> None:
        net, x = model(), torch.ones((2, 4))
        with profile(with_modules=True) as prof:
            net(x)
        parents = [e.cpu_parent.name for e in prof.events() if e.name == "aten::linear"]
        assert parents == [f"nn.Module: Linear_{n}" for n in range(3)]
        block = next(event for event in modules(prof) if event.name.endswith("Block_0"))
        assert block.cpu_parent.name == "nn.Module: Sequential_0"

    def test_averages_are_as_without(self) -> None:
        net, x = model(), torch.ones((2, 4))
        with profile(with_modules=True) as prof:
            net(x)
        assert not any(row.key.startswith("nn.") for row in prof.key_averages())

    def test_beside_a_profiler_with_stacks(self) -> None:
        net, x = model(), torch.ones((2, 4))
        with profile(with_modules=True) as outer:
            net(x)
            with profile(with_stack=True) as inner:
                net(x)
            net(x)
        assert names(inner) == ONE_CALL
        assert names(outer) == ONE_CALL * 3
        assert all(event.stack == [] for event in outer.events())

    def test_a_module_that_raises(self) -> None:
        class Broken(nn.Module):
            def forward(self, _x: Any) -> Any:
                raise ValueError("broken")

        net, x = nn.Sequential(Broken()), torch.ones((2, 4))
        with profile(with_modules=True) as prof:
            for _ in range(2):
                with pytest.raises(ValueError, match="broken"):
                    net(x)
        assert names(prof) == ["Sequential_0", "Broken_0"] * 2

    def test_the_trace_has_the_number_of_the_module(self, tmp_path: Path) -> None:
        net, x = model(), torch.ones((2, 4))
        with profile(with_modules=True) as prof:
            net(x)
        path = tmp_path / "trace.json"
        prof.export_chrome_trace(path)
        events = json.loads(path.read_text())["traceEvents"]
        numbers = {
            event["name"].removeprefix("nn.Module: "): event["args"]["Python module id"]
            for event in events
            if event.get("cat") == "python_function"
        }
        assert numbers == dict(zip(ONE_CALL, [0, 0, 0, 0, 1, 2], strict=True))
