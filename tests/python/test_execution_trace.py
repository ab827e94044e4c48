"""The execution trace of a training step, node by node against torch's own."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.runtime

ROOT = Path(__file__).parents[2]
TORCHS = ROOT / "tests" / "host" / "mlp.execution.json.gz"
PROGRAM = """
import sys
import mindtorch_v2
from tests.host.execution import write_trace
write_trace(mindtorch_v2, sys.argv[1])
"""


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Writes the trace in a process of its own, in which sequence numbers count from zero."""
    path = tmp_path_factory.mktemp("execution") / "trace.json"
    subprocess.run([sys.executable, "-c", PROGRAM, str(path)], cwd=ROOT, check=True)
    return path


def read(path: Path) -> dict[str, Any]:
    text = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    trace: dict[str, Any] = json.loads(text)
    return trace


def comparable(trace: dict[str, Any]) -> list[dict[str, Any]]:
    """Returns the nodes in the order in which they began, with numbers of nodes for ids.

    torch knows tensors and storages by addresses, which it uses again: what they are called is left
    out, and which of a node's tensors share a storage is kept.
    """
    nodes = sorted(trace["nodes"], key=lambda node: int(node["id"]))
    places = {node["id"]: place for place, node in enumerate(nodes)}
    found = []
    for node in nodes:
        attributes = {entry["name"]: entry["value"] for entry in node["attrs"]}
        attributes["fw_parent"] = places.get(attributes["fw_parent"])
        storages: list[int] = []
        found.append(
            {
                "name": node["name"],
                "parent": places[node["ctrl_deps"]],
                "attributes": attributes,
                "types": {entry["name"]: entry["type"] for entry in node["attrs"]},
                "inputs": values(node["inputs"], storages),
                "outputs": values(node["outputs"], storages),
            }
        )
    return found


def values(lists: dict[str, Any], storages: list[int]) -> dict[str, Any]:
    def shown(value: Any, kind: str) -> Any:
        if kind.startswith("GenericList[Tensor("):
            return [shown(item, "Tensor(") for item in value]
        if not kind.startswith("Tensor("):
            return value
        if value[1] not in storages:
            storages.append(value[1])
        return [storages.index(value[1]), *value[2:]]

    pairs = zip(lists["values"], lists["types"], strict=True)
    return {**lists, "values": [shown(value, kind) for value, kind in pairs]}


def test_every_node_is_torchs(trace: Path) -> None:
    ours, torchs = comparable(read(trace)), comparable(read(TORCHS))
    assert [node["name"] for node in ours] == [node["name"] for node in torchs]
    for own, other in zip(ours, torchs, strict=True):
        assert own == other


def test_it_says_about_itself_what_torch_says(trace: Path) -> None:
    ours, torchs = read(trace), read(TORCHS)
    assert list(ours) == list(torchs)
    assert ours["schema"] == torchs["schema"]
    assert ours["start_ts"] <= ours["finish_ts"]
    order = [node["name"] for node in ours["nodes"]]
    assert order == [node["name"] for node in torchs["nodes"]]


@pytest.mark.parametrize("whose", ["ours", "torchs"])
def test_verify_reads_it_back(trace: Path, whose: str) -> None:
    path = trace if whose == "ours" else TORCHS
    command = [sys.executable, "-m", "mindprof", "verify", "--json", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    said = json.loads(done.stdout)
    assert said["clean"]
    assert said["execution_trace"]["nodes"] == 128
    assert said["execution_trace"]["threads"] == 1


def test_verify_says_what_is_wrong(trace: Path, tmp_path: Path) -> None:
    broken = read(trace)
    broken["nodes"][3]["ctrl_deps"] = 999999
    path = tmp_path / "broken.json"
    path.write_text(json.dumps(broken))
    command = [sys.executable, "-m", "mindprof", "verify", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "a node's parent is not there" in done.stdout


def test_a_chrome_trace_of_the_same_time_has_the_same_ids(tmp_path: Path) -> None:
    import mindtorch_v2 as torch

    file, traced = tmp_path / "execution.json", tmp_path / "trace.json"
    observer = torch.profiler.ExecutionTraceObserver().register_callback(str(file))
    x = torch.ones(2, 3, requires_grad=True)
    with (
        torch.profiler.profile(execution_trace_observer=observer) as prof,
        torch.profiler.record_function("mine"),
    ):
        (x * 2).sum().backward()
    prof.export_chrome_trace(traced)
    nodes = [
        (node["name"], {a["name"]: a["value"] for a in node["attrs"]})
        for node in read(file)["nodes"]
    ]
    wanted = {a["rf_id"]: name for name, a in nodes if not name.startswith("[pytorch|")}
    events = read(traced)["traceEvents"]
    scopes = [event for event in events if event.get("cat") in ("cpu_op", "user_annotation")]
    found = {event["args"]["Record function id"]: event["name"] for event in scopes}
    assert len(found) == len(scopes) > 5
    assert found == wanted
    with torch.profiler.profile() as prof:
        x * 2
    prof.export_chrome_trace(traced)
    events = [event for event in read(traced)["traceEvents"] if event.get("cat") == "cpu_op"]
    assert {event["args"]["Record function id"] for event in events} == {0}
