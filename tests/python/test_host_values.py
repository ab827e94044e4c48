"""Losses, gradients and parameters after five optimizer steps equal torch's."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import mindtorch_v2 as torch
import pytest

HOST = Path(__file__).parent.parent / "host"
pytest.importorskip("mindtorch_v2.optim")

from tests.host.workloads import WORKLOADS  # noqa: E402

KNOWN: dict[str, Any] = json.loads((HOST / "values.json").read_text())
TOLERANCE = 1e-4
# A number of eight bits, rounded in another order of summation, may be its neighbour.
NARROW_TOLERANCE = 2.0**-6

# What has no gradient but rounding: a bias in front of a normalisation, and the bias of attention's
# keys. Adam makes steps of full size of it.
ROUNDING = {
    ("cnn", "gradients"): ("0.bias",),
    ("cnn_autocast", "gradients"): ("0.bias",),
    ("gpt", "parameters"): ("attend.bias",),
    ("gpt_autocast", "parameters"): ("attend.bias",),
}


def sample(tensor: torch.Tensor) -> list[float]:
    flat = tensor.flatten().tolist()
    last = len(flat) - 1
    places = [index * last // 7 for index in range(8)] if last >= 7 else [0]
    size = sum(x * x for x in flat) ** 0.5
    return [size, *(flat[place] for place in places)]


def close(found: list[float], known: list[float], count: int, tolerance: float) -> bool:
    # Single elements are as exact as elements of the tensor's usual size.
    usual = known[0] / count**0.5
    pairs = zip(found, known, strict=True)
    return all(abs(x - y) <= tolerance * max(abs(y), usual) for x, y in pairs)


@pytest.mark.parametrize("name", WORKLOADS)
def test_five_steps_of_training_equal_torchs(name: str) -> None:
    workload = WORKLOADS[name](torch)
    tolerance = NARROW_TOLERANCE if workload.autocast else TOLERANCE
    losses = [workload.step().item() for _ in KNOWN[name]["losses"]]
    assert losses == pytest.approx(KNOWN[name]["losses"], rel=tolerance)
    for parameter_name, parameter in workload.model.named_parameters():
        for kind, tensor in (("gradients", parameter.grad), ("parameters", parameter.detach())):
            if parameter_name.endswith(ROUNDING.get((name, kind), ("-",))):
                continue
            known = KNOWN[name][kind][parameter_name]
            assert close(sample(tensor), known, tensor.numel(), tolerance), (
                name,
                kind,
                parameter_name,
            )
