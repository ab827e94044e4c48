"""The event tree of a recording, compared with torch's on the same program."""

from __future__ import annotations

import gc
import re
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import mindprof
import pytest
import torch  # type: ignore[import-not-found]
from torch._C._profiler import (  # type: ignore[import-not-found]
    _EventType,
    _ExtraFields_Allocation,
    _ExtraFields_PyCall,
    _ExtraFields_PyCCall,
    _ExtraFields_TorchOp,
    _ProfilerEvent,
    _TensorMetadata,
)
from torch.cuda._memory_viz import profile_plot  # type: ignore[import-not-found]
from torch.profiler import _utils  # type: ignore[import-not-found]

CPU = [torch.profiler.ProfilerActivity.CPU]
MEMORY = {"record_shapes": True, "profile_memory": True}
ALL = {**MEMORY, "with_stack": True}


def recorded(profile: Any, make: Callable[[], Callable[[], Any]], **flags: bool) -> Any:
    """Records a program that `make` prepares."""
    step = make()
    gc.collect()
    with profile(activities=CPU, **flags) as prof:
        step()
    return prof


def both(make: Callable[[], Callable[[], Any]], **flags: bool) -> tuple[Any, Any]:
    """Records a program with torch's profiler and with ours."""
    recorded(torch.profiler.profile, make, **flags)
    profilers = torch.profiler.profile, mindprof.profile
    theirs, ours = (recorded(profile, make, **flags) for profile in profilers)
    return theirs, ours


def roots(prof: Any) -> list[Any]:
    found: list[Any] = prof.profiler.kineto_results.experimental_event_tree()
    return found


def nodes(prof: Any) -> Iterator[Any]:
    yield from _utils.traverse_dfs(roots(prof))


def node_named(prof: Any, name: str) -> Any:
    return next(node for node in nodes(prof) if node.name == name)


def drawn(prof: Any, of: Callable[[Any], Any] = lambda _: None) -> list[tuple[int, str, Any]]:
    """Returns the depth and the name of each node, and what `of` says of it."""
    lines: list[tuple[int, str, Any]] = []

    def draw(siblings: list[Any], depth: int) -> None:
        for node in siblings:
            lines.append((depth, node.name, of(node)))
            draw(node.children, depth + 1)

    draw(roots(prof), 0)
    return lines


def tensor(value: Any) -> Any:
    """Returns what both profilers must say of an input."""
    if isinstance(value, list):
        return [tensor(item) for item in value]
    if not isinstance(value, _TensorMetadata):
        return value
    facts = value.dtype, value.device, value.layout, value.dim, value.sizes, value.strides
    return (*facts, value.id, value.allocation_id, value.storage_data_ptr is None)


def fields(node: Any) -> Any:
    """Returns what both profilers must say of a node."""
    found = node.extra_fields
    if isinstance(found, _ExtraFields_TorchOp):
        inputs = [tensor(value) for value in found.inputs]
        return node.tag, found.name, found.scope, found.sequence_number < 0, inputs
    assert isinstance(found, _ExtraFields_Allocation)
    reserved = found.total_reserved
    return node.tag, found.id, found.allocation_id, found.alloc_size, found.device, reserved


def operators() -> Callable[[], Any]:
    torch.set_num_threads(1)
    x = torch.ones(4, 4, requires_grad=True)
    i = torch.zeros(1, dtype=torch.int64)
    empty, meta = torch.empty(0), torch.empty(2, 2, device="meta")

    def step() -> None:
        torch.sum(x, [0, 1], True)
        torch.full([1], 3 + 4j, dtype=torch.complex64)
        torch.stack((x, x.t())).reshape([4, 8])
        torch.add(x, 2.5, alpha=3)
        torch.ops.aten.index(x, [i])
        empty + empty
        meta + meta
        with torch.profiler.record_function("range"):
            (x * 2).sum().backward()
        y = torch.rand(3)
        y.resize_(40)
        y.sin()
        y.set_(torch.rand(5).untyped_storage(), 0, (5,), (1,))
        y.cos()

    return step


def training() -> Callable[[], Any]:
    torch.manual_seed(0)
    torch.set_num_threads(1)
    layers = torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2)
    net = torch.nn.Sequential(*layers)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)

    def step() -> None:
        for _ in range(2):
            optimizer.zero_grad()
            net(torch.ones(3, 4)).sum().backward()
            optimizer.step()

    return step


@pytest.mark.parametrize("make", [operators, training])
def test_the_tree_is_torchs(make: Callable[[], Callable[[], Any]]) -> None:
    theirs, ours = both(make, **MEMORY)
    assert drawn(ours, fields) == drawn(theirs, fields)


def test_nodes_are_instances_of_torchs_classes() -> None:
    prof = recorded(mindprof.profile, training, **ALL)
    kinds = {
        _EventType.TorchOp: _ExtraFields_TorchOp,
        _EventType.Allocation: _ExtraFields_Allocation,
        _EventType.PyCall: _ExtraFields_PyCall,
        _EventType.PyCCall: _ExtraFields_PyCCall,
    }
    seen = set()
    for node in nodes(prof):
        assert isinstance(node, _ProfilerEvent)
        assert isinstance(node.extra_fields, kinds[node.tag])
        assert node.typed == (node.tag, node.extra_fields)
        seen.add(node.tag)
    assert seen == set(kinds)


def test_nodes_know_their_family_and_times() -> None:
    prof = recorded(mindprof.profile, training, **ALL)
    start = prof.profiler.kineto_results.trace_start_ns()
    for node in nodes(prof):
        assert node.start_time_ns >= start
        assert node.duration_time_ns == node.end_time_ns - node.start_time_ns >= 0
        for child in node.children:
            assert child.parent is node
            assert child.start_tid == node.start_tid
            assert child.start_time_ns >= node.start_time_ns
    assert {root.parent for root in roots(prof)} == {None}
    assert node_named(prof, "aten::addmm").correlation_id > 0
    assert node_named(prof, "[memory]").correlation_id == 0


def test_python_calls_are_nested_as_in_torch() -> None:
    def inside(prof: Any) -> list[tuple[int, str]]:
        lines = drawn(prof)
        begin = next(i for i, (_, name, _) in enumerate(lines) if name.endswith(": step"))
        depth = lines[begin][0]
        end = next(
            (i for i, line in enumerate(lines) if i > begin and line[0] <= depth), len(lines)
        )
        # A resumed generator has the line where it continues, in some versions of torch.
        names = (re.sub(r"\([0-9]+\)| at 0x.*", "", name) for _, name, _ in lines[begin:end])
        depths = (line[0] - depth for line in lines[begin:end])
        return list(zip(depths, names, strict=True))

    theirs, ours = both(training, with_stack=True)
    assert inside(ours) == inside(theirs)


def test_callers_are_the_functions_around() -> None:
    prof = recorded(mindprof.profile, training, **ALL)
    calls = 0
    for node in nodes(prof):
        if not isinstance(node.extra_fields, _ExtraFields_PyCall | _ExtraFields_PyCCall):
            continue
        around = node.parent
        while around is not None and not isinstance(around.extra_fields, _ExtraFields_PyCall):
            around = around.parent
        if around is not None:
            calls += 1
            caller, callsite = node.extra_fields.caller, around.extra_fields.callsite
            found = caller.file_name, caller.function_name
            assert found == (callsite.file_name, callsite.function_name)
    assert calls > 100


def held(prof: Any) -> dict[str, Any]:
    """Returns the modules and the optimizers of a recording, without addresses."""
    found: dict[str, Any] = {}
    for node in nodes(prof):
        if not isinstance(node.extra_fields, _ExtraFields_PyCall):
            continue
        module, optimizer = node.extra_fields.module, node.extra_fields.optimizer
        if module is not None:
            names = [(name, p.sizes, g and g.sizes) for name, p, g in module.parameters]
            found.setdefault(node.name, (module.cls_name, names))
        if optimizer is not None:
            parameters = [
                (p.sizes, g and g.sizes, [(name, kept.dtype) for name, kept in state])
                for p, g, state in optimizer.parameters
            ]
            found.setdefault("optimizer", parameters)
    return found


def test_modules_and_optimizers_hold_what_they_hold_in_torch() -> None:
    theirs, ours = both(training, **ALL)
    assert held(ours) == held(theirs)
    assert {"nn.Module: Sequential_0", "nn.Module: Linear_1", "optimizer"} <= held(ours).keys()


def test_modules_are_identified_by_address() -> None:
    net = torch.nn.Linear(2, 2)
    first, second = (torch.optim.SGD(net.parameters(), lr=0.1) for _ in range(2))

    def step() -> None:
        net(torch.ones(1, 2)).sum().backward()
        second.step()
        first.step()

    prof = recorded(mindprof.profile, lambda: step, **ALL)
    module = node_named(prof, "nn.Module: Linear_0").extra_fields.module
    assert (module.self_ptr, module.cls_ptr) == (id(net), id(torch.nn.Linear))
    (_, weight, gradient), _ = module.parameters
    assert (weight.storage_data_ptr, gradient) == (net.weight.data_ptr(), None)
    assert weight.impl_ptr == net.weight._cdata
    steps = [node for node in nodes(prof) if node.name.endswith(": _optimizer_step_code")]
    addresses = [node.extra_fields.optimizer.self_ptr for node in steps]
    assert addresses == [id(second), id(first)]


def categories(prof: Any) -> Counter[tuple[str, int, str | None]]:
    """Returns how often what happened to blocks of which size that were for what."""
    memory = prof._memory_profile()
    found: Counter[tuple[str, int, str | None]] = Counter()
    for _, action, (key, version), size in memory.timeline:
        category = memory._categories.get(key, version)
        found[action.name, size, category and category.name] += 1
    return found


@pytest.mark.parametrize("make", [operators, training])
def test_torchs_memory_profile_says_the_same(make: Callable[[], Callable[[], Any]]) -> None:
    theirs, ours = both(make, **ALL)
    assert categories(ours) == categories(theirs)


def test_torch_plots_the_memory() -> None:
    prof = recorded(mindprof.profile, training, **ALL)
    assert "Active Memory Timeline" in profile_plot(prof)


def test_torchs_own_export_of_the_timeline_works(tmp_path: Any) -> None:
    from torch.profiler._memory_profiler import (  # type: ignore[import-not-found]
        MemoryProfileTimeline,
    )

    prof = recorded(mindprof.profile, training, **ALL)
    path = tmp_path / "timeline.json"
    MemoryProfileTimeline(prof._memory_profile()).export_memory_timeline(str(path), "cpu")
    assert path.stat().st_size > 100


def test_a_freed_tensor_and_its_successor_are_two_tensors() -> None:
    def step() -> None:
        for _ in range(100):
            torch.ones(1)

    prof = recorded(mindprof.profile, lambda: step, **MEMORY)
    filled = [node.extra_fields.inputs[0] for node in nodes(prof) if node.name == "aten::fill_"]
    assert len(filled) == len({tensor.id for tensor in filled}) == 100


def test_every_thread_has_its_own_tree() -> None:
    def step() -> None:
        worker = threading.Thread(target=lambda: torch.ones(3).neg())
        worker.start()
        worker.join()
        torch.ones(3).sin()

    prof = recorded(mindprof.profile, lambda: step, **MEMORY)
    neg, sin = (node_named(prof, name) for name in ("aten::neg", "aten::sin"))
    assert neg.parent is None
    assert neg.start_tid != sin.start_tid


def test_unrecorded_facts_raise_instead_of_being_wrong() -> None:
    shapes = recorded(mindprof.profile, training, record_shapes=True)
    tensor = node_named(shapes, "aten::addmm").extra_fields.inputs[0]
    assert tensor.sizes == [8]
    for name in ("id", "allocation_id", "impl_ptr", "storage_data_ptr", "device", "layout"):
        with pytest.raises(RuntimeError, match="record with record_shapes=True"):
            getattr(tensor, name)
    stacks = recorded(mindprof.profile, training, with_stack=True)
    module = node_named(stacks, "nn.Module: Linear_0").extra_fields.module
    assert module.cls_name == "Linear"
    with pytest.raises(RuntimeError, match="profile_memory=True"):
        module.parameters  # noqa: B018
    with pytest.raises(RuntimeError, match="allow_tf32_cublas is not recorded"):
        node_named(stacks, "aten::addmm").extra_fields.allow_tf32_cublas  # noqa: B018
