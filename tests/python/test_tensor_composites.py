"""Operators made of others, against torch: one to five dimensions, with and without gradients."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import mindtorch_v2 as torch
import pytest

from tests.host import composites

KNOWN: dict[str, dict[str, Any]] = json.loads(
    (Path(__file__).parent.parent / "host" / "composites.json").read_text()
)
WHERE = composites.WHERE


def close(expected: Any) -> Any:
    """Returns what compares equal to numbers that were rounded, however nested."""
    if isinstance(expected, dict):
        return {key: close(value) for key, value in expected.items()}
    if isinstance(expected, list):
        return [close(value) for value in expected]
    if isinstance(expected, float):
        return pytest.approx(expected, rel=1e-5, abs=2e-5)
    return expected


@pytest.mark.parametrize("where", WHERE)
@pytest.mark.parametrize("name", composites.CASES)
def test_values_and_gradients_are_those_of_torch(name: str, where: str) -> None:
    found, known = composites.run(torch, name, where, tracked=True), KNOWN[name][where]
    if known.get("gradients") == composites.REFUSED:
        assert found["gradients"] != composites.REFUSED  # torch's backward asks for more order
        assert found["output"] == close(known["output"])
    else:
        assert found == close(known)


@pytest.mark.parametrize("where", WHERE)
@pytest.mark.parametrize("name", composites.CASES)
def test_values_are_the_same_without_gradients(name: str, where: str) -> None:
    known = KNOWN[name][where]
    expected = close({key: known[key] for key in known if key != "gradients"})
    assert composites.run(torch, name, where, tracked=False) == expected
    with torch.no_grad():
        assert composites.run(torch, name, where, tracked=False) == expected


def test_every_case_is_recorded() -> None:
    assert list(KNOWN) == list(composites.CASES)
    assert all(list(found) == WHERE for found in KNOWN.values())


def test_a_truth_value_without_dimensions_takes_or_leaves_the_whole() -> None:
    single = torch.tensor(2.0)
    single[single < 1] = 5.0
    assert single.item() == 2.0
    assert single[torch.tensor(False)].tolist() == []
    assert single[torch.tensor(True)].tolist() == [2.0]
    assert torch.zeros((2, 3))[torch.tensor(True)].shape == (1, 2, 3)
    several = torch.zeros((3,))
    several[torch.tensor(False)] = 5.0
    assert several.tolist() == [0.0, 0.0, 0.0]
    several[torch.tensor(True)] = 5.0
    assert several.tolist() == [5.0, 5.0, 5.0]


def test_the_sign_of_what_is_neither_positive_nor_negative_is_zero() -> None:
    signs = torch.tensor([float("nan"), -0.0, 0.0, 2.0, -3.0]).sign().tolist()
    assert [str(sign) for sign in signs] == ["0.0", "0.0", "0.0", "1.0", "-1.0"]


def test_gradients_flow_to_tensors_without_elements() -> None:
    empty = torch.zeros((0, 3), requires_grad=True)
    empty.sum().backward()
    assert empty.grad is not None
    assert empty.grad.shape == (0, 3)
