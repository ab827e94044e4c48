"""torch's process-wide switches and keyword values, as exported traces show them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import mindprof
import pytest
import torch  # type: ignore[import-not-found]

SWITCHES = torch._C._profiler


def written(prof: mindprof.profile, folder: Path) -> list[dict[str, Any]]:
    path = folder / "trace.json"
    prof.export_chrome_trace(str(path))
    events: list[dict[str, Any]] = json.loads(path.read_text())["traceEvents"]
    return events


@pytest.mark.parametrize("enabled", [True, False])
def test_forward_arrows_follow_the_switch_of_torch(tmp_path: Path, enabled: bool) -> None:
    weight = torch.ones(3, requires_grad=True)
    try:
        SWITCHES._set_fwd_bwd_enabled_val(enabled)
        with mindprof.profile() as prof:
            (weight * 2).sum().backward()
        events = written(prof, tmp_path)
    finally:
        SWITCHES._set_fwd_bwd_enabled_val(True)
    assert any(event.get("cat") == "fwdbwd" for event in events) == enabled
    assert any(event["name"].endswith("MulBackward0") for event in events)


def test_a_stream_that_is_no_number_is_left_out_as_in_torch(tmp_path: Path) -> None:
    x = torch.ones(2)
    with mindprof.profile(record_shapes=True) as prof:
        with SWITCHES._RecordFunctionFast("named", [x], {"stream": "main", "grid": "g"}):
            x + 1
        with SWITCHES._RecordFunctionFast("numbered", [x], {"stream": 3, "grid": "g"}):
            x + 1
    arguments = {event["name"]: event.get("args", {}) for event in written(prof, tmp_path)}
    assert "stream" not in arguments["named"]
    assert arguments["named"]["grid"] == "g"
    assert arguments["numbered"]["stream"] == 3
