"""Where there is no slope, memory overlaps or sizes are odd: what torch 2.15 answers there."""

from __future__ import annotations

from typing import Any

import mindprof
import mindtorch_v2 as torch
import pytest
from mindprof import _core
from mindtorch_v2.nn import functional
from mindtorch_v2.utils.data import default_collate


def gradient(x: Any, function: Any) -> list[Any]:
    x.requires_grad_()
    function(x).sum().backward()
    return list(x.grad.tolist())


@pytest.mark.parametrize("order", [0.5, 1, 1.5, 2, 3, float("inf")])
def test_a_norm_has_no_slope_at_zero(order: float) -> None:
    assert gradient(torch.zeros(3), lambda x: x.norm(order)) == [0.0, 0.0, 0.0]
    rows = torch.tensor([[0.0, 0.0], [3.0, 0.0]])
    flat, steep = gradient(rows, lambda x: x.norm(order, 1))
    assert flat == [0.0, 0.0]
    assert steep == pytest.approx([1.0, 0.0], rel=1e-6)


def test_norms_by_dimension_and_name() -> None:
    x = torch.tensor([[3.0, -4.0], [0.0, 1.0]])
    assert x.norm(dim=1).tolist() == [5.0, 1.0]
    assert x.norm(float("inf"), 0).tolist() == [3.0, 4.0]
    assert x.norm(-float("inf"), 1).tolist() == [3.0, 0.0]
    assert x.norm(0, 1).tolist() == [2.0, 1.0]
    assert x.norm(1).item() == 8.0
    assert x.norm("fro", 1, True).tolist() == [[5.0], [1.0]]


def test_a_deviation_has_no_slope_at_zero() -> None:
    assert gradient(torch.zeros(3), lambda x: x.std()) == [0.0, 0.0, 0.0]
    rows = torch.tensor([[1.0, 1.0], [3.0, 4.0]])
    flat, steep = gradient(rows, lambda x: x.std(1))
    assert flat == [0.0, 0.0]
    assert steep == pytest.approx([-(0.5**0.5), 0.5**0.5])


@pytest.mark.parametrize(
    ("reduction", "expected"),
    [("mean", 1.326102), ("sum", 7.956612), ("none", [0.905021, 0.0, 3.468968, 3.582623])],
)
def test_smoothing_of_labels_weighs_and_ignores(reduction: str, expected: Any) -> None:
    scores = torch.tensor([[0.5, -0.25, 0.0], [1.0, 2.0, 3.0], [0.1, 0.2, 0.0], [2.0, 0.5, -1.0]])
    labels = torch.tensor([0, -100, 2, 1])
    weight = torch.tensor([1.0, 2.0, 3.0])
    loss = functional.cross_entropy(
        scores, labels, weight, label_smoothing=0.1, reduction=reduction
    )
    assert loss.tolist() == pytest.approx(expected, rel=1e-5)


def test_smoothing_of_labels_with_more_dimensions() -> None:
    scores = torch.tensor(
        [[[0.5, 1.0], [-0.25, 2.0], [0.0, 3.0]], [[0.1, 2.0], [0.2, 0.5], [0.0, -1.0]]]
    )
    labels = torch.tensor([[0, -100], [2, 1]])
    weight = torch.tensor([1.0, 2.0, 3.0])
    loss = functional.cross_entropy(scores, labels, weight, label_smoothing=0.1)
    assert loss.item() == pytest.approx(1.326102, rel=1e-5)


OVERLAP = "more than one element of the written-to tensor refers to a single memory location"
ALIAS = "some elements of the input tensor and the written-to tensor refer to a single memory"


@pytest.mark.parametrize("name", ["scatter_", "scatter_add_"])
def test_nothing_is_scattered_into_repeated_elements(name: str) -> None:
    places, values = torch.zeros(4, 3, dtype=torch.int64), torch.ones(4, 3)
    with pytest.raises(RuntimeError, match=OVERLAP):
        getattr(torch.zeros(3).expand(4, 3), name)(0, places, values)


def test_nothing_is_scattered_from_where_it_goes() -> None:
    whole, places = torch.zeros(6), torch.zeros(4, dtype=torch.int64)
    with pytest.raises(RuntimeError, match=ALIAS):
        whole[:4].scatter_(0, places, whole[1:5])
    with pytest.raises(RuntimeError, match=ALIAS):
        places.scatter_(0, places, torch.ones(4, dtype=torch.int64))
    assert whole[:2].scatter_(0, places[:2], whole[4:]).tolist() == [0.0, 0.0]


def test_an_operand_of_einsum_has_one_ellipsis() -> None:
    two, three = torch.ones(2, 3), torch.ones(3)
    with pytest.raises(RuntimeError, match=r"found '.' for operand 0 for which an ellipsis was"):
        torch.einsum("...i...,i->i", two, three)
    with pytest.raises(RuntimeError, match=r"found '.' for output but an ellipsis \(...\) was"):
        torch.einsum("...i,i->......", two, three)
    with pytest.raises(RuntimeError, match=r"found '.' for operand 1 that is not part of any"):
        torch.einsum("...i,i.->i", two, three)
    assert torch.einsum("...,...->...", two, three).tolist() == two.tolist()
    assert torch.einsum("...i,...j->...ij", two, torch.ones(2, 4)).shape == (2, 3, 4)


def test_texts_stay_in_the_list_they_come_in() -> None:
    assert default_collate(["a", "b"]) == ["a", "b"]
    assert default_collate(("a", "b")) == ("a", "b")
    assert default_collate([{"k": b"a"}, {"k": b"b"}]) == {"k": [b"a", b"b"]}


def test_as_many_bytes_as_elements() -> None:
    assert _core.tensor_from_bytes(bytes(8), [2], torch.float32).tolist() == [0.0, 0.0]
    with pytest.raises(ValueError, match="must be a multiple of element size"):
        _core.tensor_from_bytes(bytes(9), [2], torch.float32)


def test_more_dimensions_than_python_goes_down() -> None:
    deep = torch.ones([1] * 20_000)
    with pytest.raises(RecursionError):
        repr(deep)
    with pytest.raises(RecursionError):
        deep.tolist()
    with pytest.raises(RuntimeError, match="only tensors with up to 64 dims are supported"):
        torch.ones([1] * 65).mean(0)
    assert torch.ones([1] * 64).mean(0).dim() == 63
    assert torch.ones([1] * 65).sum().item() == 1.0


def test_the_corners_of_pools_and_convolutions() -> None:
    with pytest.raises(RuntimeError, match="with dimension 2 being empty"):
        functional.adaptive_avg_pool2d(torch.ones(1, 1, 0, 0), 2)
    assert functional.adaptive_avg_pool2d(torch.ones(0, 1, 4, 4), 2).shape == (0, 1, 2, 2)
    assert functional.adaptive_avg_pool2d(torch.ones(1, 0, 4, 4), 2).shape == (1, 0, 2, 2)
    image, kernel = torch.ones(1, 1, 4, 4), torch.ones(1, 1, 2, 2)
    with pytest.raises(RuntimeError, match=r"padding=4611686018427387904 at dimension 0 , exp"):
        functional.conv2d(image, kernel, padding=2**62)
    with pytest.raises(RuntimeError):
        functional.conv2d(image, kernel, padding=2**62 - 1)


def test_sizes_that_cannot_be_counted() -> None:
    with pytest.raises(RuntimeError):
        torch.ones(2).repeat(2**62, 4)
    with pytest.raises(RuntimeError):
        torch.stack([torch.ones(1).expand(2**61)] * 4)
    with pytest.raises(MemoryError):
        torch.empty(1, 1, 0).expand(2**62, 1, 0).tolist()


def test_what_is_no_number_stays_so_in_every_norm() -> None:
    for place in range(3):
        numbers = [0.0, 1.0, 2.0]
        numbers[place] = float("nan")
        for order in (float("inf"), -float("inf"), 1, 2):
            norm = torch.tensor(numbers).norm(order).item()
            assert norm != norm, (numbers, order)


def test_an_infinite_norm_of_nothing_is_refused() -> None:
    for order in (float("inf"), -float("inf")):
        with pytest.raises(RuntimeError, match="does not have an identity"):
            torch.tensor([]).norm(order)
    assert torch.ones((0, 2)).norm(float("inf"), 1).shape == (0,)


def test_smoothing_beyond_all_labels_is_refused() -> None:
    scores, target = torch.tensor([[1.0, 2.0]]), torch.tensor([0])
    with pytest.raises(RuntimeError, match=r"label_smoothing must be between .* Got: 1\.5"):
        functional.cross_entropy(scores, target, label_smoothing=1.5)
    plain = functional.cross_entropy(scores, target).item()
    assert functional.cross_entropy(scores, target, label_smoothing=-0.1).item() == plain


def test_gradients_that_there_are_none_of_are_no_zeros() -> None:
    weight = torch.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="not differentiable with respect to argument 'weight'"):
        functional.cross_entropy(torch.tensor([[1.0, 2.0]]), torch.tensor([0]), weight)
    x = torch.tensor([1.0, 2.0, 2.0], requires_grad=True)
    with pytest.raises(RuntimeError, match="derivative for '_unique2' is not implemented"):
        torch.unique(x)
    assert torch.unique(x.detach()).tolist() == [1.0, 2.0]


def test_grids_are_made_of_vectors_of_one_type() -> None:
    with pytest.raises(RuntimeError, match="Expected 0D or 1D tensor"):
        torch.meshgrid(torch.ones((2, 2)), torch.ones(3), indexing="ij")
    with pytest.raises(RuntimeError, match="same dtype"):
        torch.meshgrid(torch.ones(2), torch.arange(3), indexing="ij")
    with pytest.raises(RuntimeError, match="non-empty"):
        torch.meshgrid(indexing="ij")


def test_numbers_can_be_the_first_operand() -> None:
    for made, expected, dtype in (
        (torch.add(1, 5), 6, torch.int64),
        (torch.add(1, 5, alpha=2), 11, torch.int64),
        (torch.add(input=1.5, other=5), 6.5, torch.float32),
        (torch.add(True, False), True, torch.bool),
        (torch.sub(1, 5), -4, torch.int64),
        (torch.mul(2, 3), 6, torch.int64),
        (torch.div(1, 2), 0.5, torch.float32),
        (torch.floor_divide(7, 2), 3, torch.int64),
        (torch.multiply(2, 3), 6, torch.int64),
        (torch.subtract(2, 3), -1, torch.int64),
        (torch.divide(1, 2), 0.5, torch.float32),
        (torch.true_divide(1, 2), 0.5, torch.float32),
    ):
        assert (made.item(), made.dtype, made.dim()) == (expected, dtype, 0)
    assert torch.add(1, torch.ones(2)).tolist() == [2.0, 2.0]
    with pytest.raises(TypeError, match=r"add\(\): argument 'input' \(position 1\) must be Tensor"):
        torch.add("a", 1)  # type: ignore[arg-type]


def test_a_number_takes_no_operator() -> None:
    with mindprof.profile() as prof:
        torch.add(1, 5)
        torch.multiply(2, 3)
    assert [event.name for event in prof.events()] == ["aten::add", "aten::multiply", "aten::mul"]


@pytest.mark.parametrize("name", ["sum", "mean"])
def test_dimensions_that_are_none_are_another_operator_than_no_dimensions(name: str) -> None:
    x = torch.ones(2, 3, requires_grad=True)
    method, function = getattr(x, name), getattr(torch, name)
    node = name.capitalize() + "Backward"
    assert [made.grad_fn.name() for made in (method(), function(x))] == [node + "0"] * 2
    for made in (method(dim=None), method(None), function(x, dim=None), method(0)):
        assert made.grad_fn.name() == node + "1"
    assert method(dim=None, keepdim=True).shape == (1, 1)
    method(dim=None).backward()
    assert x.grad is not None
    assert x.grad.shape == (2, 3)
