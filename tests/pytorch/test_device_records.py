"""Records from CUPTI make the profile that Kineto's results make, and disturb nobody."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
import types
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mindprof
import pytest
import torch  # type: ignore[import-not-found]
from mindprof import ProfilerActivity, _core
from mindprof._frameworks import device_records, kineto_collector

pytestmark = [
    pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA"),
    # Of threads that use CUDA first.
    pytest.mark.filterwarnings("ignore:Attempting to run cuBLAS:UserWarning"),
    # Of the second profiler of torch.
    pytest.mark.filterwarnings("ignore:Warning. Profiler clears events:UserWarning"),
]

BOTH = [ProfilerActivity.CPU, ProfilerActivity.CUDA]
#: The arguments that differ from run to run.
MEASURED = {"correlation", "memory bandwidth (GB/s)", "External id", "wait_on_cuda_event_id"}
#: The categories of what comes from devices.
OF_DEVICES = {"kernel", "gpu_memcpy", "gpu_memset", "cuda_runtime", "cuda_driver", "cuda_sync"}


def mixed() -> Callable[[], None]:
    """Returns a step with all kinds of device work, on two threads and streams, and a graph."""
    x = torch.randn(64, 64, device="cuda")
    side = torch.cuda.Stream()
    torch.cuda.synchronize()
    (x @ x).relu()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        (x @ x).relu()
    host = torch.ones(1000).pin_memory()

    def step() -> None:
        with torch.profiler.record_function("forward"):
            (x @ x).relu().sum().item()
        with torch.cuda.stream(side):
            x.clone()
        event = torch.cuda.Event()
        event.record(side)
        torch.cuda.current_stream().wait_event(event)
        host.cuda(non_blocking=True)
        torch.zeros(1000, dtype=torch.uint8, device="cuda")
        graph.replay()
        thread = threading.Thread(target=lambda: (x @ x).sum())
        thread.start()
        thread.join()
        torch.cuda.synchronize()

    for _ in range(3):
        step()
    return step


def record(step: Callable[[], None], **options: Any) -> Any:
    with mindprof.profile(activities=BOTH, **options) as prof:
        for _ in range(3):
            step()
    return prof


def device_events(prof: Any, path: Path) -> Counter[str]:
    """Counts the events of a trace that come from devices, with what does not change."""
    prof.export_chrome_trace(str(path))
    events = json.loads(path.read_text())["traceEvents"]

    def told(event: Any) -> str:
        arguments = event.get("args", {}).items()
        kept = {name: value for name, value in arguments if name not in MEASURED}
        # Graphs of Kineto have no nodes before torch 2.12.
        kept = {name: value for name, value in kept.items() if "graph" not in name}
        return json.dumps([event["cat"], event["name"], kept], sort_keys=True)

    return Counter(told(event) for event in events if event.get("cat") in OF_DEVICES)


@pytest.mark.skipif(
    tuple(map(int, torch.__version__.split(".")[:2])) > (2, 11),
    reason="torch tells more of a kernel from 2.12 on",
)
@pytest.mark.parametrize("way", ["alone", "with Kineto", "with waits"])
def test_traces_are_those_of_kinetos_results(
    way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    step = mixed()
    config = mindprof.ExperimentalConfig(enable_cuda_sync_events=way == "with waits")
    with monkeypatch.context() as patch:
        if way == "with Kineto":
            patch.setattr(kineto_collector, "can_be_alone", lambda options: False)
        told: list[str] = []
        patch.setattr(device_records, "_inform_once", told.append)
        ours = record(step, experimental_config=config)
        start = "device events come from CUPTI"
        expected_told = start if way == "alone" else f"{start}'s buffers, started by Kineto"
        assert told == [expected_told]
    monkeypatch.setattr(device_records, "_obstacle", lambda options: "a test")
    theirs = record(step, experimental_config=config)
    found = device_events(ours, tmp_path / "ours.json")
    expected = device_events(theirs, tmp_path / "theirs.json")
    assert found == expected
    assert ours.lost_events == theirs.lost_events == 0


def test_records_come_from_cuptis_buffers(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    monkeypatch.setattr(device_records, "_inform_once", told.append)
    x = torch.ones(4, device="cuda")
    with mindprof.profile(activities=BOTH) as prof:
        x + x
    assert told == ["device events come from CUPTI"]
    assert any(event.device_type.name == "CUDA" for event in prof.events())


def test_kineto_records_if_cupti_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    monkeypatch.setattr(device_records, "_inform_once", told.append)
    monkeypatch.setattr(device_records, "_refused", [])

    class Refusing:
        can_record_alone = staticmethod(lambda: True)
        other_threads_launch_graphs = staticmethod(lambda: False)

        def __new__(cls, budget: int, keeps_last: bool, is_alone: bool) -> Any:
            if is_alone:
                raise mindprof.ProfilerError("it refuses")
            return taken(budget, keeps_last, is_alone)

    taken = _core.DeviceRecords
    core = types.SimpleNamespace(DeviceRecords=Refusing, ProfilerError=mindprof.ProfilerError)
    monkeypatch.setattr(device_records, "_core", core)
    x = torch.ones(4, device="cuda")
    for _ in range(2):
        with mindprof.profile(activities=BOTH) as prof:
            x + x
        kernels = [event for event in prof.events() if event.device_type.name == "CUDA"]
        assert len(kernels) == 1
        assert prof.lost_events == 0
    assert set(told) == {"device events come from CUPTI's buffers, started by Kineto: it refuses"}


def test_it_records_alone_after_torchs_own_profiler(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    monkeypatch.setattr(device_records, "_inform_once", told.append)
    x = torch.ones(4, device="cuda")
    for _ in range(2):
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as theirs:
            x + x
        with mindprof.profile(activities=BOTH) as ours:
            x + x
        for prof in (theirs, ours):
            kernels = [event for event in prof.events() if event.device_type.name == "CUDA"]
            assert len(kernels) == 1
    assert told == ["device events come from CUPTI"] * 2


def test_launches_by_the_driver_are_calls_of_the_driver() -> None:
    plus_one = torch.cuda.jiterator._create_jit_fn(
        "template <typename T> T f(T x) { return x + 1; }"
    )
    x = torch.ones(4, device="cuda")
    plus_one(x)
    with mindprof.profile(activities=BOTH) as prof:
        plus_one(x)
        x + x
    names = Counter(event.name for event in prof.events())
    assert names["cuLaunchKernel"] == names["cudaLaunchKernel"] == 1


def test_many_calls_on_several_threads_are_all_recorded() -> None:
    x = torch.ones(4, device="cuda")

    def work() -> None:
        for _ in range(3_000):
            x + x

    with mindprof.profile(activities=BOTH) as prof:
        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    rows = {row.key: row for row in prof.key_averages()}
    assert rows["aten::add"].count == rows["cudaLaunchKernel"].count == 12_000
    kernels = sum(event.device_type.name == "CUDA" for event in prof.events())
    assert kernels == 12_000
    assert prof.lost_events == 0


def test_a_pause_leaves_out_what_runs_meanwhile() -> None:
    x = torch.ones(4, device="cuda")
    with mindprof.profile(activities=BOTH) as prof:
        x + x
        torch.cuda.synchronize()
        prof.toggle_collection_dynamic(False, [ProfilerActivity.CUDA])
        x * x
        torch.cuda.synchronize()
        prof.toggle_collection_dynamic(True, [ProfilerActivity.CUDA])
        x - x
    kernels = [event for event in prof.events() if event.device_type.name == "CUDA"]
    launches = [event for event in prof.events() if event.name == "cudaLaunchKernel"]
    assert len(kernels) == len(launches) == 2
    assert prof.lost_events == 0


def test_warm_ups_of_two_recordings_may_overlap() -> None:
    x = torch.ones(4, device="cuda")
    waits = mindprof.ExperimentalConfig(enable_cuda_sync_events=True)
    for first, second in [(None, waits), (waits, None)]:
        profs = [
            mindprof.profile(
                activities=BOTH,
                schedule=mindprof.schedule(wait=0, warmup=1, active=1),
                experimental_config=config,
            )
            for config in (first, second)
        ]
        for prof in profs:
            prof.start()
        profs[0].step()
        x + x
        profs[0].stop()
        names = Counter(event.name for event in profs[0].events())
        assert names["cudaLaunchKernel"] == 1
        on_device = [event for event in profs[0].events() if event.device_type.name == "CUDA"]
        assert len([event for event in on_device if "elementwise" in event.name]) == 1
        profs[1].stop()


def test_short_recordings_are_complete() -> None:
    x = torch.ones(4, 4, device="cuda")
    for _ in range(200):
        with mindprof.profile(activities=BOTH) as prof:
            for _ in range(10):
                x + x
        kernels = [event for event in prof.events() if event.device_type.name == "CUDA"]
        assert len(kernels) == 10
        assert prof.lost_events == 0


def test_a_graph_that_is_replayed_often_has_all_its_kernels() -> None:
    x = torch.randn(64, 64, device="cuda")
    (x @ x).relu()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        (x @ x).relu()
    with mindprof.profile(activities=BOTH) as prof:
        for _ in range(100):
            graph.replay()
    kernels = [event for event in prof.events() if event.device_type.name == "CUDA"]
    assert len(kernels) == 200
    assert prof.lost_events == 0


def test_torchs_profiler_works_before_and_after() -> None:
    step = mixed()

    def by_torch() -> Counter[str]:
        with torch.profiler.profile() as prof:
            step()
        events = prof.events()
        return Counter(event.name for event in events if event.device_type.name == "CUDA")

    before = by_torch()
    # More often than Kineto may have buffers.
    for _ in range(40):
        record(step)
    assert by_torch() == before


def test_nothing_is_recorded_between_recordings() -> None:
    x = torch.ones(4, 4, device="cuda")
    with mindprof.profile(activities=BOTH):
        x + x
    for _ in range(1000):
        x * x
    with mindprof.profile(activities=BOTH) as prof:
        x + x
    kernels = [event for event in prof.events() if event.device_type.name == "CUDA"]
    assert len(kernels) == 1


def test_a_dropped_recording_leaves_the_next_one_complete() -> None:
    x = torch.ones(4, 4, device="cuda")
    dropped = mindprof.profile(activities=BOTH)
    dropped.start()
    x + x
    del dropped
    with mindprof.profile(activities=BOTH) as prof:
        x * x
    kernels = [event for event in prof.events() if event.device_type.name == "CUDA"]
    assert len(kernels) == 1
    assert prof.lost_events == 0


def test_work_of_warm_up_steps_is_left_out() -> None:
    x = torch.ones(4, 4, device="cuda")
    found = []
    schedule = mindprof.schedule(wait=0, warmup=2, active=2, repeat=2)

    def ready(prof: Any) -> None:
        kernels = [event for event in prof.events() if event.device_type.name == "CUDA"]
        names = Counter("Kernel" for event in kernels if "elementwise" in event.name)
        found.append(names.total())

    with mindprof.profile(activities=BOTH, schedule=schedule, on_trace_ready=ready) as prof:
        for _ in range(8):
            for _ in range(5):
                x + x
            torch.cuda.synchronize()
            prof.step()
    assert found == [10, 10]


# A second subscriber is refused for as long as Kineto's is attached.
SUBSCRIBE = """
import ctypes, re
import mindprof, torch

x = torch.ones(4, device="cuda")
with mindprof.profile() as prof:
    x + x
[path] = set(re.findall(r"/\\S*libcupti\\.so\\S*", open("/proc/self/maps").read()))
cupti = ctypes.CDLL(path)
callback = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int, ctypes.c_uint, ctypes.c_void_p)
subscriber = ctypes.c_void_p()
status = cupti.cuptiSubscribe(ctypes.byref(subscriber), callback(lambda *_: None), None)
print(sum(event.device_type.name == "CUDA" for event in prof.events()), status == 0)
"""


@pytest.mark.parametrize(("kept", "is_free"), [(False, "True"), (True, "False")])
def test_cupti_is_detached_after_a_recording(kept: bool, is_free: str) -> None:
    environment = dict(os.environ, **({"TEARDOWN_CUPTI": "0"} if kept else {}))
    done = subprocess.run(
        [sys.executable, "-c", SUBSCRIBE],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.stdout.split() == ["1", is_free], done.stderr


def test_threads_go_on_while_recordings_begin_and_end() -> None:
    has_ended = threading.Event()
    failures: list[BaseException] = []

    def train() -> None:
        try:
            stream = torch.cuda.Stream()
            with torch.cuda.stream(stream):
                own = torch.randn(64, 64, device="cuda")
                while not has_ended.is_set():
                    (own @ own).sum()
                    stream.synchronize()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=train) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(100):
            # Kernels that are launched while it stops may be missing, and count as lost.
            with mindprof.profile(activities=BOTH) as prof:
                time.sleep(0.005)
    finally:
        has_ended.set()
        for thread in threads:
            thread.join()
    assert not failures
    assert any(event.device_type.name == "CUDA" for event in prof.events())
    x = torch.ones(4, 4, device="cuda")
    with mindprof.profile(activities=BOTH) as prof:
        x + x
    assert sum(event.device_type.name == "CUDA" for event in prof.events()) == 1
    assert prof.lost_events == 0


def test_graphs_survive_many_recordings() -> None:
    x = torch.randn(64, 64, device="cuda")

    def capture() -> torch.cuda.CUDAGraph:
        (x @ x).relu()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            (x @ x).relu()
        return graph

    graphs = [capture()]
    for number in range(10):
        with mindprof.profile(activities=BOTH) as prof:
            for graph in graphs:
                graph.replay()
        kernels = [event for event in prof.events() if event.device_type.name == "CUDA"]
        assert len(kernels) == 2 * len(graphs), number
        assert prof.lost_events == 0
        graphs.append(capture())
        graphs[0].replay()
    torch.cuda.synchronize()


def kernels_of(events: Any) -> int:
    return sum(event.device_type.name == "CUDA" and "elementwise" in event.name for event in events)


def test_torchs_profiler_inside_has_its_kernels() -> None:
    x = torch.ones(4, device="cuda")
    outer = mindprof.profile(activities=BOTH)
    outer.start()
    x + x
    with torch.profiler.profile() as own:
        x * x
    x - x
    with pytest.warns(UserWarning, match="device events are lost"):
        outer.stop()
    assert kernels_of(own.events()) == 1
    assert outer.lost_events > 0
    # Both work again.
    assert kernels_of(record(lambda: x + x).events()) == 3
    with torch.profiler.profile() as own:
        x * x
    assert kernels_of(own.events()) == 1


def test_torchs_profiler_that_warms_up_is_left_alone() -> None:
    x = torch.ones(4, device="cuda")
    own = torch.profiler.profile(schedule=torch.profiler.schedule(wait=0, warmup=1, active=1))
    own.start()
    prof = mindprof.profile(activities=BOTH)
    with pytest.warns(UserWarning, match="exclusively by another profiler"):
        prof.start()
    x + x
    prof.stop()
    own.step()
    x * x
    own.stop()
    assert kernels_of(prof.events()) == 0
    assert kernels_of(own.events()) == 1
    assert kernels_of(record(lambda: x + x).events()) == 3


def test_torchs_profiler_on_another_thread_is_left_alone() -> None:
    x = torch.ones(4, device="cuda")
    began, done = threading.Event(), threading.Event()
    found = []

    def other() -> None:
        with torch.profiler.profile() as own:
            began.set()
            done.wait(60)
            x * x
        found.append(kernels_of(own.events()))

    thread = threading.Thread(target=other)
    thread.start()
    began.wait(60)
    prof = mindprof.profile(activities=BOTH)
    with pytest.warns(UserWarning, match="exclusively by another profiler"):
        prof.start()
    prof.stop()
    done.set()
    thread.join()
    assert found == [1]


def test_a_recording_may_end_while_a_graph_is_captured() -> None:
    x = torch.ones(4, device="cuda")
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    prof = mindprof.profile(activities=BOTH)
    with torch.cuda.graph(graph, capture_error_mode="relaxed"):
        x.add_(1)
        prof.start()
        x.add_(1)
        prof.stop()
    graph.replay()
    torch.cuda.synchronize()
    assert sum(event.name == "aten::add_" for event in prof.events()) == 1
    assert x.tolist() == [3.0] * 4
    assert kernels_of(record(lambda: x + x).events()) == 3


# It has the next recordings of its process made in another way.
GRAPHS_ELSEWHERE = """
import threading, torch, mindprof
from mindprof import _core
from mindprof._frameworks import device_records
x = torch.ones(4, device="cuda")
torch.cuda.synchronize()
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    x.add_(1)
def elsewhere():
    thread = threading.Thread(target=graph.replay)
    thread.start()
    thread.join()
groups = mindprof.ProfilerActivity
for work in (graph.replay, elsewhere, graph.replay):
    with mindprof.profile(activities=[groups.CPU, groups.CUDA]) as prof:
        work()
    kernels = sum("elementwise" in event.name for event in prof.events())
    print(kernels, prof.lost_events, _core.DeviceRecords.other_threads_launch_graphs())
print(device_records._refused)
"""


def test_cupti_stays_attached_if_other_threads_replay_graphs() -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", GRAPHS_ELSEWHERE],
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.stdout.splitlines() == [
        "1 0 False",
        "1 0 True",
        "1 0 True",
        "['other threads launch CUDA graphs']",
    ], done.stderr[-2000:]


def test_a_forked_child_records_its_cpu() -> None:
    x = torch.ones(4, device="cuda")
    with mindprof.profile(activities=BOTH) as prof:
        x + x
        child = os.fork()
        if child == 0:
            with mindprof.profile(activities=BOTH) as inner:
                torch.ones(2) + 1
            os._exit(sum(event.name == "aten::add" for event in inner.events()))
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 1
    assert kernels_of(prof.events()) == 1
