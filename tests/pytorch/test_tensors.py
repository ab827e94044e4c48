"""Tensors of every kind that a real torch gives operators are told as torch.profiler does."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import mindprof
import pytest
import torch  # type: ignore[import-not-found]
import torch.fx.experimental.proxy_tensor  # type: ignore[import-not-found]

from tests.pytorch.test_same_run import record_twice

# What the work below makes tensors with is not compared.
NAMES = ("aten::neg", "aten::relu", "aten::cat", "aten::logical_not")
KEYS = ("Input Dims", "Input Strides", "Input type")


class Wrapper(torch.Tensor):  # type: ignore[misc]
    """A tensor whose sizes and strides are what Python says."""

    sizes, steps = (4, 5), (5, 1)

    def __new__(cls, policy: str | None) -> Any:
        return torch.Tensor._make_wrapper_subclass(
            cls, (2, 3), (3, 1), dispatch_sizes_strides_policy=policy
        )

    @classmethod
    def __torch_dispatch__(
        cls, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        aten = torch.ops.aten
        if function in (aten.sym_size.default, aten.size.default):
            return cls.sizes
        if function in (aten.sym_stride.default, aten.stride.default):
            return cls.steps
        if function is aten.is_contiguous.default:
            return True
        return torch.ones(1) if function is aten.neg.default else NotImplemented


def strided() -> None:
    x = torch.ones(2, 3, 4, 5)
    for tensor in (
        torch.tensor(1.5),
        torch.ones(0),
        torch.ones(6)[6:],
        torch.ones(1, 2, 1, 2, 1, 2),
        torch.ones([1] * 30),
        x.to(memory_format=torch.channels_last),
        x.transpose(1, 2)[1:, ::2],
        x[:, :1].expand(2, 7, 4, 5),
        torch.ones(3, dtype=torch.bfloat16),
        torch.ones(3, dtype=torch.complex64),
        torch.ones(3, dtype=torch.int8),
        torch.nn.Parameter(torch.ones(2)),
        torch._lazy_clone(torch.ones(4)),
        torch.empty(3, 2, device="meta"),
        Wrapper(None),
    ):
        torch.neg(tensor)
    torch.logical_not(torch.ones(2, dtype=torch.bool))
    torch.cat([torch.ones(1, 2), torch.ones(0, 2), torch.ones(3, 2).t().t()])


def without_strides() -> None:
    torch.neg(torch.eye(3).to_sparse())
    torch.neg(torch.eye(3).to_sparse_csr())
    torch.relu(torch.ones(2, 3).to_mkldnn())


def told(recording: Any, path: Path) -> list[tuple[str, Any]]:
    recording.export_chrome_trace(str(path))
    events = json.loads(path.read_text())["traceEvents"]
    operators = [event for event in events if event.get("name") in NAMES]
    operators.sort(key=lambda event: (event["ts"], -event["dur"]))
    return [(event["name"], [event["args"].get(key) for key in KEYS]) for event in operators]


@pytest.mark.filterwarnings("ignore:Sparse CSR")
@pytest.mark.parametrize("memory", [False, True])
@pytest.mark.parametrize("work", [strided, without_strides])
def test_tensors_are_those_of_torch(work: Any, memory: bool, tmp_path: Path) -> None:
    theirs, ours = record_twice(work, record_shapes=True, profile_memory=memory)
    found = told(ours, tmp_path / "ours.json")
    assert found == told(theirs, tmp_path / "theirs.json")
    assert found


def test_tensors_that_python_stands_behind_are_not_asked(tmp_path: Path) -> None:
    """torch tells the inputs of later operators for these, also where it collects for us."""
    activities = [mindprof.ProfilerActivity.CPU]
    with mindprof.profile(
        activities=activities, record_shapes=True, profile_memory=True
    ) as recording:
        torch.neg(Wrapper("strides"))
        torch.vmap(torch.neg)(torch.ones(2, 3))
        torch.neg(torch.ones(7))
    found = [dims for _, (dims, _, _) in told(recording, tmp_path / "ours.json")]
    assert found[0] == [[]]
    assert found[-1] == [[7]]


def test_symbols_within_transforms_stay_symbols() -> None:
    """A graph that was traced for one size is right for another."""
    make_fx = torch.fx.experimental.proxy_tensor.make_fx
    work = torch.func.grad(lambda x: x.mean())
    with mindprof.profile(record_shapes=True, profile_memory=True):
        graph = make_fx(work, tracing_mode="symbolic")(torch.ones(5, 2))
    assert graph(torch.ones(7, 2)).shape == (7, 2)


@pytest.mark.parametrize("dynamic", [None, True])
def test_symbols_of_traced_graphs_stay_symbols(dynamic: bool | None) -> None:
    def graphs() -> int:
        count = 0

        def compiled(graph: Any, _: Any) -> Any:
            nonlocal count
            count += 1
            return graph.forward

        torch._dynamo.reset()
        work = torch.compile(lambda x: x.sin().sum(), backend=compiled, dynamic=dynamic)
        for size in (3, 4, 5, 6):
            work(torch.ones(size, 7))
        return count

    expected = graphs()
    with mindprof.profile(record_shapes=True, profile_memory=True):
        assert graphs() == expected


def test_a_lazy_copy_stays_one() -> None:
    """Where its bytes lie is looked up without having torch copy them."""
    copy = torch._lazy_clone(torch.ones(4))
    with mindprof.profile(record_shapes=True, profile_memory=True):
        torch.neg(copy)
    assert torch._C._is_cow_tensor(copy)


def functional(x: torch.Tensor) -> torch.Tensor:
    y = x.clone()
    y.add_(1)
    z = y.view(-1)
    z.mul_(2)
    return torch.cat([y, y]) @ y.t()


@pytest.mark.parametrize("remove", ["mutations", "mutations_and_views"])
def test_shapes_of_functionalized_operators_are_torchs(remove: str) -> None:
    x = torch.ones(3, 4)
    run = torch.func.functionalize(functional, remove=remove)
    nested = torch.func.functionalize(torch.func.vmap(functional), remove=remove)
    run(x)
    found = []
    for profiler in (torch.profiler.profile, mindprof.profile):
        activities = [torch.profiler.ProfilerActivity.CPU]
        with profiler(activities=activities, record_shapes=True) as prof:
            run(x)
            nested(torch.ones(2, 3, 4))
        found.append([(event.name, event.input_shapes) for event in prof.events()])
    assert ("aten::add_", [[3, 4], [], []]) in found[0]
    assert found[1] == found[0]
