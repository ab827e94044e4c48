"""Operators that cast by themselves: which, to what, once per region, and nothing left behind."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable

import mindtorch_v2 as torch
import pytest
from mindprof import _core, profile
from mindtorch_v2.nn import functional

from tests.host.workloads import WORKLOADS

LOWER: dict[str, Callable[[], torch.Tensor]] = {
    "mm": lambda: torch.ones(2, 2).mm(torch.ones(2, 2)),
    "bmm": lambda: torch.ones(1, 2, 2).bmm(torch.ones(1, 2, 2)),
    "addmm": lambda: torch.ones(2, 2).addmm(torch.ones(2, 2), torch.ones(2, 2)),
    "matmul": lambda: torch.ones(2) @ torch.ones(2),
    "linear": lambda: functional.linear(torch.ones(2, 2), torch.ones(2, 2), torch.ones(2)),
    "conv2d": lambda: functional.conv2d(torch.ones(1, 1, 3, 3), torch.ones(1, 1, 2, 2)),
    "scaled_dot_product_attention": lambda: functional.scaled_dot_product_attention(
        torch.ones(1, 1, 2, 2), torch.ones(1, 1, 2, 2), torch.ones(1, 1, 2, 2)
    ),
}
NARROW = torch.ones(2, 2, dtype=torch.bfloat16)
RAISED: dict[str, Callable[[], torch.Tensor]] = {
    "mse_loss": lambda: functional.mse_loss(NARROW, NARROW),
    "nll_loss": lambda: functional.nll_loss(NARROW, torch.tensor([0, 1])),
    "cross_entropy_loss": lambda: functional.cross_entropy(NARROW, torch.tensor([0, 1])),
    "cat": lambda: torch.cat([NARROW, torch.ones(2, 2)]),
    "stack": lambda: torch.stack([NARROW, torch.ones(2, 2)]),
}
UNCHANGED: dict[str, Callable[[], torch.Tensor]] = {
    "dot": lambda: torch.ones(2).dot(torch.ones(2)),
    "mv": lambda: torch.ones(2, 2).mv(torch.ones(2)),
    "softmax": lambda: torch.ones(2, 2).softmax(-1),
    "add": lambda: torch.ones(2) + torch.ones(2),
}


def bfloat16() -> torch.autocast:
    return torch.autocast("cpu", dtype=torch.bfloat16)


def counts(function: Callable[[], object]) -> dict[str, int]:
    with profile() as recording:
        function()
    return {row.key: row.count for row in recording.key_averages()}


@pytest.mark.parametrize("name", LOWER)
def test_products_are_cast_and_show_twice(name: str) -> None:
    with bfloat16():
        assert LOWER[name]().dtype == torch.bfloat16
        assert counts(LOWER[name])[f"aten::{name}"] == 2
    assert LOWER[name]().dtype == torch.float32
    assert counts(LOWER[name])[f"aten::{name}"] == 1


@pytest.mark.parametrize("name", RAISED)
def test_losses_and_joins_are_computed_wide(name: str) -> None:
    with bfloat16():
        assert RAISED[name]().dtype == torch.float32
        assert counts(RAISED[name])[f"aten::{name}"] == 2


@pytest.mark.parametrize("name", UNCHANGED)
def test_other_operators_keep_their_types(name: str) -> None:
    with bfloat16():
        assert UNCHANGED[name]().dtype == torch.float32


def test_wide_and_whole_numbers_are_not_cast() -> None:
    with bfloat16():
        assert (torch.ones(2, 2).double() @ torch.ones(2, 2).double()).dtype == torch.float64
        assert (torch.ones(2, 2).long() @ torch.ones(2, 2).long()).dtype == torch.int64


def test_a_parameter_is_cast_once_per_region() -> None:
    x, weight = torch.ones(2, 2), torch.ones(2, 2, requires_grad=True)

    def twice() -> None:
        x.mm(weight)
        x.mm(weight)

    with bfloat16():
        assert counts(twice)["aten::_to_copy"] == 3
        assert counts(twice)["aten::_to_copy"] == 2
        torch.clear_autocast_cache()
        assert counts(twice)["aten::_to_copy"] == 3
    with torch.autocast("cpu", dtype=torch.bfloat16, cache_enabled=False):
        assert counts(twice)["aten::_to_copy"] == 4


def test_gradients_come_back_in_the_type_of_the_parameter() -> None:
    weight = torch.ones(2, 2, requires_grad=True)
    with bfloat16():
        (torch.ones(2, 2) @ weight).sum().backward()
    assert weight.grad is not None
    assert weight.grad.dtype == torch.float32
    assert weight.grad.tolist() == [[2.0, 2.0], [2.0, 2.0]]


def test_regions_nest_and_end_with_exceptions() -> None:
    assert not torch.is_autocast_enabled("cpu")
    with bfloat16():
        with torch.autocast("cpu", enabled=False):
            assert not torch.is_autocast_enabled("cpu")
        assert torch.is_autocast_enabled("cpu")
        assert torch.get_autocast_dtype("cpu") == torch.bfloat16
    with pytest.raises(ZeroDivisionError), bfloat16():
        raise ZeroDivisionError
    assert not torch.is_autocast_enabled("cpu")


def test_a_region_can_decorate_and_be_entered_again() -> None:
    region = bfloat16()

    @region
    def product(depth: int) -> torch.Tensor:
        return product(depth - 1) if depth else torch.ones(2, 2) @ torch.ones(2, 2)

    assert product(3).dtype == torch.bfloat16
    assert not torch.is_autocast_enabled("cpu")


def test_regions_belong_to_their_thread() -> None:
    found: list[bool] = []
    with bfloat16():
        thread = threading.Thread(target=lambda: found.append(torch.is_autocast_enabled("cpu")))
        thread.start()
        thread.join()
    assert found == [False]


def test_what_cannot_be_had_warns_or_raises() -> None:
    with pytest.warns(UserWarning, match="CUDA is not available"):
        region = torch.autocast("cuda")
    with region:
        assert (torch.ones(2, 2) @ torch.ones(2, 2)).dtype == torch.float32
    with pytest.warns(UserWarning, match="target dtype is not supported. Disabling autocast"):
        torch.autocast("cpu", dtype=torch.float64)
    with pytest.raises(RuntimeError, match="Expected one of cpu"):
        torch.autocast("nowhere")
    with pytest.raises(ValueError, match="Expected `device_type` of type `str`"):
        torch.autocast(3)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", WORKLOADS)
def test_training_leaves_nothing_behind(name: str) -> None:
    gc.collect()
    before = _core._live_bytes()
    workload = WORKLOADS[name](torch)
    for _ in range(3):
        workload.step()
    del workload
    gc.collect()
    assert _core._live_bytes() == before


@pytest.mark.parametrize("name", WORKLOADS)
def test_a_step_leaves_no_more_than_the_step_before(name: str) -> None:
    workload = WORKLOADS[name](torch)
    workload.step()
    workload.step()
    gc.collect()
    before = _core._live_bytes()
    workload.step()
    gc.collect()
    assert _core._live_bytes() == before
