"""`Device`: how the devices of a recording were used, and why they were idle."""

from __future__ import annotations

from typing import Any, NamedTuple


class LaunchDelays(NamedTuple):
    """The delays between the end of a launching call and the start of its work.

    Args:
        launches: The number of launches.
        sum_us: The sum of all delays in microseconds.
        p50_us: The median.
        p90_us: The delay that 90 % do not exceed.
        p99_us: The delay that 99 % do not exceed.
        max_us: The longest delay.
        over_50_us: The number of delays beyond 50 microseconds.
        over_100_us: The number of delays beyond 100 microseconds.
        unknown: The number of works whose launch was not recorded.
    """

    launches: int
    sum_us: float
    p50_us: float
    p90_us: float
    p99_us: float
    max_us: float
    over_50_us: int
    over_100_us: int
    unknown: int


class CopyUse(NamedTuple):
    """Copies of one direction and one kind of CPU memory.

    Args:
        direction: `"cpu_to_device"`, `"device_to_cpu"`, `"device_to_device"`, `"peer_to_peer"`,
            `"fill"` or `"unknown"`.
        memory: `"pinned"` or `"pageable"`, or `None` if the name of the copy does not tell.
        copies: The number of copies.
        time_us: The sum of their durations in microseconds.
        bytes: The bytes that they moved, or `None` if they are not known.
        bytes_per_s: The bytes per second while they ran.
    """

    direction: str
    memory: str | None
    copies: int
    time_us: float
    bytes: int | None
    bytes_per_s: float | None


class DeviceWindow(NamedTuple):
    """The activity of a device in a window of time. Times are unions over its streams.

    Args:
        number: The number of the step, or `None` if the window is not one step.
        start_us: The start, in microseconds since the start of the recording.
        duration_us: The length of the window in microseconds, or the sum of several.
        busy_us: The time in which any work ran.
        utilization: The time in which kernels ran, as a fraction of the window.
        classes_us: The time in which each class of work ran, such as `"compute"`, and how far
            classes overlap, such as `"compute_and_copy"` and `"exposed_communication"`.
        together_us: The time of each combination of classes, such as `"compute+copy"`.
        idle_us: The idle time by cause, such as `"cpu_late"`.
        unrecorded_us: The time at the start of the recording that the work of the device is not
            known of.
        sm_efficiency: The estimated fraction of multiprocessors that had work, over the window.
        occupancy: The estimated occupancy of kernels as a fraction, weighted by duration.
        kernels_us: The sum of the durations of compute kernels.
        silent_kernels_us: The part of it whose launch geometry is not known.
        tensor_cores_us: The part of it whose kernels use tensor cores.
        counted_us: The part of it whose floating-point operations are counted.
        flops: The operations of that part.
        launches: The delays of launches.
        longest_queue: The greatest number of works in the queue of a stream.
        copies: Copies and fills by direction.
    """

    number: int | None
    start_us: float
    duration_us: float
    busy_us: float
    utilization: float
    classes_us: dict[str, float]
    together_us: dict[str, float]
    idle_us: dict[str, float]
    unrecorded_us: float
    sm_efficiency: float | None
    occupancy: float | None
    kernels_us: float
    silent_kernels_us: float
    tensor_cores_us: float
    counted_us: float
    flops: int
    launches: LaunchDelays
    longest_queue: int
    copies: list[CopyUse]


class QueueLength(NamedTuple):
    """The number of works of a stream that are launched and have not begun.

    Args:
        launches: The number of launches.
        max: The greatest length.
        mean: The mean over time.
        mean_at_changes: The mean of the lengths after each launch and each start.
        full_us: The microseconds with 1024 launches or more in the queue.
    """

    launches: int
    max: int
    mean: float
    mean_at_changes: float
    full_us: float


class StreamUse(NamedTuple):
    """One stream of a device.

    Args:
        stream: The number of the stream.
        works: The number of its works.
        work_us: The sum of their durations in microseconds.
        gaps_us: The gaps between them by cause: `"cpu_wait"`, `"kernel_wait"` and `"other"`.
        queue: The length of its queue, or `None` if no launch was recorded.
    """

    stream: int
    works: int
    work_us: float
    gaps_us: dict[str, float]
    queue: QueueLength | None


class Rate(NamedTuple):
    """Operations or bytes per second.

    Args:
        total: How many in all.
        per_s: How many per second, while the kernels ran.
        limit_per_s: The limit of the device, if it is known.
        share: The rate as a fraction of the limit.
    """

    total: int
    per_s: float
    limit_per_s: float | None
    share: float | None


class KernelUse(NamedTuple):
    """The compute kernels of one name.

    Args:
        name: The name.
        calls: The number of kernels.
        time_us: The sum of their durations in microseconds.
        uses_tensor_cores: Whether they use tensor cores, by their name.
        blocks_per_sm: The mean of their blocks per multiprocessor.
        occupancy: The mean of their occupancy, as a fraction.
        flops: Their operations, if each is the only kernel of a counted operator.
        bytes: Their least memory traffic, under the same condition.
    """

    name: str
    calls: int
    time_us: float
    uses_tensor_cores: bool
    blocks_per_sm: float | None
    occupancy: float | None
    flops: Rate | None
    bytes: Rate | None


class MatmulDtype(NamedTuple):
    """Matrix products, convolutions and attention on inputs of one dtype.

    Args:
        dtype: The dtype of the first input, or `None` if shapes were not recorded.
        time_us: The sum of the durations of the kernels in microseconds.
        tensor_cores_us: The part of it whose kernels use tensor cores.
    """

    dtype: str | None
    time_us: float
    tensor_cores_us: float


class OperatorRate(NamedTuple):
    """Operators of one name and dtype whose operations are counted.

    Args:
        operator: The name.
        dtype: The dtype of the first input.
        uses_tensor_cores: Whether a kernel of theirs uses tensor cores.
        calls: The number of calls with kernels.
        time_us: The sum of the durations of their kernels in microseconds.
        flops: Their operations.
        bytes: Their least memory traffic.
    """

    operator: str
    dtype: str
    uses_tensor_cores: bool
    calls: int
    time_us: float
    flops: Rate | None
    bytes: Rate | None


class NotCounted(NamedTuple):
    """Operators whose operations are not counted.

    Args:
        operator: The name, or `None` if the operator of the kernels is not known.
        kernels: The number of kernels.
        time_us: The sum of their durations in microseconds.
        share: That sum as a fraction of the time of all compute kernels.
    """

    operator: str | None
    kernels: int
    time_us: float
    share: float


class DeviceUse(NamedTuple):
    """The use of one device.

    Args:
        device: The device as torch names it, such as `"cuda:0"`.
        rank: The rank of its process, if the profile has several.
        name: The name of its model, if the profile tells.
        card: The limits of the model by name, or `None` if they are not known.
        first_start_us: The start of its first work.
        last_end_us: The end of its last work.
        whole: Its activity in the whole recording.
        in_steps: Its activity in all steps together, or `None` if there are none.
        each_step: Its activity in each step.
        streams: Its streams.
        kernels: Its compute kernels, by decreasing time.
        matmul: Matrix products by dtype.
        operators: Operators whose operations are counted, by decreasing time.
        not_counted: Operators whose operations are not counted, by decreasing time.
    """

    device: str
    rank: int | None
    name: str | None
    card: dict[str, Any] | None
    first_start_us: float
    last_end_us: float
    whole: DeviceWindow
    in_steps: DeviceWindow | None
    each_step: list[DeviceWindow]
    streams: list[StreamUse]
    kernels: list[KernelUse]
    matmul: list[MatmulDtype]
    operators: list[OperatorRate]
    not_counted: list[NotCounted]


class DeviceStep(NamedTuple):
    """A step as the devices see it: until the last work that was launched in it has ended.

    Args:
        number: The number of the step.
        start_us: Its start, in microseconds since the start of the recording.
        duration_us: Its duration in microseconds.
        split_us: The microseconds of each class, of devices and of the CPU.
    """

    number: int
    start_us: float
    duration_us: float
    split_us: dict[str, float]


class Device(NamedTuple):
    """The use of all devices of a recording.

    Args:
        devices: The devices; empty if the recording has no device work.
        steps: The steps as the devices see them.
        split_us: The microseconds of each class in all of these steps.
    """

    devices: list[DeviceUse]
    steps: list[DeviceStep]
    split_us: dict[str, float]


def device_use(text: str) -> Device:
    """Reads the engine's answer to the question `device`.

    Args:
        text: The answer, as JSON.
    """
    import json

    answer = json.loads(text)
    return Device(
        devices=[_device(device) for device in answer["devices"]],
        steps=[
            DeviceStep(step["number"], step["start_us"], step["duration_us"], _times(step["split"]))
            for step in answer["steps"]
        ],
        split_us=_times(answer["split"]),
    )


def _device(device: dict[str, Any]) -> DeviceUse:
    in_steps = device["in_steps"]
    return DeviceUse(
        **device
        | {
            "whole": _window(device["whole"]),
            "in_steps": in_steps and _window(in_steps),
            "each_step": [_window(step) for step in device["each_step"]],
            "streams": [_stream(stream) for stream in device["streams"]],
            "kernels": [KernelUse(**_rated(kernel)) for kernel in device["kernels"]],
            "matmul": [MatmulDtype(**dtype) for dtype in device["matmul"]],
            "operators": [OperatorRate(**_rated(row)) for row in device["operators"]],
            "not_counted": [NotCounted(**row) for row in device["not_counted"]],
        }
    )


def _window(window: dict[str, Any]) -> DeviceWindow:
    fields = {"number": None} | window
    classes = fields.pop("classes")
    fields["together_us"] = classes.pop("together_us")
    fields["classes_us"] = _times(classes)
    fields["idle_us"] = _times(fields.pop("idle"))
    fields["launches"] = LaunchDelays(**window["launches"])
    fields["copies"] = [CopyUse(**copy) for copy in window["copies"]]
    return DeviceWindow(**fields)


def _stream(stream: dict[str, Any]) -> StreamUse:
    queue = stream["queue"]
    return StreamUse(
        stream["stream"],
        stream["works"],
        stream["work_us"],
        _times(stream["gaps"]),
        queue and QueueLength(**queue),
    )


def _rated(row: dict[str, Any]) -> dict[str, Any]:
    rates = {key: row[key] and Rate(**row[key]) for key in ("flops", "bytes")}
    return row | rates


def _times(times: dict[str, float]) -> dict[str, float]:
    return {key.removesuffix("_us"): time for key, time in times.items()}
