"""What a collector of torch's hands over becomes a part of the recording that ran beside it."""

from __future__ import annotations

import os
import threading
import time
from typing import Any

import mindprof
import pytest
from mindprof import _core
from mindprof._results.device_type import DeviceType
from mindprof._results.lists import events
from mindprof._settings.options import SessionOptions

DEFAULTS: dict[str, Any] = {
    "concrete_inputs": [],
    "device_index": os.getpid(),
    "device_type": DeviceType.CPU,
    "dtypes": [],
    "fwd_thread_id": 0,
    "is_async": False,
    "is_user_annotation": False,
    "linked_correlation_id": 0,
    "nbytes": 0,
    "scope": 0,
    "sequence_nr": -1,
    "shapes": [],
    "stack": [],
    "start_thread_id": 1,
}


class Raw:
    """A raw event of an older torch: it lacks the accessors that came later."""

    def __init__(self, number: int, name: str, start: int, end: int, **values: Any) -> None:
        values = {"device_resource_id": threading.get_native_id(), **DEFAULTS, **values}
        values["end_thread_id"] = values["start_thread_id"]
        values |= {"correlation_id": number, "name": name, "start_ns": start, "end_ns": end}
        for accessor, value in values.items():
            setattr(self, accessor, lambda value=value: value)


class Result:
    def __init__(self, *raw: Raw) -> None:
        self.raw = raw

    def events(self) -> list[Raw]:
        return list(self.raw)

    def trace_start_ns(self) -> int:
        return min((event.start_ns() for event in self.raw), default=1)  # type: ignore[attr-defined]


def kernel(number: int, start: int, end: int, link: int) -> Raw:
    return Raw(
        number,
        "gemm",
        start,
        end,
        device_type=DeviceType.CUDA,
        device_index=0,
        device_resource_id=7,
        linked_correlation_id=link,
    )


def call(number: int, name: str, start: int, end: int, link: int) -> Raw:
    return Raw(number, name, start, end, linked_correlation_id=link)


def record(*raw: Raw, stacks: bool = False, **options: Any) -> _core.Profile:
    return _core.Session(SessionOptions(**options)).stop_with(Result(*raw), stacks)


def rows(profile: _core.Profile) -> dict[str, Any]:
    return {row.key: row for row in events([profile]).key_averages()}


def test_an_operator_has_the_time_of_its_kernels() -> None:
    """aten::mm calls the runtime, which launches a kernel on the device."""
    profile = record(
        Raw(5, "aten::mm", 1000, 9000),
        call(60, "cudaLaunchKernel", 2000, 4000, link=5),
        kernel(60, 10_000, 13_000, link=5),
    )
    found = rows(profile)
    assert found["aten::mm"].device_time_total == 3
    assert found["aten::mm"].self_cpu_time_total == 6
    assert found["gemm"].self_device_time_total == 3
    assert profile.lost == 0


def test_a_launch_without_its_kernel_is_lost() -> None:
    calls = [
        call(60, "cudaLaunchKernel", 2000, 4000, link=5),
        call(61, "cudaLaunchKernelExC", 4000, 5000, link=5),
        call(63, "cuLaunchCooperativeKernel", 5000, 5500, link=5),
        call(62, "cudaDeviceSynchronize", 6000, 7000, link=0),
    ]
    lost = record(Raw(5, "aten::mm", 1000, 9000), *calls, kernel(60, 10_000, 13_000, link=5))
    assert lost.lost == 2


def test_of_launches_into_a_graph_nothing_is_known() -> None:
    captured = record(
        call(60, "cudaStreamBeginCapture", 1000, 2000, link=0),
        call(61, "cudaLaunchKernel", 2000, 4000, link=0),
    )
    assert captured.lost == 0


def test_numbers_of_the_runtime_are_not_those_of_scopes() -> None:
    """Calls that nobody asked for, their work, and the collector's own have operators' numbers."""
    profile = record(
        Raw(5, "aten::mm", 1000, 9000),
        Raw(6, "aten::relu", 9100, 9200),
        call(5, "cudaDeviceSynchronize", 9500, 9700, link=0),
        call(6, "cudaLaunchKernel", 9700, 9800, link=0),
        kernel(6, 14_000, 15_000, link=0),
        call(5, "urEnqueueUSMFill", 9900, 9950, link=0),
        Raw(5, "Activity Buffer Request", 1500, 1600, device_index=-1, device_resource_id=0),
        kernel(60, 10_000, 13_000, link=5),
    )
    found = rows(profile)
    assert found["aten::mm"].device_time_total == 3
    assert found["aten::relu"].device_time_total == 0
    assert found["gemm"].self_device_time_total == 4
    assert found["cudaDeviceSynchronize"].device_time_total == 0
    assert found["urEnqueueUSMFill"].device_time_total == 0
    assert found["Activity Buffer Request"].device_time_total == 0
    # Where the collector did that is not told: it takes no time from an operator.
    assert found["aten::mm"].self_cpu_time_total == 8


def test_a_call_that_nobody_asked_for_is_on_the_thread_that_made_it() -> None:
    """torch counts it to the first thread, where it would take time from what runs there."""
    profile = record(
        Raw(5, "main", 1000, 9000, device_resource_id=71, is_user_annotation=True),
        Raw(6, "aten::mm", 2000, 3000, device_resource_id=72, start_thread_id=2),
        Raw(9, "cudaMalloc", 2100, 2900, device_resource_id=72, start_thread_id=1),
        Raw(10, "cudaFree", 4000, 5000, device_resource_id=73, start_thread_id=1),
    )
    found = {event.name: event for event in events([profile])}
    assert found["cudaMalloc"].cpu_parent.name == "aten::mm"
    assert found["cudaFree"].cpu_parent is None
    assert found["main"].self_cpu_time_total == 8
    assert len({event.thread for event in found.values()}) == 3


def test_ranges_of_ours_and_of_torchs_are_on_one_axis() -> None:
    session = _core.Session(SessionOptions())
    with mindprof.record_function("around"):
        start = time.time_ns()
        time.sleep(0.002)
    middle = start + 500_000
    profile = session.stop_with(Result(Raw(1, "aten::mm", middle, middle + 1000)), False)
    parents = {
        event.name: event.cpu_parent and event.cpu_parent.name for event in events([profile])
    }
    assert parents == {"around": None, "aten::mm": "around"}


def test_inputs_and_stacks_are_read_where_they_are_wanted() -> None:
    given = {
        "shapes": [[2, 3], [], [], []],
        "dtypes": ["float", "Scalar", "ScalarList", "TensorList"],
        "concrete_inputs": [None, 2, [1, 2], None],
        "structured_input_shapes": [[2, 3], [], [], [[4], [5, 6]]],
        "structured_input_strides": [[3, 1], [], [], [[1], [6, 1]]],
        "kwinputs": {"alpha": 3},
        "stack": ["f.py(2): g", "f.py(1): f"],
    }
    raw = Raw(1, "aten::op", 1000, 2000, **given)
    [plain] = events([record(raw)])
    assert (plain.input_shapes, plain.stack) == ([], [])
    [full] = events([record(raw, record_shapes=True, stacks=True)])
    assert full.input_shapes == [[2, 3], [], [], []]
    assert full.concrete_inputs == [None, 2, [1, 2], None]
    assert full.structured_input_strides == [[3, 1], [], [], [[1], [6, 1]]]
    assert full.kwinputs == {"alpha": 3}
    assert full.stack == ["f.py(2): g", "f.py(1): f"]


def test_results_that_fail_are_told_of_and_the_window_is_closed() -> None:
    session = _core.Session(SessionOptions())
    with pytest.raises(RuntimeError, match="Got negative correlation id -1"):
        session.stop_with(Result(Raw(1, "aten::mm", 1000, 2000, linked_correlation_id=-1)), False)
    assert not _core.is_profiling()
    assert len(session.stop()) == 0
