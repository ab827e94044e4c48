"""Names that everyday programs use: values, gradients and layers against torch's."""

from __future__ import annotations

import json
import math
import pickle
from pathlib import Path
from typing import Any

import mindtorch_v2 as torch
import pytest
from mindtorch_v2 import nn

from tests.host.names import CASES, LAYERS, run_case, run_layer
from tests.python.host_fixtures.compare import near, operators

HOST = Path(__file__).parents[1] / "host"
RECORDED: dict[str, Any] = json.loads((HOST / "names.json").read_text())


@pytest.mark.parametrize("name", list(CASES))
def test_values_and_gradients_are_torchs(name: str) -> None:
    assert run_case(torch, name) == near(RECORDED["cases"][name])


@pytest.mark.parametrize("name", list(LAYERS))
def test_layers_are_torchs(name: str) -> None:
    assert run_layer(torch, name) == near(RECORDED["layers"][name])


def test_operators_are_those_of_torch() -> None:
    x = torch.ones(2, 3, requires_grad=True)
    assert operators(lambda: torch.nn.functional.silu(x)) == ["aten::silu"]
    assert operators(lambda: x.topk(2)) == ["aten::topk"]
    place = torch.zeros(2, 1, dtype=torch.int64)
    scattered = operators(lambda: torch.zeros_like(place).scatter_(1, place, 1))
    assert scattered[-2:] == ["aten::scatter_", "  aten::to"]
    outer = operators(lambda: torch.outer(torch.ones(2), torch.ones(2)))
    assert outer[-4:] == ["aten::outer", "  aten::reshape", "    aten::view", "  aten::mul"]
    assert operators(lambda: torch.einsum("ij->ji", x))[0] == "aten::einsum"


def test_topk_and_sort_name_what_they_return() -> None:
    found = torch.tensor([3.0, 1.0, 2.0]).sort()
    assert found.values.tolist() == [1.0, 2.0, 3.0]
    assert found.indices.tolist() == [1, 2, 0]
    with pytest.raises(RuntimeError, match="selected index k out of range"):
        torch.ones(2).topk(3)
    order = torch.tensor([math.nan, 1.0, math.inf]).sort().indices.tolist()
    assert order == [1, 2, 0]


def test_scatter_checks_what_it_is_given() -> None:
    with pytest.raises(RuntimeError, match="same number of dimensions"):
        torch.ones(2, 2).scatter(0, torch.tensor([0]), torch.ones(1))
    with pytest.raises(RuntimeError, match="out of bounds"):
        torch.ones(2).scatter(0, torch.tensor([5]), torch.ones(1))
    with pytest.raises(RuntimeError, match=r"Expected self\.dtype to be equal to src\.dtype"):
        torch.ones(2).scatter(0, torch.tensor([1]), torch.ones(1, dtype=torch.float64))


def test_einsum_says_what_is_wrong() -> None:
    x = torch.ones(2, 3)
    with pytest.raises(ValueError, match="more operands"):
        torch.einsum("ij", x, x)
    with pytest.raises(RuntimeError, match="does not broadcast"):
        torch.einsum("ij,jk->ik", x, x)


def test_gradients_are_clipped() -> None:
    weights = [torch.ones(3, requires_grad=True), torch.ones(2, requires_grad=True)]
    (weights[0].sum() * 3 + weights[1].sum() * 4).backward()
    total = nn.utils.clip_grad_norm_(weights, 1.0)
    assert total.item() == pytest.approx(math.sqrt(27 + 32), rel=1e-5)
    gradients = [weight.grad for weight in weights if weight.grad is not None]
    assert nn.utils.get_total_norm(gradients).item() == pytest.approx(1, rel=1e-4)
    nn.utils.clip_grad_value_(weights, 0.4)
    assert gradients[0].tolist() == pytest.approx([3 / math.sqrt(59)] * 3, rel=1e-4)
    assert gradients[1].tolist() == pytest.approx([0.4] * 2)
    assert nn.utils.clip_grad_norm_([torch.ones(1)], 1.0).item() == 0.0


def test_parameters_as_a_vector_and_back() -> None:
    model = nn.Linear(2, 1)
    vector = nn.utils.parameters_to_vector(model.parameters())
    nn.utils.vector_to_parameters(vector * 2, model.parameters())
    doubled = nn.utils.parameters_to_vector(model.parameters())
    assert doubled.tolist() == pytest.approx((vector * 2).tolist())


def test_attention_takes_masks() -> None:
    layer = nn.MultiheadAttention(4, 2, batch_first=True)
    x = torch.randn(2, 3, 4)
    causal = torch.ones(3, 3, dtype=torch.bool).triu(1)
    _, weights = layer(x, x, x, attn_mask=causal)
    assert weights is not None
    assert weights[0][0].tolist()[1:] == [0.0, 0.0]
    padding = torch.tensor([[False, False, True]] * 2)
    _, weights = layer(x, x, x, key_padding_mask=padding)
    assert weights is not None
    assert weights[:, :, 2].abs().sum().item() == 0.0
    plain, none = layer(x, x, x, need_weights=False)
    assert none is None
    assert plain.tolist() == near(layer(x, x, x)[0].tolist())


def test_tensors_modules_and_optimizers_are_pickled() -> None:
    tensor = torch.arange(6).reshape(2, 3).t()
    again = pickle.loads(pickle.dumps(tensor))
    assert again.tolist() == tensor.tolist()
    assert again.dtype == tensor.dtype
    model = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))
    optimizer = torch.optim.Adam(model.parameters())
    model(torch.randn(4, 2)).sum().backward()
    optimizer.step()
    copy, states = pickle.loads(pickle.dumps((model, optimizer.state_dict())))
    assert isinstance(copy[0].weight, nn.Parameter)
    assert copy[0].weight.requires_grad
    x = torch.randn(4, 2)
    assert copy(x).tolist() == model(x).tolist()
    fresh = torch.optim.Adam(copy.parameters())
    fresh.load_state_dict(states)
    assert fresh.state_dict()["state"][0]["step"].item() == 1.0
    result = torch.ones(2, requires_grad=True) * 2
    with pytest.raises(RuntimeError, match="detach"):
        pickle.dumps(result)


def test_second_derivatives_say_what_to_do() -> None:
    x = torch.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match=r"first derivatives only.*docs/runtime\.md"):
        torch.autograd.grad((x * x).sum(), x, create_graph=True)


def test_versions_and_threads() -> None:
    import mindprof

    assert torch.__version__ == mindprof.__version__
    assert torch.get_num_threads() >= 1
    with pytest.raises(RuntimeError, match="positive integer"):
        torch.set_num_threads(0)
