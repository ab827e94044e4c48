"""torch collects, and what comes after is ours: the same results as torch's own, of one run."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections import Counter
from typing import Any

import pytest
import torch  # type: ignore[import-not-found]

from tests.pytorch.made_collection import MadeCollection
from tests.pytorch.one_collection import Results, collect, take
from tests.pytorch.workloads import NAMES, workload

# Of threads that use CUDA first.
pytestmark = pytest.mark.filterwarnings("ignore:Attempting to run cuBLAS:UserWarning")

OPTIONS: dict[str, dict[str, Any]] = {
    "plain": {},
    "full": {"record_shapes": True, "profile_memory": True, "with_flops": True},
    "stacks": {"with_stack": True},
}


@pytest.fixture(autouse=True, scope="module")
def _by_kineto() -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MINDPROF_TORCH_BACKEND", "kineto")
        yield


HAS_CUDA = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA")

RUNS = [
    pytest.param((name, kind, device), marks=marks, id=f"{name}-{kind}-{device}")
    for device, marks in {"cpu": (), "cuda": (HAS_CUDA,)}.items()
    for name in NAMES
    for kind in OPTIONS
]
MADE = [pytest.param(seed, id=f"made-{seed}") for seed in range(25)]


@pytest.fixture(scope="module", params=[*RUNS, *MADE])
def results(request: pytest.FixtureRequest) -> Results:
    if isinstance(request.param, int):
        return take(MadeCollection(request.param, TELLS_ORIGIN), record_shapes=True)
    name, kind, device = request.param
    return collect(workload(name, device), device, **OPTIONS[kind])


# Older ones give a block to an operator by rounded times, now and then to the one beside it.
HAS_EXACT_MEMORY = tuple(map(int, torch.__version__.split(".")[:2])) >= (2, 15)
TELLS_ORIGIN = HAS_EXACT_MEMORY


def compared(names: str) -> list[str]:
    """Returns the attributes in which results are to be equal."""
    return [name for name in names.split() if HAS_EXACT_MEMORY or "memory" not in name]


ROW = compared(
    "key count cpu_time_total self_cpu_time_total device_time_total self_device_time_total "
    "cpu_memory_usage self_cpu_memory_usage device_memory_usage self_device_memory_usage flops "
    "is_async is_remote node_id overload_name use_device"
)


def rows(averages: Any) -> list[tuple[Any, ...]]:
    """Returns rows by their keys: torch's order of equals is that of its own lists."""
    found = [
        (str(row.input_shapes), tuple(row.stack), *(shown(row, name) for name in ROW))
        for row in averages
        if HAS_EXACT_MEMORY or row.key != "[memory]"
    ]
    return sorted(found, key=str)


def shown(row: Any, name: str) -> Any:
    value = getattr(row, name)
    # torch adds microseconds up, with what rounding leaves of them.
    return round(value, 3) if isinstance(value, float) else value


@pytest.mark.parametrize("by", [(), (True,), (False, 5)], ids=["name", "shape", "stack"])
def test_rows_are_torchs(results: Results, by: tuple[Any, ...]) -> None:
    theirs, ours = (rows(made.key_averages(*by)) for made in (results.theirs, results.ours))
    assert ours == theirs
    assert len(ours) >= 5


SORTED = ["self_cpu_time_total", "cpu_time_total", "self_cpu_memory_usage", "count"]


@pytest.mark.parametrize("sort_by", SORTED)
def test_tables_have_torchs_lines(results: Results, sort_by: str) -> None:
    if results.ours.profile_memory and not HAS_EXACT_MEMORY:
        pytest.skip("this torch attributes memory by rounded times")
    theirs, ours = (
        made.key_averages().table(sort_by=sort_by, row_limit=-1).splitlines()
        for made in (results.theirs, results.ours)
    )
    assert ours[:3] == theirs[:3]
    # Rows that are equal in what they are sorted by stand in any order.
    for own, expected in zip(sorted(ours), sorted(theirs), strict=True):
        assert is_same_line(own, expected), f"{own}\n{expected}"


def is_same_line(own: str, expected: str) -> bool:
    """Returns whether two lines say the same, but for the last digit of an average."""
    pairs = list(zip(own.split(), expected.split(), strict=True))
    return len(own) == len(expected) and all(
        own == expected or is_same_time(own, expected) for own, expected in pairs
    )


def is_same_time(own: str, expected: str) -> bool:
    numbers = [text.rstrip("mus") for text in (own, expected)]
    units = {text[len(number) :] for text, number in zip((own, expected), numbers, strict=True)}
    if len(units) != 1 or not all(re.fullmatch(r"\d+\.\d{3}", number) for number in numbers):
        return False
    return abs(float(numbers[0]) - float(numbers[1])) < 0.0011


EVENT = compared(
    "name input_shapes sequence_nr scope is_async is_user_annotation flops cpu_memory_usage "
    "device_memory_usage concrete_inputs"
)


def told_of(event: Any) -> tuple[Any, ...]:
    parents = []
    parent = event.cpu_parent
    while parent is not None:
        parents.append(parent.name)
        parent = parent.cpu_parent
    kernels = sorted((kernel.name, round(kernel.duration, 3)) for kernel in event.kernels)
    # torch has no list at all for memory that is an event of its own.
    facts = [str(getattr(event, name) or 0) for name in EVENT]
    return (*facts, tuple(event.stack), tuple(parents), tuple(kernels), str(event.device_type))


def test_events_and_their_tree_are_torchs(results: Results) -> None:
    theirs, ours = (
        Counter(told_of(event) for event in made if HAS_EXACT_MEMORY or event.name != "[memory]")
        for made in (results.theirs, results.ours.events())
    )
    assert ours - theirs == Counter()
    assert theirs - ours == Counter()


FIRST_USE = """
import sys, torch
if sys.argv[1] == "ours":
    import mindprof
    mindprof.install()
with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as prof:
    torch.ones(2)
assert [row.key for row in prof.key_averages()]
"""


def test_kineto_is_first_used_on_the_thread_of_the_program() -> None:
    environment = {**os.environ, "MINDPROF_TORCH_BACKEND": "kineto"}
    for whose in ("torch's", "ours"):
        done = subprocess.run(
            [sys.executable, "-c", FIRST_USE, whose],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        assert "must run in same thread" not in done.stderr, whose
