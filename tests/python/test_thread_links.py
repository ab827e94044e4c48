"""Links between threads survive files: which thread a backward node's forward ran on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import mindprof

ROUNDS = 4
FIRST, SECOND, BACKWARD = 1000, 2000, 3000
STREAM = 7


def operator(name: str, tid: int, begin: float, end: float, **arguments: Any) -> dict[str, Any]:
    return {
        "ph": "X",
        "cat": "cpu_op",
        "name": name,
        "pid": 50,
        "tid": tid,
        "ts": begin,
        "dur": end - begin,
        "args": arguments,
    }


def launch(correlation: int, external: int, tid: int, begin: float) -> list[dict[str, Any]]:
    """Returns a kernel, the call that launched it, and the arrow from one to the other."""
    call = operator("cudaLaunchKernel", tid, begin, begin + 1, correlation=correlation)
    call["cat"] = "cuda_runtime"
    call["args"]["External id"] = external
    kernel = operator("kernel", STREAM, begin + 2, begin + 4)
    kernel |= {"cat": "kernel", "pid": 0}
    kernel["args"] = {
        "External id": external,
        "correlation": correlation,
        "device": 0,
        "stream": STREAM,
    }
    arrow = {"cat": "ac2g", "name": "ac2g", "id": correlation}
    leaves = {**arrow, "ph": "s", "pid": 50, "tid": tid, "ts": begin}
    reaches = {**arrow, "ph": "f", "bp": "e", "pid": 0, "tid": STREAM, "ts": begin + 2}
    return [call, kernel, leaves, reaches]


def device_trace(folder: Path) -> Path:
    """Writes a trace whose forward ran on the second of the host's threads.

    ```text
    1000  [aten::fill_]
    2000                 [aten::sin          ]
    3000                                       [SinBackward0        ]
    GPU 7     (kernel)      (kernel)             (kernel)
    ```
    """
    forward = operator(
        "aten::sin",
        SECOND,
        110,
        120,
        **{"External id": 2, "Sequence number": 5, "Fwd thread id": 0},
    )
    node = operator(
        "SinBackward0",
        BACKWARD,
        130,
        140,
        **{"External id": 3, "Sequence number": 5, "Fwd thread id": 2},
    )
    arrow = {"cat": "fwdbwd", "name": "fwdbwd", "id": 1, "pid": 50}
    trace = {
        "deviceProperties": [{"id": 0, "name": "GPU"}],
        "traceEvents": [
            operator("aten::fill_", FIRST, 100, 105, **{"External id": 1}),
            *launch(10, 1, FIRST, 101),
            forward,
            *launch(11, 2, SECOND, 112),
            node,
            *launch(12, 3, BACKWARD, 132),
            {**arrow, "ph": "s", "tid": SECOND, "ts": 110},
            {**arrow, "ph": "f", "bp": "e", "tid": BACKWARD, "ts": 130},
        ],
    }
    path = folder / "0.json"
    path.write_text(json.dumps(trace))
    return path


def named(items: Any, name: str) -> Any:
    (found,) = (item for item in items if item.name == name)
    return found


def in_file(path: Path, name: str) -> dict[str, Any]:
    events = json.loads(path.read_text())["traceEvents"]
    (found,) = (event for event in events if event.get("name") == name and event["ph"] == "X")
    return dict(found)


def test_the_forward_thread_is_the_same_however_often_a_trace_is_written(tmp_path: Path) -> None:
    path = device_trace(tmp_path)
    for written in range(1, ROUNDS):
        loaded = mindprof.load(path)
        node, forward = (named(loaded.events(), name) for name in ("SinBackward0", "aten::sin"))
        assert (forward.thread, node.fwd_thread) == (2, 2), path.name
        path = tmp_path / f"{written}.json"
        loaded.export_chrome_trace(path)
        assert in_file(path, "SinBackward0")["args"]["Fwd thread id"] == 2, path.name


def test_the_arrow_is_the_same_however_often_a_trace_is_written(tmp_path: Path) -> None:
    path = device_trace(tmp_path)
    for written in range(1, ROUNDS):
        before, path = path, tmp_path / f"{written}.json"
        mindprof.load(before).export_chrome_trace(path)
        ends = [
            event
            for event in json.loads(path.read_text())["traceEvents"]
            if event.get("cat") == "fwdbwd"
        ]
        assert [(end["ph"], end["tid"]) for end in sorted(ends, key=lambda end: end["ts"])] == [
            ("s", SECOND),
            ("f", BACKWARD),
        ]


def test_a_thread_id_that_is_used_again_keeps_its_arrows(tmp_path: Path) -> None:
    """Two threads, one after the other under one id, whose numbers both begin at zero."""
    scopes = [
        ("aten::sin", 0, {"Fwd thread id": 0}),
        ("SinBackward0", 10, {"Fwd thread id": 1}),
        ("aten::cos", 20, {"Fwd thread id": 0}),
        ("CosBackward0", 30, {"Fwd thread id": 1}),
    ]
    events = [
        operator(name, FIRST, begin, begin + 5, **{"Sequence number": 0, **arguments})
        for name, begin, arguments in scopes
    ]
    path = tmp_path / "0.json"
    path.write_text(json.dumps({"traceEvents": events}))
    for written in range(1, ROUNDS):
        loaded = mindprof.load(path)
        path = tmp_path / f"{written}.json"
        loaded.export_chrome_trace(str(path))
        arrows = [
            event
            for event in json.loads(path.read_text())["traceEvents"]
            if event.get("cat") == "fwdbwd"
        ]
        ends = sorted((event["id"], event["ph"], event["ts"]) for event in arrows)
        starts = sorted(event["ts"] for event in arrows)
        assert [ts for _, _, ts in ends] == [starts[1], starts[0], starts[3], starts[2]]


def test_what_was_written_is_read_and_written_the_same(tmp_path: Path) -> None:
    goldens = Path(__file__).parents[1] / "goldens" / "h200-torch2.11"
    for name in ("gpt-full", "mlp-plain", "threads-full"):
        path = goldens / f"{name}.trace.json.gz"
        texts = []
        for _ in range(3):
            loaded = mindprof.load(path)
            path = tmp_path / "trace.json"
            loaded.export_chrome_trace(str(path))
            texts.append(path.read_text())
        assert texts[0] == texts[1] == texts[2]
