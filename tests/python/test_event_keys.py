"""Events as mappings: the views, what steps they lie in, and that files and copies say the same."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path
from typing import Any

import mindprof
import pytest
from mindprof.profiler import profile, record_function, schedule
from mindprof.profiler_util import DeviceType, FunctionEvent

from tests.workloads import torch


def recorded() -> profile:
    """Profiles three steps without a schedule, with all that can be recorded."""
    x = torch.ones((2, 2))
    with profile(record_shapes=True, profile_memory=True, with_stack=True) as prof:
        x + x
        prof.step()
        with record_function("range"):
            x * x
        prof.step()
        x.sum()
    return prof


def dicts(events: Any) -> list[dict[str, Any]]:
    return [dict(event) for event in events]


def test_views_are_those_of_a_mapping() -> None:
    event: Any = next(event for event in recorded().events() if event.name == "aten::add")
    keys = list(event)
    assert keys[:3] == ["name", "kind", "device_type"]
    assert list(event.keys()) == keys
    assert list(event.values()) == [event[key] for key in keys]
    assert list(event.items()) == list(zip(keys, event.values(), strict=True))
    assert len(event) == len(keys) == len(dict(event))
    assert ("stack" in event, "other" in event, 3 in event) == (True, False, False)
    assert (event.get("name"), event.get("other"), event.get("other", 7)) == ("aten::add", None, 7)
    assert bool(event)


@pytest.mark.parametrize("key", ["other", "cpu_memory_allocated_", "", 0, None, ("name",)])
def test_other_keys_raise_with_the_key(key: Any) -> None:
    event: Any = recorded().events()[0]
    for asked in (event, FunctionEvent(0, "f", 1, 0.0, 1.0)):
        with pytest.raises(KeyError) as raised:
            asked[key]
        assert raised.value.args == (key,)


def test_a_file_says_what_the_recording_said(tmp_path: Path) -> None:
    prof = recorded()
    for name in ("trace.json", "trace.json.gz"):
        prof.export_chrome_trace(tmp_path / name)
        assert dicts(mindprof.load(tmp_path / name).events()) == dicts(prof.events())


def test_copies_say_what_the_recording_said() -> None:
    for event in recorded().events():
        assert dict(copy.copy(event)) == dict(event)
    event = recorded().events()[-1]
    assert dict(pickle.loads(pickle.dumps(event))) == dict(event)


def test_attributes_stay_torchs() -> None:
    event: Any = recorded().events()[0]
    event.name = "renamed"
    assert (event.name, event["name"]) != ("renamed", "renamed")
    assert event.device_type is DeviceType.CPU
    assert hash(event) == hash(event)


def test_steps_without_a_schedule_are_counted() -> None:
    steps = {event["step"]: event["name"] for event in recorded().events() if event["kind"] == "op"}
    assert steps.keys() == {0, 1, 2}
    assert (steps[0], steps[1]) == ("aten::add", "aten::mul")


def test_steps_of_a_schedule_are_those_recorded() -> None:
    x = torch.ones(2)
    with profile(schedule=schedule(wait=1, warmup=1, active=2, repeat=1)) as prof:
        for _ in range(6):
            x + x
            prof.step()
    found = [(event["kind"], event["step"]) for event in prof.events()]
    assert found == [("scope", 2), ("op", 2), ("scope", 3), ("op", 3)]


def test_a_profiler_that_starts_again_goes_on_counting() -> None:
    x = torch.ones(2)
    prof = profile(acc_events=True)
    for _ in range(2):
        prof.start()
        x + x
        prof.step()
        x * x
        prof.stop()
    found = sorted((event["step"], event["name"]) for event in prof.events())
    assert found == [(0, "aten::add"), (1, "aten::add"), (1, "aten::mul"), (2, "aten::mul")]


def test_kinds_of_what_traces_hold_beside() -> None:
    folder = Path(__file__).parents[1] / "goldens" / "h200-torch2.11"
    found: dict[str, set[str]] = {}
    for event in mindprof.load(folder / "gpt-full.trace.json.gz").events():
        found.setdefault(event["kind"], set()).add(event["device_type"])
    assert found["op"] == found["runtime"] == found["python_function"] == {"CPU"}
    assert found["kernel"] == {"CUDA"}
    assert "CPU" in found["scope"]


@pytest.mark.parametrize(
    ("arguments", "kind"),
    [
        ({}, "op"),
        ({"activity_type": "cpu_op"}, "op"),
        ({"is_user_annotation": True}, "scope"),
        ({"is_python_function": True}, "python_function"),
        ({"activity_type": "cuda_runtime"}, "runtime"),
        ({"activity_type": "gpu_memcpy", "device_type": DeviceType.CUDA}, "kernel"),
        ({"activity_type": "overhead"}, "other"),
    ],
)
def test_events_made_by_hand_answer_too(arguments: dict[str, Any], kind: str) -> None:
    event: Any = FunctionEvent(7, "f", 1, 0.5, 12.25, **arguments)
    step = FunctionEvent(8, "ProfilerStep#4", 1, 0.0, 20.0)
    event.cpu_parent = step
    assert (event["kind"], event["step"]) == (kind, 4)
    assert (event["start_ns"], event["end_ns"], event["duration_ns"]) == (500, 12250, 11750)
    assert ("correlation_id" in event) is (kind in ("op", "runtime", "kernel"))
    assert "stack" not in event
    assert event.get("device_type") == event.device_type.name
