"""Expressions on tensors: printed, or raised, exactly as torch does."""

from __future__ import annotations

import json
from pathlib import Path

import mindtorch_v2 as torch
import pytest

from tests.host.record_expressions import names, outcome

HOST = Path(__file__).parent.parent / "host"


KNOWN: dict[str, list[str]] = json.loads((HOST / "expressions.json").read_text())


@pytest.mark.parametrize("expression", KNOWN)
def test_an_expression_gives_what_torch_gives(expression: str) -> None:
    found, known = outcome(expression, names(torch)), KNOWN[expression]
    assert found[:-1] == known[:-1]
    # A message may say more than torch's.
    assert found[-1] == known[-1] or (len(known) == 2 and found[-1].startswith(known[-1]))


def test_memory_that_is_not_there_is_an_error() -> None:
    with pytest.raises(
        RuntimeError, match=r"can't allocate memory: you tried to allocate \d+ bytes"
    ):
        torch.empty(1 << 55)
