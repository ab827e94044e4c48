"""Threads that train at once: whose forward a backward node is of, and ranges that change threads.

A node's forward is known by the thread that it ran on together with its sequence number, which each
thread counts for itself.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

from host import events, export, profile, record, torch

STEPS = 3


def profile_all(**more: Any) -> Any:
    """Makes a profiler of all threads with stacks, for which torch has to be asked."""
    config = torch.profiler._ExperimentalConfig(profile_all_threads=True, verbose=True)
    return profile(experimental_config=config, record_shapes=True, with_stack=True, **more)


def forward_left(x: Any) -> Any:
    return x.sin().sum()


def forward_right(x: Any) -> Any:
    return x.cos().sum()


def side_by_side(*bodies: Callable[[threading.Barrier], None]) -> Any:
    """Runs each body in a thread of its own and returns the profiler, which has stopped.

    The threads are there before the profiler starts: torch follows the Python calls of no others.
    """
    start, end = (threading.Barrier(len(bodies) + 1, timeout=30) for _ in range(2))
    meeting = threading.Barrier(len(bodies), timeout=30)
    failures: list[BaseException] = []

    def run(body: Callable[[threading.Barrier], None]) -> None:
        start.wait()
        try:
            body(meeting)
        except BaseException as failure:
            failures.append(failure)
            meeting.abort()
        end.wait()

    threads = [threading.Thread(target=run, args=(body,)) for body in bodies]
    for thread in threads:
        thread.start()
    with profile_all() as profiler:
        start.wait()
        end.wait()
    for thread in threads:
        thread.join()
    assert not failures
    return profiler


def training(forward: Callable[[Any], Any]) -> Callable[[threading.Barrier], None]:
    """Returns what trains step by step: no thread goes back before both went forward."""
    weight = torch.ones(4, requires_grad=True)

    def train(meeting: threading.Barrier) -> None:
        for _ in range(STEPS):
            loss = forward(weight)
            meeting.wait()
            loss.backward()
            meeting.wait()

    return train


def trained() -> Any:
    return side_by_side(training(forward_left), training(forward_right))


def operators(profiler: Any) -> list[Any]:
    return [event for event in profiler.events() if not event.is_python_function]


def nodes(profiler: Any) -> list[Any]:
    """Returns the backward nodes that have a forward."""
    return [event for event in operators(profiler) if event.scope == 1 and event.sequence_nr >= 0]


def thread_of(profiler: Any, name: str) -> int:
    """Returns the one thread on which operators of a name have a sequence number."""
    found = {
        event.thread
        for event in operators(profiler)
        if event.name == name and event.sequence_nr >= 0
    }
    (thread,) = found
    return int(thread)


def forward_frames(stack: list[str]) -> set[str]:
    """Returns which of the two forwards a stack goes through."""
    named = ("forward_left", "forward_right")
    return {name for frame in stack for name in named if frame.endswith(name)}


def test_each_thread_counts_its_own_sequence() -> None:
    profiler = trained()
    found = defaultdict(list)
    for node in nodes(profiler):
        found[node.thread].append((node.name, node.sequence_nr))
    numbers = [(2 * step + 1, 2 * step) for step in range(STEPS)]
    for name, node in (("aten::sin", "SinBackward0"), ("aten::cos", "CosBackward0")):
        expected = [("SumBackward0", total) for total, _ in numbers]
        expected += [(node, first) for _, first in numbers]
        assert sorted(found[thread_of(profiler, name)]) == sorted(expected)


def test_a_live_backward_node_says_which_thread_its_forward_ran_on() -> None:
    with profile() as profiler:
        forward_left(torch.ones(4, requires_grad=True)).backward()
    (node,) = (event for event in profiler.events() if event.name == "SinBackward0")
    (outer,) = (
        event
        for event in profiler.events()
        if event.name == "autograd::engine::evaluate_function: SinBackward0"
    )
    (forward,) = (event for event in profiler.events() if event.name == "aten::sin")
    assert (forward.thread, forward.fwd_thread) == (1, 0)
    assert (node.thread, node.fwd_thread, outer.fwd_thread) == (1, 1, 1)


def test_nodes_of_threads_that_train_at_once_say_their_own_forward_thread() -> None:
    profiler = trained()
    assert len({node.thread for node in nodes(profiler)}) == 2
    for node in nodes(profiler):
        assert node.fwd_thread == node.thread, node.name


def test_nodes_of_threads_that_train_at_once_have_the_stacks_of_their_own_forward() -> None:
    profiler = trained()
    expected = {
        thread_of(profiler, "aten::sin"): {"forward_left"},
        thread_of(profiler, "aten::cos"): {"forward_right"},
    }
    found = nodes(profiler)
    assert len(found) == 4 * STEPS
    for node in found:
        assert forward_frames(node.stack) == expected[node.thread], node.name
        for child in node.cpu_children:
            assert child.stack == node.stack, child.name


def test_the_arrows_of_threads_that_train_at_once_stay_within_their_thread(tmp_path: Path) -> None:
    trace = export(trained(), tmp_path)
    found = [ends_of(arrow, trace) for arrow in arrows(trace)]
    assert len(found) == 4 * STEPS
    for forward, node in found:
        assert forward["tid"] == node["tid"]
        assert forward["ts"] + forward["dur"] <= node["ts"]
        assert forward["args"]["Sequence number"] == node["args"]["Sequence number"]
    pairs = {(forward["name"], node["name"]) for forward, node in found}
    assert pairs == {
        ("aten::sin", "SinBackward0"),
        ("aten::cos", "CosBackward0"),
        ("aten::sum", "SumBackward0"),
    }
    # One arrow leaves and one arrow reaches each.
    for ends in zip(*found, strict=True):
        assert len({id(event) for event in ends}) == 4 * STEPS


def test_a_node_that_runs_on_another_thread_than_its_forward_says_so(tmp_path: Path) -> None:
    losses: list[Any] = []

    def go_forward(meeting: threading.Barrier) -> None:
        # A first operator of each thread, so that their sequences meet.
        torch.ones(4, requires_grad=True).exp()
        losses.append(forward_left(torch.ones(4, requires_grad=True)))
        meeting.wait()
        meeting.wait()

    def go_back(meeting: threading.Barrier) -> None:
        torch.ones(4, requires_grad=True).exp()
        forward_right(torch.ones(4, requires_grad=True))
        meeting.wait()
        losses.pop().backward()
        meeting.wait()

    profiler = side_by_side(go_forward, go_back)
    first, second = thread_of(profiler, "aten::sin"), thread_of(profiler, "aten::cos")
    (node,) = (event for event in nodes(profiler) if event.name == "SinBackward0")
    assert (node.thread, node.fwd_thread) == (second, first)
    assert forward_frames(node.stack) == {"forward_left"}

    trace = export(profiler, tmp_path)
    found = [ends_of(arrow, trace) for arrow in arrows(trace)]
    assert sorted((forward["name"], node["name"]) for forward, node in found) == [
        ("aten::sin", "SinBackward0"),
        ("aten::sum", "SumBackward0"),
    ]
    for forward, backward in found:
        assert forward["tid"] != backward["tid"]
        assert backward["args"]["Fwd thread id"] == first


def arrows(trace: dict[str, Any]) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Returns the two ends of each arrow from a forward to its node."""
    ends: dict[int, dict[str, dict[str, Any]]] = defaultdict(dict)
    for event in trace["traceEvents"]:
        if event.get("cat") == "fwdbwd":
            assert event["ph"] not in ends[event["id"]], "an end is there twice"
            ends[event["id"]][event["ph"]] = event
    return [(pair["s"], pair["f"]) for pair in ends.values()]


def ends_of(
    arrow: tuple[dict[str, Any], dict[str, Any]], trace: dict[str, Any]
) -> list[dict[str, Any]]:
    """Returns the forward and the node that an arrow connects."""
    found = []
    for end in arrow:
        (event,) = (
            event
            for event in events(trace)
            if (event["tid"], event["ts"]) == (end["tid"], end["ts"])
            and "Sequence number" in event["args"]
        )
        found.append(event)
    return found


def handed_over() -> Any:
    """Enters a range on the first thread and leaves it on the second."""
    ranges: list[Any] = []

    def enter_it(meeting: threading.Barrier) -> None:
        handed = record("handed over", "what it is about")
        handed.__enter__()
        ranges.append(handed)
        forward_left(torch.ones(4))
        meeting.wait()
        meeting.wait()

    def leave_it(meeting: threading.Barrier) -> None:
        meeting.wait()
        forward_right(torch.ones(4))
        ranges.pop().__exit__(None, None, None)
        meeting.wait()

    return side_by_side(enter_it, leave_it)


def test_a_range_that_ends_on_another_thread_is_of_its_own_and_async() -> None:
    profiler = handed_over()
    (found,) = (event for event in profiler.events() if event.name == "handed over")
    assert found.thread == thread_of(profiler, "aten::sin")
    assert found.is_async
    assert any(frame.endswith("enter_it") for frame in found.stack)
    assert (found.input_shapes, found.concrete_inputs) == ([[]], [None])
    (row,) = (row for row in profiler.key_averages() if row.key == "handed over")
    assert (row.is_async, row.count) == (True, 1)


def test_a_range_that_ends_on_another_thread_holds_no_others() -> None:
    profiler = handed_over()
    (found,) = (event for event in profiler.events() if event.name == "handed over")
    assert found.cpu_children == []
    assert found.self_cpu_time_total == 0
    assert found.cpu_time_total > 0
    for event in operators(profiler):
        assert event.cpu_parent != found


def test_the_trace_has_a_range_that_changes_threads_where_it_began(tmp_path: Path) -> None:
    trace = export(handed_over(), tmp_path)
    (found,) = (event for event in events(trace) if event["name"] == "handed over")
    (operator,) = (event for event in events(trace) if event["name"] == "aten::sin")
    # It crosses the calls of its thread, so that ours draws it on a track beside them.
    beside = trace.get("mindprof", {}).get("spare_tracks", [])
    threads = {(track["pid"], track["tid"]): track["of"] for track in beside}
    assert threads.get((found["pid"], found["tid"]), found["tid"]) == operator["tid"]
    assert found["args"]["Input Dims"] == [[]]
