"""The arguments of collectives, which torch writes to traces and to events of recordings.

No process group runs: a library that is compiled here opens the scopes that torch's process groups
open, with torch's own macros.
"""

from __future__ import annotations

import copy
import ctypes
import json
import pickle
import shutil
import subprocess
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mindprof
import pytest
import torch  # type: ignore[import-not-found]

SOURCE = Path(__file__).parent / "collectives" / "calls.cpp"
INCLUDED = Path(torch.__file__).parent / "include"
HEADER = INCLUDED / "torch/csrc/distributed/c10d/ParamCommsUtils.hpp"
COMPILER = shutil.which("g++") or shutil.which("clang++")
NAME = "record_param_comms"
KINETO_EVENT = torch._C._autograd._KinetoEvent

# torch counts the events of a collection, and numbers its scopes on if somebody asks for it.
OF_A_COLLECTION = {"External id", "Ev Idx", "Record function id", "Fwd thread id"}

Calls = ctypes.CDLL


@pytest.fixture(name="calls", scope="module")
def _calls(tmp_path_factory: pytest.TempPathFactory) -> Calls:
    if COMPILER is None:
        pytest.skip("no C++ compiler")
    if not HEADER.exists():
        pytest.skip("this torch has no collectives")
    library = tmp_path_factory.mktemp("collectives") / "calls.so"
    libraries = INCLUDED.parent / "lib"
    command = [COMPILER, "-std=c++20", "-shared", "-fPIC", f"-I{INCLUDED}"]
    command += [f"-I{INCLUDED / 'torch/csrc/api/include'}", str(SOURCE)]
    command += [f"-L{libraries}", "-ltorch_cpu", "-lc10", f"-Wl,-rpath,{libraries}"]
    done = subprocess.run([*command, "-o", str(library)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return ctypes.CDLL(str(library))


def exchange(
    calls: Calls, name: str, sequence: int, *, group: str = "0", about: str = "default_pg"
) -> None:
    number = ctypes.c_int64
    size = 40 if group == "dp" else 2
    texts = [text.encode() for text in (name, group, about)]
    calls.exchange(*texts, number(sequence), number(12), size)


def work(calls: Calls) -> None:
    """Runs collectives of all kinds."""
    torch.ones(2)
    for sequence in (5, 6):
        exchange(calls, "allreduce", sequence)
    exchange(calls, "all_to_allv", 7)
    exchange(calls, "send", 8, group="dp", about="")
    exchange(calls, "recv", 2**40, group="dp", about="mesh é")
    exchange(calls, "allgather", -1)
    calls.barrier(ctypes.c_int64(9))


def recorded(profile: Callable[..., Any], calls: Calls, **options: Any) -> Any:
    with profile(activities=[torch.profiler.ProfilerActivity.CPU], **options) as prof:
        work(calls)
    return prof


def arguments(prof: Any, path: Path) -> list[dict[str, Any]]:
    """Exports the trace of a recording and returns the arguments of its collectives."""
    prof.export_chrome_trace(str(path))
    events = json.loads(path.read_text(encoding="utf-8"))["traceEvents"]
    found = [event for event in events if event.get("name") == NAME and event["ph"] == "X"]
    found.sort(key=lambda event: event["ts"])
    return [
        {key: value for key, value in event["args"].items() if key not in OF_A_COLLECTION}
        for event in found
    ]


@pytest.mark.parametrize("record_shapes", [False, True])
def test_a_trace_has_the_arguments_that_torch_writes(
    calls: Calls, tmp_path: Path, record_shapes: bool
) -> None:
    options = {"record_shapes": record_shapes}
    torchs = recorded(torch.profiler.profile, calls, **options)
    ours = recorded(mindprof.profile, calls, **options)
    expected = arguments(torchs, tmp_path / "torch.json")
    found = arguments(ours, tmp_path / "ours.json")
    assert len(found) == 7
    assert found == expected


def test_loading_a_trace_keeps_them(calls: Calls, tmp_path: Path) -> None:
    ours = recorded(mindprof.profile, calls)
    expected = arguments(ours, tmp_path / "first.json")
    again = mindprof.load(tmp_path / "first.json")
    assert arguments(again, tmp_path / "second.json") == expected


def test_quotes_in_a_description_make_no_broken_trace(calls: Calls, tmp_path: Path) -> None:
    about = 'a "b" \\ c\n, "Seq": 7'
    with mindprof.profile(activities=[mindprof.ProfilerActivity.CPU]) as prof:
        exchange(calls, "allreduce", 3, about=about)
    [found] = arguments(prof, tmp_path / "trace.json")
    assert found["Seq"] == 3
    # torch 2.15 does not tell such a text.
    assert found["Process Group Description"] in (about, "None")


def test_a_scope_of_the_name_alone_has_no_arguments(calls: Calls, tmp_path: Path) -> None:
    with mindprof.profile(activities=[mindprof.ProfilerActivity.CPU]) as prof:
        calls.undescribed()
        with torch.profiler.record_function(NAME):
            exchange(calls, "allreduce", 3)
    found = arguments(prof, tmp_path / "trace.json")
    assert [event.get("Seq") for event in found] == [None, None, 3]


def test_a_small_recording_keeps_what_others_leave(calls: Calls, tmp_path: Path) -> None:
    """Two windows of one time each have the arguments of their own collectives."""
    activities = [mindprof.ProfilerActivity.CPU]
    with mindprof.profile(activities=activities) as outer:
        exchange(calls, "allreduce", 1)
        with mindprof.profile(activities=activities) as inner:
            exchange(calls, "allreduce", 2)
    numbers = [
        [event["Seq"] for event in arguments(prof, tmp_path / "trace.json")]
        for prof in (outer, inner)
    ]
    assert numbers == [[1, 2], [2]]


def told(event: Any) -> tuple[Any, Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        metadata = event.event_metadata
    return event.metadata, metadata


@pytest.mark.skipif(not hasattr(KINETO_EVENT, "typed_metadata"), reason="torch has no accessor")
def test_events_have_the_metadata_that_torchs_have(calls: Calls) -> None:
    profs = [recorded(profile, calls) for profile in (torch.profiler.profile, mindprof.profile)]
    raw, shown = [], []
    for prof in profs:
        events = prof.profiler.kineto_results.events()
        raw.append([(e.name(), e.extra_meta(), e.typed_metadata()) for e in events])
        events = [event for event in prof.events() if event.name == NAME]
        shown.append([told(event) for event in events])
    assert raw[0] == raw[1]
    assert len(shown[1]) == 7
    assert [tuple(map(str, pair)) for pair in shown[1]] == [
        (str(ordered(metadata, like)), str(former))
        for (metadata, former), (like, _) in zip(shown[0], shown[1], strict=True)
    ]
    assert shown[1][0][0]["Comms Id"] > 0


def ordered(metadata: dict[str, Any], like: dict[str, Any]) -> dict[str, Any]:
    assert metadata == like
    return {key: metadata[key] for key in like}


def test_a_copy_of_an_event_keeps_its_metadata(calls: Calls) -> None:
    prof = recorded(mindprof.profile, calls)
    [first, *_] = [event for event in prof.events() if event.name == NAME]
    assert copy.copy(first).metadata == pickle.loads(pickle.dumps(first)).metadata
    first.metadata = {"Seq": 1}
    assert first.metadata == {"Seq": 1}
    others = [event.metadata for event in prof.events() if event.name != NAME]
    assert others
    assert set(others) == {None}
