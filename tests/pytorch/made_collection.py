"""Collections of a GPU, made by hand: what torch's collector says where threads share a device.

They hold what a run with a GPU has now and then only: calls that no operator asked for, from every
thread, work of the collector itself, and numbers of calls that are those of operators too.
"""

from __future__ import annotations

import os
import random
from typing import Any

from torch.autograd import DeviceType  # type: ignore[import-not-found]

from tests.pytorch.one_collection import OVERHEAD

DEFAULTS: dict[str, Any] = {
    "concrete_inputs": [],
    "cuda_elapsed_us": -1,
    "device_type": DeviceType.CPU,
    "dtypes": [],
    "end_thread_id": 1,
    "extra_meta": {},
    "flops": 0,
    "flow_id": 0,
    "flow_start": False,
    "flow_type": 0,
    "fwd_thread_id": 0,
    "is_async": False,
    "is_hidden_event": False,
    "is_python_function": False,
    "is_user_annotation": False,
    "kwinputs": {},
    "linked_correlation_id": 0,
    "metadata_json": "",
    "nbytes": 0,
    "overload_name": "",
    "privateuse1_elapsed_us": -1,
    "python_id": -1,
    "python_module_id": -1,
    "python_parent_id": -1,
    "scope": 0,
    "sequence_nr": -1,
    "shapes": [],
    "stack": [],
    "start_thread_id": 1,
    "structured_input_shapes": [],
    "structured_input_strides": [],
    "typed_metadata": {},
}

TIME_ZERO = 1_700_000_000_000_000_000


class RawEvent:
    """A raw event: each accessor is a method that says one value."""

    def __init__(self, name: str, start: int, end: int, **values: Any) -> None:
        values = {**DEFAULTS, "name": name, "start_ns": start, "end_ns": end, **values}
        for accessor, value in values.items():
            setattr(self, accessor, lambda value=value: value)


class MadeCollection:
    """Raw results of a thread that starts others, twice, each with ranges and operators.

    Args:
        seed: Which of all such collections it is.
        tells_origin: Whether events say whose numbers they have, as those of newer torches do.
    """

    def __init__(self, seed: int, tells_origin: bool) -> None:
        self._random = random.Random(seed)
        self._tells_origin = tells_origin
        # A recording with memory has the operators of its own thread alone, and all calls.
        self._has_workers = self._random.random() < 0.7
        self._events: list[RawEvent] = []
        self._last_scope = 0
        # Where both counts begin depends on what ran before.
        self._last_call = self._random.choice([0, 5, 20])
        self._device_time = TIME_ZERO
        end = TIME_ZERO
        for first in (2, 5):
            end = self._add_step(first, end)
        if self._random.random() < 0.5:
            self._events.sort(key=lambda event: event.start_ns())  # type: ignore[attr-defined]

    def events(self) -> list[RawEvent]:
        """Returns all, as torch's results do."""
        return self._events

    def trace_start_ns(self) -> int:
        """Returns time zero, as torch's results do."""
        return TIME_ZERO

    def experimental_event_tree(self) -> list[Any]:
        """Returns the tree, as torch's results do: nothing is made of it here."""
        return []

    def _between(self, least: int, most: int) -> int:
        return self._random.randrange(least, most)

    def _next_scope(self) -> int:
        self._last_scope += 1
        return self._last_scope

    def _add_step(self, first: int, zero: int) -> int:
        """Adds three workers, the first of which has the number `first`, and returns their end."""
        starts = [zero + self._between(1000, 4000) for _ in range(3)]
        number = self._next_scope()
        ends = [self._add_worker(thread, start) for thread, start in enumerate(starts, first)]
        time = zero + 600
        for name in ("aten::add", "aten::sum"):
            time = self._add_operator(name, 1, time)
        end = max(time, *ends) + 500
        self._add_range("main", 1, number, zero + 500, end)
        return end

    def _is_recorded(self, thread: int) -> bool:
        return thread == 1 or self._has_workers

    def _add(self, kind: str, name: str, start: int, end: int, **values: Any) -> None:
        if self._tells_origin:
            is_scope = kind == "cpu_op" or kind.endswith("user_annotation")
            values["external_id"] = values["correlation_id"] if is_scope else 0
            values["activity_type"] = kind
        self._events.append(RawEvent(name, start, end, **values))

    def _add_scope(self, kind: str, name: str, thread: int, *span: int, **values: Any) -> None:
        if not self._is_recorded(thread):
            return
        values |= {"start_thread_id": thread, "end_thread_id": thread}
        values |= {"device_index": os.getpid(), "device_resource_id": system_number(thread)}
        self._add(kind, name, *span, **values)

    def _add_range(self, name: str, thread: int, number: int, start: int, end: int) -> None:
        values = {"correlation_id": number, "is_user_annotation": True, "scope": 7}
        self._add_scope("user_annotation", name, thread, start, end, **values)
        # Ranges whose work reached the device have one there.
        if self._is_recorded(thread) and self._random.random() < 0.5:
            places = {"device_index": 0, "device_resource_id": 7, "device_type": DeviceType.CUDA}
            self._add("gpu_user_annotation", name, start + 900, end + 900, **values, **places)

    def _add_worker(self, thread: int, start: int) -> int:
        number, time = self._next_scope(), start + 200
        for _ in range(3):
            inner, begun = self._next_scope(), time
            time += 50
            for name in ("aten::matmul", "aten::relu", "aten::sum", "aten::item"):
                time = self._add_operator(name, thread, time)
                if self._random.random() < 0.2:
                    time = self._add_call("cudaEventQuery", thread, time, 3000)
                if self._random.random() < 0.15:
                    time = self._add_overhead(thread, time)
                if self._random.random() < 0.1:
                    # A call that is seen to end after what asked for it, by another clock.
                    self._add_call("cudaLaunchKernel", thread, time - 80, 300)
            self._add_range("inner", thread, inner, begun, time)
            time += 50
        self._add_range(f"worker_{thread}", thread, number, start, time)
        return time

    def _add_operator(self, name: str, thread: int, start: int, depth: int = 0) -> int:
        number, time = self._next_scope(), start + self._between(100, 400)
        for _ in range(self._between(0, 3)):
            choice = self._random.random()
            if choice < 0.35 and depth < 3:
                # Often one of the same name, of which torch makes one.
                inner = self._random.choice(["aten::mm", "aten::sum", "aten::relu", name])
                time = self._add_operator(inner, thread, time, depth + 1)
            elif choice < 0.8:
                time = self._add_call("cudaLaunchKernel", thread, time, 3000, number)
            else:
                call = self._random.choice(["cudaStreamSynchronize", "cudaMemcpyAsync"])
                time = self._add_call(call, thread, time, 8000, number)
            time += self._between(10, 300)
        values = {"correlation_id": number, "shapes": [[64, 64]], "dtypes": ["float"]}
        values |= {"concrete_inputs": [None], "structured_input_shapes": [[64, 64]]}
        self._add_scope("cpu_op", name, thread, start, time, **values)
        return time + self._between(10, 200)

    def _add_call(self, name: str, thread: int, start: int, most: int, owner: int = 0) -> int:
        self._last_call += 1
        end = start + self._between(100, most)
        owner = owner if self._is_recorded(thread) else 0
        values = {"correlation_id": self._last_call, "linked_correlation_id": owner}
        # Calls that nobody asked for are counted to the first thread.
        counted = thread if owner else 1
        threads = {"start_thread_id": counted, "end_thread_id": counted}
        places = {"device_index": os.getpid(), "device_resource_id": calling_number(thread)}
        self._add("cuda_runtime", name, start, end, **values, **threads, **places)
        if name == "cudaLaunchKernel":
            begun = max(self._device_time, end) + self._between(10, 500)
            self._device_time = begun + self._between(500, 3000)
            kernel = self._random.choice(["gemm", "clamp", "reduce"])
            places = {"device_index": 0, "device_resource_id": 7, "device_type": DeviceType.CUDA}
            self._add("kernel", kernel, begun, self._device_time, **values, **places)
        return end

    def _add_overhead(self, thread: int, start: int) -> int:
        end = start + self._between(100, 3000)
        values = {"correlation_id": self._between(0, 60), "device_index": -1}
        # Some versions tell for whose call it was done, others do not.
        values["device_resource_id"] = self._random.choice([calling_number(thread), 0])
        self._add("overhead", self._random.choice(OVERHEAD), start, end, **values)
        return end


def system_number(thread: int) -> int:
    """Returns the number that the system gives the thread of a number of torch's count."""
    return os.getpid() + thread - 1


def calling_number(thread: int) -> int:
    """Returns the number that calls of a thread tell.

    It is that of the first thread that was in its place: the second and the fifth have the place of
    one that ended before, the sixth and the seventh those of the fourth and the third.
    """
    ended = os.getpid() + 100
    others = {2: ended, 5: ended, 6: system_number(4), 7: system_number(3)}
    return others.get(thread, system_number(thread))
