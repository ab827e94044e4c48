"""Layers and losses against what torch did, their text, their state and how they start."""

from __future__ import annotations

import math
from typing import Any

import mindtorch_v2 as torch
import pytest
from mindtorch_v2 import nn

from tests.python.host_fixtures import cases
from tests.python.host_fixtures.compare import RECORDED, near


@pytest.mark.parametrize("name", list(cases.MODULES))
def test_text_and_state_are_those_of_torch(name: str) -> None:
    module = cases.MODULES[name](nn)
    expected = RECORDED["modules"][name]
    assert repr(module) == expected["text"]
    assert list(module.state_dict()) == list(expected["state"])
    assert {k: list(v.shape) for k, v in module.state_dict().items()} == expected["state"]


def test_layers_compute_what_torch_computes() -> None:
    found = cases.run_modules(torch)
    for name, expected in RECORDED["outputs"].items():
        assert found[name] == near(expected), name


@pytest.mark.parametrize(
    ("name", "momentum"), [("batch norm", 0.1), ("batch norm without momentum", None)]
)
def test_batch_norm_keeps_the_statistics_of_torch(name: str, momentum: float | None) -> None:
    assert cases.run_batch_norm(torch, momentum) == near(RECORDED[name])


def test_batch_norm_without_statistics_uses_the_batch_in_both_modes() -> None:
    norm = nn.BatchNorm2d(3, track_running_stats=False)
    batch = cases.values(torch, (2, 3, 2, 2), 1)
    trained = norm(batch).tolist()
    assert norm.eval()(batch).tolist() == trained


def test_dropout_works_while_training_only() -> None:
    torch.manual_seed(0)
    dropout = nn.Dropout(0.5)
    ones = torch.ones(1000)
    kept = [value for value in dropout(ones).tolist() if value != 0]
    assert set(kept) == {2.0}
    assert 400 < len(kept) < 600
    assert dropout.eval()(ones).tolist() == ones.tolist()


def test_a_padding_row_starts_as_zeros() -> None:
    assert nn.Embedding(3, 2, padding_idx=-1).weight[2].tolist() == [0.0, 0.0]


def test_an_embedding_can_be_made_of_a_table() -> None:
    table = torch.ones(3, 2)
    embedding = nn.Embedding.from_pretrained(table)
    assert not embedding.weight.requires_grad
    assert embedding(torch.tensor([2])).tolist() == [[1.0, 1.0]]
    assert nn.Embedding.from_pretrained(table, freeze=False).weight.requires_grad


@pytest.mark.parametrize("layer", [nn.Linear(64, 100), nn.Conv2d(16, 100, 2)])
def test_weights_start_uniform_within_the_root_of_the_inputs(layer: Any) -> None:
    bound = 1 / math.sqrt(64)
    for parameter in (layer.weight, layer.bias):
        values = parameter.flatten().tolist()
        assert max(map(abs, values)) <= bound
        assert max(values) > 0.9 * bound
        assert min(values) < -0.9 * bound


def test_embeddings_start_normal() -> None:
    torch.manual_seed(0)
    values = nn.Embedding(100, 100).weight.flatten().tolist()
    mean = sum(values) / len(values)
    variance = sum((value - mean) ** 2 for value in values) / len(values)
    assert abs(mean) < 0.05
    assert abs(variance - 1) < 0.05


def test_gains_are_those_of_torch() -> None:
    gains = [nn.init.calculate_gain(name) for name in ("linear", "tanh", "relu", "selu")]
    assert gains == pytest.approx([1, 5 / 3, 1.4142135, 0.75])
    assert nn.init.calculate_gain("leaky_relu", math.sqrt(5)) == pytest.approx(math.sqrt(1 / 3))


@pytest.mark.parametrize("fill", ["xavier_normal_", "kaiming_normal_"])
def test_normal_starts_have_the_deviation_of_torch(fill: str) -> None:
    torch.manual_seed(0)
    values = getattr(nn.init, fill)(torch.empty(200, 100)).flatten().tolist()
    variance = sum(value**2 for value in values) / len(values)
    expected = 2 / 300 if fill == "xavier_normal_" else 2 / 100
    assert variance == pytest.approx(expected, rel=0.05)


@pytest.mark.parametrize(
    ("act", "error", "message"),
    [
        (lambda: nn.Dropout(2.0), ValueError, "has to be between 0 and 1, but got 2.0"),
        (lambda: nn.Conv2d(3, 4, 3, groups=2), ValueError, "in_channels must be divisible by"),
        (lambda: nn.Conv2d(4, 3, 3, groups=2), ValueError, "out_channels must be divisible by"),
        (lambda: nn.Conv2d(4, 3, 3, groups=0), ValueError, "groups must be a positive integer"),
        (lambda: nn.Conv2d(3, 4, 3, padding="x"), ValueError, "Invalid padding string 'x'"),
        (
            lambda: nn.Conv2d(3, 4, 3, padding="same", stride=2),
            ValueError,
            "padding='same' is not supported for strided convolutions",
        ),
        (lambda: nn.Conv2d(3, 4, 3, padding_mode="x"), ValueError, "padding_mode must be one of"),
        (
            lambda: nn.Conv2d(3, 4, 3, padding_mode="reflect"),
            NotImplementedError,
            "padding_mode='reflect' is not supported",
        ),
        (
            lambda: nn.Embedding(3, 4, padding_idx=5),
            AssertionError,
            "Padding_idx must be within num_embeddings",
        ),
        (
            lambda: nn.Embedding(3, 4, _weight=torch.ones(2, 2)),
            AssertionError,
            "Shape of weight does not match num_embeddings and embedding_dim",
        ),
        (lambda: nn.Embedding(3, 4, sparse=True), NotImplementedError, "sparse"),
        (
            lambda: nn.BatchNorm2d(3)(torch.ones(2, 3)),
            ValueError,
            "expected 4D input (got 2D input)",
        ),
        (lambda: nn.init.calculate_gain("x"), ValueError, "Unsupported nonlinearity x"),
        (
            lambda: nn.init.calculate_gain("leaky_relu", True),
            ValueError,
            "negative_slope True not a valid number",
        ),
        (
            lambda: nn.init.kaiming_uniform_(torch.ones(3)),
            ValueError,
            "Fan in and fan out can not be computed",
        ),
        (
            lambda: nn.init.kaiming_uniform_(torch.ones(3, 3), mode="x"),
            ValueError,
            "Mode x not supported, please use one of ['fan_in', 'fan_out']",
        ),
    ],
)
def test_errors_are_those_of_torch(act: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error) as raised:
        act()
    assert message in str(raised.value)


def test_older_arguments_of_losses_are_warned_about() -> None:
    with pytest.warns(UserWarning, match="please use reduction='sum' instead"):
        loss = nn.MSELoss(size_average=False)
    assert loss.reduction == "sum"


def test_an_empty_weight_is_warned_about() -> None:
    with pytest.warns(UserWarning, match="Initializing zero-element tensors is a no-op"):
        nn.Linear(0, 4)
