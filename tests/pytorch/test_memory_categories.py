"""What the memory of a real torch is for: concluded as torch's own memory profiler does."""

from __future__ import annotations

import gc
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mindprof
import pytest
import torch  # type: ignore[import-not-found]
from mindprof._results.memory_timeline import MemoryProfileTimeline
from torch.optim import optimizer  # type: ignore[import-not-found]

from tests.pytorch.workloads import workload

FLAGS: dict[str, Any] = {"record_shapes": True, "profile_memory": True, "with_stack": True}
CPU = [torch.profiler.ProfilerActivity.CPU]

OPTIMIZERS: dict[str, Callable[[Any], Any]] = {
    "adam": torch.optim.Adam,
    "adam, many at a time": lambda parameters: torch.optim.Adam(parameters, foreach=True),
    "adam, the greatest kept": lambda parameters: torch.optim.Adam(parameters, amsgrad=True),
    "adamax": torch.optim.Adamax,
    "momentum": lambda parameters: torch.optim.SGD(parameters, lr=0.1, momentum=0.9),
    "sgd": lambda parameters: torch.optim.SGD(parameters, lr=0.1),
}


def model() -> Any:
    layers = torch.nn.Linear(16, 32), torch.nn.ReLU(), torch.nn.Linear(32, 4)
    return torch.nn.Sequential(*layers)


def training(make_optimizer: Callable[[Any], Any]) -> Callable[[], None]:
    torch.manual_seed(0)
    torch.set_num_threads(1)
    net = model()
    trained = make_optimizer(net.parameters())
    x, y = torch.randn(8, 16), torch.randn(8, 4)

    def step() -> None:
        trained.zero_grad()
        torch.nn.functional.mse_loss(net(x), y).backward()
        trained.step()

    return step


def recorded(profile: Any, step: Callable[[], Any], **flags: bool) -> Any:
    with profile(activities=CPU, **{**FLAGS, **flags}) as prof:
        step()
    return prof


def changes(prof: Any) -> Counter[tuple[str, int, str | None]]:
    """Returns how often what happened to blocks of which size that were for what."""
    if isinstance(prof, mindprof.profile):
        timeline = MemoryProfileTimeline(prof._recording_with_memory())
        rows, categories = timeline.timeline, timeline.categories
    else:
        memory = prof._memory_profile()
        rows, categories = memory.timeline, memory._categories
    found: Counter[tuple[str, int, str | None]] = Counter()
    for _, action, (key, version), size in rows:
        category = categories.get(key, version)
        found[action.name, size, category and category.name] += 1
    return found


def compare(make: Callable[[], Callable[[], Any]]) -> set[str | None]:
    """Runs a program under each profiler. Returns what its memory was for, according to both."""
    theirs, ours = (
        changes(recorded(profile, make())) for profile in (torch.profiler.profile, mindprof.profile)
    )
    assert ours == theirs
    return {category for _, _, category in theirs}


@pytest.mark.parametrize("name", OPTIMIZERS)
@pytest.mark.parametrize("steps", [0, 2])
def test_categories_are_torchs(name: str, steps: int) -> None:
    def after_steps() -> Callable[[], None]:
        step = training(OPTIMIZERS[name])
        for _ in range(steps):
            # torch tells of no end whose begin it was not told of.
            recorded(torch.profiler.profile, step)
        return step

    categories = compare(after_steps)
    assert {"PARAMETER", "GRADIENT", "INPUT", "ACTIVATION"} <= categories
    assert ("OPTIMIZER_STATE" in categories) == (name != "sgd")


def sparse_training() -> Callable[[], None]:
    torch.manual_seed(0)
    torch.set_num_threads(1)
    table = torch.nn.Embedding(10, 4, sparse=True)
    trained = torch.optim.SparseAdam(list(table.parameters()))
    chosen = torch.tensor([1, 2, 2])

    def step() -> None:
        trained.zero_grad()
        table(chosen).sum().backward()
        trained.step()

    return step


def searching_training() -> Callable[[], None]:
    torch.manual_seed(0)
    torch.set_num_threads(1)
    net = model()
    trained = torch.optim.LBFGS(net.parameters(), max_iter=3)
    x, y = torch.randn(8, 16), torch.randn(8, 4)

    def loss() -> Any:
        trained.zero_grad()
        found = torch.nn.functional.mse_loss(net(x), y)
        found.backward()
        return found

    return lambda: trained.step(loss)


@pytest.mark.parametrize("make", [sparse_training, searching_training])
def test_categories_of_sparse_gradients_and_of_a_search_are_torchs(
    make: Callable[[], Callable[[], None]],
) -> None:
    assert {"PARAMETER", "OPTIMIZER_STATE"} <= compare(make)


def given_results(a: Any, b: Any, w: Any) -> None:
    torch.add(a, b, out=b)
    torch.where(a > 0, a, b, out=a)
    torch.max(a, 1, out=(torch.empty(6), torch.empty(6, dtype=torch.long)))
    torch.cumsum(a, 0, out=b)
    torch.stack([a, b], out=torch.empty(2, 6, 10))
    torch.linalg.inv(a @ b.t() + torch.eye(6), out=torch.empty(6, 6))
    torch.special.expit(a, out=b)
    (w * a * b).sum().backward()
    torch.mul(w.grad, 2.0, out=a)


def without_elements(a: Any, b: Any, w: Any) -> None:
    joined = torch.cat([torch.empty(0), a.flatten()])
    nothing = a[:0]
    (torch.cat([nothing, b]) * w * joined.view(6, 10)).sum().backward()
    nothing + 1


def without_storages(a: Any, _: Any, w: Any) -> None:
    sparse = a.to_sparse()
    torch.sparse.mm(sparse, w.t()).sum().backward()
    sparse.coalesce().to_dense()
    elsewhere = torch.empty(4, device="meta")
    elsewhere + elsewhere


@pytest.mark.parametrize("use", [given_results, without_elements, without_storages])
def test_what_operators_wrote_to_is_torchs(use: Callable[[Any, Any, Any], None]) -> None:
    def known() -> Callable[[], None]:
        torch.manual_seed(0)
        torch.set_num_threads(1)
        a, b, w = torch.randn(6, 10), torch.randn(6, 10), torch.randn(6, 10, requires_grad=True)
        return lambda: use(a, b, w)

    assert compare(known) - {None}


TABLE = Path(__file__).parents[2] / "crates/analyze/src/memory/memory_timeline/out_overloads.txt"
# Of makers of devices, which nobody calls; and those that are like the comparison of two tensors.
NOT_TOLD = re.compile("mkldnn|miopen|cudnn|mps|fbgemm")
UNCLEAR = {(2, 1, "max"), (2, 1, "min"), (2, 1, "set")}


def results(schema: Any) -> list[int]:
    """Returns which arguments of an overload are results that it is given: the last, by keyword."""
    arguments = schema.arguments
    count = len(arguments)
    written = [
        place
        for place, argument in enumerate(arguments)
        if argument.alias_info is not None and argument.alias_info.is_write
    ]
    are_last = written == list(range(count - len(written), count))
    return written if are_last and all(arguments[place].kwarg_only for place in written) else []


def test_overloads_that_are_given_their_results_are_torchs() -> None:
    lines = (line.split(" ") for line in TABLE.read_text().splitlines())
    ours = {(int(count), int(of), name) for count, of, *names in lines for name in names}
    theirs = set()
    counts: dict[str, set[int]] = {}
    for schema in torch._C._jit_get_all_schemas():
        space, _, name = schema.name.partition("::")
        if space != "aten" or name.startswith("_") or name.endswith("_") or NOT_TOLD.search(name):
            continue
        if found := results(schema):
            theirs.add((len(schema.arguments), len(found), name))
        counts.setdefault(name, set()).add(len(schema.arguments))
    assert theirs - ours == UNCLEAR
    # What another torch has is in nobody's way: no overload of this one has as many arguments.
    assert [(n, of, name) for n, of, name in ours - theirs if n in counts.get(name, ())] == []


def test_parameters_of_a_model_that_is_not_trained_are_torchs() -> None:
    def inference() -> Callable[[], Any]:
        net, x = model().requires_grad_(False), torch.randn(8, 16)
        return lambda: net(x)

    assert "PARAMETER" in compare(inference)


@pytest.mark.parametrize("name", ["mlp", "cnn", "gpt"])
def test_categories_of_models_are_torchs(name: str) -> None:
    def known() -> Callable[[], Any]:
        step = workload(name)
        recorded(torch.profiler.profile, step)
        return step

    assert "PARAMETER" in compare(known)


def kept_bytes(prof: Any) -> int:
    """Returns how many bytes of blocks the recording says that an optimizer keeps."""
    timeline = MemoryProfileTimeline(prof.profiler.kineto_results)
    blocks = {
        key: size
        for _, _, (key, version), size in timeline.timeline
        if str(timeline.categories.get(key, version)) == "Category.OPTIMIZER_STATE"
    }
    return sum(blocks.values())


MOMENTUM_BYTES = 4 * sum(parameter.numel() for parameter in model().parameters())


def test_what_an_optimizer_keeps_is_known_without_stacks() -> None:
    prof = recorded(mindprof.profile, training(OPTIMIZERS["momentum"]), with_stack=False)
    assert kept_bytes(prof) == MOMENTUM_BYTES


def test_torchs_method_is_watched_while_memory_is_recorded_and_no_longer() -> None:
    theirs = torch.optim.Optimizer._optimizer_step_code
    seen = []
    for flags in ({}, {"profile_memory": False}, {"record_shapes": False}):
        note = lambda: seen.append(torch.optim.Optimizer._optimizer_step_code is theirs)  # noqa: E731
        recorded(mindprof.profile, note, **flags)
        assert torch.optim.Optimizer._optimizer_step_code is theirs
    assert seen == [False, True, True]


def test_a_profiler_that_is_let_go_of_leaves_torch_as_it_was() -> None:
    ranges = torch._C._profiler
    theirs = torch.optim.Optimizer._optimizer_step_code, ranges._RecordFunctionFast

    def present() -> tuple[Any, Any]:
        return torch.optim.Optimizer._optimizer_step_code, ranges._RecordFunctionFast

    profilers = [mindprof.profile(activities=CPU, **FLAGS) for _ in range(2)]
    for prof in profilers:
        prof.start()
    del prof
    profilers.pop()
    gc.collect()
    assert present() != theirs
    profilers.pop()
    gc.collect()
    assert present() == theirs
    assert not torch.autograd.profiler._is_profiler_enabled


def test_a_profiler_may_be_stepped_by_a_hook_of_the_optimizer() -> None:
    kept: list[int] = []
    schedule = mindprof.schedule(wait=0, warmup=1, active=1)
    step = training(OPTIMIZERS["momentum"])
    with mindprof.profile(
        activities=CPU,
        schedule=schedule,
        on_trace_ready=lambda prof: kept.append(kept_bytes(prof)),
        **FLAGS,
    ) as prof:
        handle = optimizer.register_optimizer_step_post_hook(lambda *_: prof.step())
        for _ in range(4):
            step()
        handle.remove()
    assert kept == [MOMENTUM_BYTES] * 2


def test_torchs_own_profiler_knows_optimizers_beside_ours() -> None:
    step = training(OPTIMIZERS["momentum"])
    alone = changes(recorded(torch.profiler.profile, step))
    recorded(mindprof.profile, step)
    with (
        torch.profiler.profile(activities=CPU, **FLAGS) as theirs,
        pytest.warns(UserWarning, match="memory is not recorded"),
    ):
        recorded(mindprof.profile, step)
    found = {category for _, _, category in changes(theirs)}
    assert "OPTIMIZER_STATE" in found
    assert "OPTIMIZER_STATE" in {category for _, _, category in alone}


def test_steps_are_no_calls_of_ours_in_a_trace() -> None:
    prof = recorded(mindprof.profile, training(OPTIMIZERS["momentum"]))
    names = [row.key for row in prof.key_averages(include_python_functions=True)]
    assert any("_optimizer_step_code" in name for name in names)
    assert not any("OptimizerWatch" in name for name in names)


def test_what_an_optimizer_keeps_is_known_of_a_compiled_step() -> None:
    torch._dynamo.reset()
    step = torch.compile(training(OPTIMIZERS["momentum"]), backend="eager")
    prof = recorded(mindprof.profile, step, with_stack=False)
    assert kept_bytes(prof) == MOMENTUM_BYTES


def test_tensors_without_a_storage_on_the_host_are_left_out(capfd: Any) -> None:
    sparse = torch.eye(3).to_sparse().requires_grad_()
    elsewhere = torch.empty(4, device="meta", requires_grad=True)
    derived = torch.ones(5).as_subclass(type("Derived", (torch.Tensor,), {}))
    trained = torch.optim.SGD([sparse, elsewhere], lr=0.1)
    trained.state[sparse] = {"derived": derived, "number": 3, "none": None}
    capfd.readouterr()
    prof = recorded(mindprof.profile, trained.step)
    assert kept_bytes(prof) == 0
    assert "Exception" not in capfd.readouterr().err
