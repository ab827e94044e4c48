"""Section 7: the memory timeline of a profiler, its files and its categories."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from host import CUDA, profile, torch
from memory_step import GOLDEN, rows

pytestmark = pytest.mark.filterwarnings("ignore:`export_memory_timeline`:FutureWarning")

FLAGS = {"record_shapes": True, "profile_memory": True, "with_stack": True}
PREEXISTING, CREATE, INCREMENT_VERSION, DESTROY = 1, 2, 3, 4
PARAMETER, OPTIMIZER_STATE, INPUT, _, ACTIVATION, GRADIENT, AUTOGRAD_DETAIL, _ = range(8)


def trained() -> Any:
    """Profiles one step of a layer with momentum, after one without the profiler."""
    layer = torch.nn.Linear(6, 2)
    optimizer = torch.optim.SGD(layer.parameters(), 0.1, momentum=0.9)

    def step() -> None:
        optimizer.zero_grad()
        layer(torch.ones(3, 6)).relu().sum().backward()
        optimizer.step()

    step()
    with profile(**FLAGS) as profiler:
        step()
    return profiler


@pytest.fixture(scope="module")
def profiler() -> Any:
    """A profiler that has stopped."""
    return trained()


def raw(profiler: Any, folder: Path) -> list[list[int]]:
    path = folder / "memory.raw.json.gz"
    profiler.export_memory_timeline(str(path), device="cpu")
    rows: list[list[int]] = json.loads(gzip.decompress(path.read_bytes()))
    return rows


def points(profiler: Any, folder: Path) -> tuple[list[int], list[list[int]]]:
    path = folder / "memory.json"
    profiler.export_memory_timeline(str(path), device="cpu")
    times, sizes = json.loads(path.read_text())
    return times, sizes


def test_m_2_a_profiler_that_never_ran_has_no_timeline(tmp_path: Path) -> None:
    text = "Profiler and kineto_results must be initialized for memory profiling"
    with pytest.raises(AssertionError, match=text):
        profile(**FLAGS).export_memory_timeline(str(tmp_path / "a.json"))


def test_m_3_without_a_device_it_is_the_hosts(profiler: Any, tmp_path: Path) -> None:
    has_cuda = CUDA in torch.profiler.supported_activities()
    profiler.export_memory_timeline(str(tmp_path / "a.json"))
    profiler.export_memory_timeline(
        str(tmp_path / "b.json"), device="cuda:0" if has_cuda else "cpu"
    )
    assert (tmp_path / "a.json").read_text() == (tmp_path / "b.json").read_text()


def test_m_3_another_device_has_nothing(profiler: Any, tmp_path: Path) -> None:
    profiler.export_memory_timeline(str(tmp_path / "a.json"), device="xpu:3")
    assert (tmp_path / "a.json").read_text() == "[[], []]"


@pytest.mark.parametrize(
    ("device", "text"),
    [
        ("foo", "^Expected one of cpu, cuda, .*privateuseone device type at start of .*: foo$"),
        ("cpu:x", "^Invalid device string: 'cpu:x'$"),
        ("", "^Device string must not be empty$"),
    ],
)
def test_m_3_a_bad_device_is_refused(device: str, text: str, profiler: Any, tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match=text):
        profiler.export_memory_timeline(str(tmp_path / "a.json"), device=device)


def test_m_4_the_timeline_is_kept(profiler: Any, tmp_path: Path) -> None:
    rows = raw(profiler, tmp_path)
    timeline = profiler.mem_tl.timeline
    kept = [(time, action.value) for time, action, _, _ in timeline]
    bumps = [row for row in rows if row[1] == INCREMENT_VERSION]
    assert len(kept) == len(rows) - len(bumps) // 2
    assert kept == sorted(kept)
    _, _, (key, version), size = timeline[0]
    assert size > 0
    profiler.mem_tl.categories.get(key, version)


def test_the_end_of_the_name_decides(profiler: Any, tmp_path: Path) -> None:
    for name in ("a.json", "a.json.gz", "a.raw.json", "raw.json.gz"):
        profiler.export_memory_timeline(str(tmp_path / name), device="cpu")
    text = (tmp_path / "a.json").read_text()
    assert gzip.decompress((tmp_path / "a.json.gz").read_bytes()).decode() == text
    assert (tmp_path / "a.raw.json").read_text() == text
    rows = json.loads(gzip.decompress((tmp_path / "raw.json.gz").read_bytes()))
    assert {len(row) for row in rows} == {4}


def test_points_have_a_zero_and_eight_categories(profiler: Any, tmp_path: Path) -> None:
    times, sizes = points(profiler, tmp_path)
    assert len(times) == len(sizes) > 10
    assert times == sorted(times)
    assert {len(row) for row in sizes} == {9}
    assert all(row[0] == 0 for row in sizes)
    assert all(size >= 0 for row in sizes for size in row)
    assert sizes[0][1 + PARAMETER] == 4 * (12 + 2)


def test_raw_rows_go_by_time_and_action(profiler: Any, tmp_path: Path) -> None:
    rows = raw(profiler, tmp_path)
    order = [(time, action) for time, action, _, _ in rows]
    assert order == sorted(order)
    assert all(time == -1 for time, action, _, _ in rows if action == PREEXISTING)
    assert all(size > 0 for _, action, size, _ in rows if action in (PREEXISTING, CREATE))
    assert all(size < 0 for _, action, size, _ in rows if action == DESTROY)
    bumps = [row for row in rows if row[1] == INCREMENT_VERSION]
    for before, after in zip(bumps[::2], bumps[1::2], strict=True):
        assert before[0] == after[0]
        assert before[2] == -after[2] < 0


def test_both_files_tell_the_same(profiler: Any, tmp_path: Path) -> None:
    _, sizes = points(profiler, tmp_path)
    last = [0] * 8
    for _, _, size, category in raw(profiler, tmp_path):
        last[category] += size
    assert sizes[-1] == [0, *last]


def test_a_training_step_has_its_categories(profiler: Any, tmp_path: Path) -> None:
    rows = raw(profiler, tmp_path)
    begun = [(size, index) for _, action, size, index in rows if action == PREEXISTING]
    made = [(size, index) for _, action, size, index in rows if action == CREATE]
    weight, bias, x, y = 48, 8, 72, 24
    assert {(weight, PARAMETER), (bias, PARAMETER)} <= set(begun)
    assert {(weight, OPTIMIZER_STATE), (bias, OPTIMIZER_STATE)} <= set(begun)
    assert (x, INPUT) in made
    assert made.count((y, ACTIVATION)) == 2
    assert {(weight, GRADIENT), (bias, GRADIENT)} <= set(made)
    assert AUTOGRAD_DETAIL in {index for _, index in made}
    changed = [index for _, action, _, index in rows if action == INCREMENT_VERSION]
    assert set(changed) >= {PARAMETER, OPTIMIZER_STATE}


def test_a_step_of_products_and_powers_has_torchs_lines_in_torchs_order() -> None:
    assert rows() == json.loads(GOLDEN.read_text())


@pytest.mark.differs("torch's page is a picture that needs matplotlib; without it there is none")
def test_the_page_needs_nothing_else(profiler: Any, tmp_path: Path) -> None:
    profiler.export_memory_timeline(str(tmp_path / "a.html"), device="cpu")
    assert 'class="chart"' in (tmp_path / "a.html").read_text()


@pytest.mark.differs("torch's host allocator does not tell of blocks from before the profiler")
def test_blocks_from_before_are_given_back(tmp_path: Path) -> None:
    block = torch.ones(1000)
    with profile(**FLAGS) as profiler:
        del block
    rows = raw(profiler, tmp_path)
    assert [row[1:3] for row in rows] == [[PREEXISTING, 4000], [DESTROY, -4000]]
