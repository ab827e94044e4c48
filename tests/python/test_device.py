"""Checks what is told of devices: on golden traces, and against the figures of other tools.

The traces of other tools are large and lie outside of the project, in `../shared`.
"""

from __future__ import annotations

import json
import subprocess
import sys
import warnings
from pathlib import Path

import mindprof
import pytest
from mindprof._results.device_use import DeviceUse, DeviceWindow

from tests.hta_view import FIGURES, TRACES, expected_figures, hta_view

ROOT = Path(__file__).parents[2]
GOLDENS = ROOT / "tests" / "goldens"
PLANTED = ROOT.parent / "shared" / "planted" / "cuda"

needs_traces = pytest.mark.skipif(not TRACES.exists(), reason="there are no sample traces")
needs_planted = pytest.mark.skipif(not PLANTED.exists(), reason="there are no planted traces")

# What HTA counts differently, by trace and question.
SYNCHRONIZATION = "HTA counts synchronization events that are drawn on a stream as kernels"
CALLS = "HTA does not know all launch calls"
OVERLAP = "HTA adds negative gaps where works of a stream overlap"
NEGATIVE = "HTA gives works within a microsecond a negative duration"
TRACKS = "HTA takes the stream from the arguments, where the track has another number"
NESTED = "works that overlap by a microsecond on one stream are shortened when they are read"
OPERATOR = "HTA counts an operator of the CPU that names its stream as a kernel"
DIFFERENT = {
    ("hta-critical-alexnet", "temporal"): SYNCHRONIZATION,
    ("hta-critical-alexnet", "kernels"): SYNCHRONIZATION,
    ("hta-critical-simple-add", "temporal"): SYNCHRONIZATION,
    ("hta-critical-simple-add", "kernels"): SYNCHRONIZATION,
    ("hta-event-sync", "temporal"): SYNCHRONIZATION,
    ("hta-event-sync-streams", "temporal"): SYNCHRONIZATION,
    ("hta-event-sync-streams", "kernels"): SYNCHRONIZATION,
    ("hta-amd-mi250", "launches"): CALLS,
    ("hta-diff-test", "launches"): CALLS,
    ("hta-diff-test", "queue"): CALLS,
    ("hta-queue", "launches"): CALLS,
    ("hta-queue", "queue"): CALLS,
    ("hta-triton", "launches"): CALLS,
    ("hta-mtia-inference", "launches"): CALLS,
    ("hta-diff-test", "gaps"): OVERLAP,
    ("hta-diff-test", "temporal"): NESTED,
    ("hta-diff-test", "kernels"): NESTED,
    ("hta-queue", "gaps"): OVERLAP,
    ("hta-mtia-inference", "temporal"): NEGATIVE,
    ("hta-mtia-inference", "kernels"): NEGATIVE,
    ("hta-mtia-inference", "gaps"): TRACKS,
    ("hta-mtia-inference", "queue"): TRACKS,
    ("hta-triton", "temporal"): OPERATOR,
    ("hta-triton", "kernels"): OPERATOR,
}


def only_device(path: Path) -> DeviceUse:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mindprof.RepairWarning)
        (device,) = mindprof.load(path).device().devices
    return device


def temporal(device: DeviceUse) -> list[float]:
    """Returns the idle, compute and other time between the first and the last work."""
    span = device.last_end_us - device.first_start_us
    busy, compute = device.whole.busy_us, device.whole.classes_us["compute"]
    return [span - busy, compute, busy - compute, span]


def kernel_types(window: DeviceWindow) -> dict[str, float]:
    """Returns the times of the combinations of classes under HTA's names."""
    names = {
        "compute": "COMPUTATION",
        "communication": "COMMUNICATION",
        "copy": "MEMORY",
        "memset": "MEMORY",
    }
    found: dict[str, float] = {}
    for together, time in window.together_us.items():
        classes = dict.fromkeys(names[part] for part in together.split("+"))
        key = " overlapping ".join(classes)
        found[key] = found.get(key, 0.0) + time
    return found


def overlap(window: DeviceWindow) -> float | None:
    communication = window.classes_us["communication"]
    if communication == 0.0:
        return None
    return round(100.0 * window.classes_us["compute_and_communication"] / communication, 2)


def gaps(device: DeviceUse) -> dict[str, dict[str, float]]:
    return {
        str(stream.stream): {cause: time for cause, time in stream.gaps_us.items() if time > 0.0}
        for stream in device.streams
    }


def launches(window: DeviceWindow) -> list[float]:
    delays = window.launches
    return [delays.launches, delays.sum_us, delays.over_50_us, delays.over_100_us]


@needs_traces
@pytest.mark.parametrize("name", FIGURES)
def test_htas_figures(name: str, tmp_path: Path) -> None:
    expected = expected_figures(name)
    device = only_device(hta_view(TRACES / f"{name}.json.gz", tmp_path / "view.json"))
    questions = {
        "temporal": temporal(device),
        "kernels": kernel_types(device.whole),
        "overlap": overlap(device.whole),
        "gaps": gaps(device),
        "launches": launches(device.whole),
    }
    without_nothing = {
        stream: {cause.replace("host", "cpu"): time for cause, time in times.items() if time > 0.0}
        for stream, times in expected["gaps"].items()
    }
    compared = 0
    for question, found in questions.items():
        if (name, question) in DIFFERENT:
            continue
        wanted = without_nothing if question == "gaps" else expected[question]
        if question in ("temporal", "launches"):
            assert found == pytest.approx(wanted, abs=1e-3), question
        elif question == "kernels":
            assert kernel_types(device.whole) == pytest.approx(wanted, abs=1e-3)
        else:
            assert found == wanted, question
        compared += 1
    assert compared > 0
    if (name, "queue") not in DIFFERENT:
        queues = {str(stream.stream): stream.queue for stream in device.streams}
        assert queues.keys() == expected["queue"].keys()
        for stream, (changes, longest, mean) in expected["queue"].items():
            queue = queues[stream]
            assert queue is not None
            assert (2 * queue.launches, queue.max) == (changes, longest)
            # HTA sorts equal times at random, and the mean depends on the order.
            assert queue.mean_at_changes == pytest.approx(mean, rel=0.02)


@needs_traces
@pytest.mark.parametrize(
    ("name", "utilization", "efficiency", "occupancy", "kernel", "data_loading"),
    [
        ("workers0", 55.51, 54.68, 49.13, 98_589, 59_262),
        ("workers4", 70.27, 69.22, 48.91, 99_145, 1_186),
    ],
)
def test_the_plugins_figures_on_its_sample(
    name: str,
    utilization: float,
    efficiency: float,
    occupancy: float,
    kernel: int,
    data_loading: int,
) -> None:
    answer = mindprof.load(TRACES / f"kineto2021-resnet50-{name}.json.gz").device()
    (device,) = answer.devices
    window = device.in_steps
    assert window is not None
    assert window.sm_efficiency is not None
    assert window.occupancy is not None
    # The plugin's span has the moments between two steps, too.
    last = answer.steps[-1]
    span = last.start_us + last.duration_us - answer.steps[0].start_us
    in_span = window.duration_us / span
    percentages = [
        window.utilization * in_span,
        window.sm_efficiency * in_span,
        window.occupancy,
    ]
    assert [round(100.0 * share, 2) for share in percentages] == [
        utilization,
        efficiency,
        occupancy,
    ]
    assert window.tensor_cores_us == 0.0
    count = len(answer.steps)
    assert count == 6
    assert round(answer.split_us["kernel"] / count) == kernel
    assert round(answer.split_us["data_loading"] / count) == data_loading


@needs_planted
@pytest.mark.parametrize("path", sorted(PLANTED.glob("*.gz")), ids=lambda path: path.name[:-14])
def test_planted_traces_make_sense(path: Path) -> None:
    device = only_device(path)
    assert device.card is not None
    assert device.card["model"] == "H200"
    assert device.in_steps is not None
    for window in [device.whole, device.in_steps, *device.each_step]:
        assert 0.0 < window.utilization <= 1.0
        whole = window.busy_us + sum(window.idle_us.values()) + window.unrecorded_us
        assert whole == pytest.approx(window.duration_us)
        assert window.tensor_cores_us <= window.kernels_us
    rates = [row.flops for row in device.operators if row.flops is not None]
    assert rates
    assert all(rate.share is None or rate.share < 1.0 for rate in rates)
    counted = sum(row.time_us for row in device.operators)
    not_counted = sum(row.time_us for row in device.not_counted)
    assert counted + not_counted == pytest.approx(device.whole.kernels_us)


@needs_planted
def test_the_steps_of_a_device_are_as_long_as_without_a_profiler() -> None:
    """The kernels of fp32-gpt take all of its time, and the profiler does not slow kernels down."""
    truth = json.loads((PLANTED / "truth.json").read_text())["fp32-gpt"]
    device = only_device(PLANTED / "fp32-gpt.trace.json.gz")
    for step in device.each_step:
        assert step.duration_us == pytest.approx(1e3 * truth["step_ms"], rel=0.02)
        assert step.busy_us > 0.98 * step.duration_us
        assert step.tensor_cores_us == 0.0


def test_the_program_prints_the_same() -> None:
    trace = GOLDENS / "h200-torch2.11" / "gpt-full.trace.json.gz"
    command = [sys.executable, "-m", "mindprof", "device", str(trace), "--json"]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    (printed,) = json.loads(run.stdout)["devices"]
    device = only_device(trace)
    assert device.device == printed["device"] == "cuda:0"
    assert device.whole.busy_us == printed["whole"]["busy_us"] > 0.0
    assert [step.number for step in device.each_step] == [1, 2]
    assert len(device.kernels) == len(printed["kernels"])
    rated = [row for row in device.operators if row.flops is not None]
    assert {"aten::addmm", "aten::mm"} <= {row.operator for row in rated}
    assert device.streams[0].queue is not None
    assert set(device.whole.idle_us) == {
        "cpu_late",
        "synchronization",
        "launch",
        "other_stream",
        "end_of_work",
        "unknown",
    }


def test_a_profile_without_devices_has_none() -> None:
    answer = mindprof.load(GOLDENS / "cpu-torch2.15" / "mlp-full.trace.json.gz").device()
    assert answer.devices == []
    assert answer.steps == []
