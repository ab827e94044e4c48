"""Sections 4.2 and 4.3: which event ran inside of which, and what rows are made of."""

from __future__ import annotations

from typing import Any

import pytest
from by_hand import DeviceType, el, fe, parents, util


def test_t_1_asynchronous_events_and_devices_have_no_place_in_the_tree() -> None:
    built = el(
        [
            fe(1, "outer", 0, 100),
            fe(2, "asynchronous", 10, 90, is_async=True),
            fe(3, "inner", 20, 80),
            fe(4, "kernel", 30, 40, device_type=DeviceType.CUDA),
            fe(5, "elsewhere", 30, 40, thread=2),
            fe(6, "another machine", 30, 40, node_id=3),
        ]
    )
    assert parents(built) == {
        "outer": None,
        "asynchronous": None,
        "inner": "outer",
        "kernel": None,
        "elsewhere": None,
        "another machine": None,
    }


def test_t_2_parents_hold_their_children_whole() -> None:
    #  a |----------|                 equal: the first is the parent of the second
    #  b |----------|
    #  c    |----------|              overlaps: no relation, and hides what came before
    #  d          |-|
    #  e            | at the end of d: not inside
    #  f           |  inside d
    built = el(
        [
            fe(1, "a", 0, 10),
            fe(2, "b", 0, 10),
            fe(3, "c", 3, 13),
            fe(4, "d", 8, 10),
            fe(5, "e", 10, 10),
            fe(6, "f", 9, 9),
        ]
    )
    assert parents(built) == {"a": None, "b": "a", "c": None, "d": "c", "e": "c", "f": "d"}


def test_t_2_a_tree_is_built_once() -> None:
    built = el([fe(1, "p", 0, 10), fe(2, "q", 1, 2)])
    with pytest.raises(AssertionError, match="There is already a CPU parent event for q"):
        built._build_tree()


def test_t_3_the_only_child_of_the_same_name_is_merged() -> None:
    outer, middle, inner = fe(1, "aa", 0, 30), fe(2, "aa", 1, 20), fe(3, "aa", 2, 10)
    leaf = fe(4, "leaf", 3, 4)
    outer.append_kernel("of the outer", 0, 1.0)
    inner.append_kernel("of the inner", 0, 2.0)
    built = el([outer, middle, inner, leaf])
    assert [event.name for event in built] == ["aa", "leaf"]
    assert leaf.cpu_parent is outer
    assert outer.cpu_children == [leaf]
    assert [kernel.name for kernel in outer.kernels] == ["of the inner"]


def test_t_3_a_sibling_keeps_it() -> None:
    built = el([fe(1, "aa", 0, 30), fe(2, "aa", 1, 10), fe(3, "b", 11, 12)])
    assert len(built) == 3


def test_t_4_what_runs_backward_shows_the_stack_of_its_forward() -> None:
    forward = fe(1, "linear", 0, 10, sequence_nr=7, stack=["train.py(3)"], thread=1)
    second = fe(2, "t", 1, 2, sequence_nr=7, stack=["not the first"], thread=1)
    node = {"scope": 1, "stack": ["engine"], "thread": 2, "fwd_thread": 1}
    backward = fe(3, "TBackward0", 20, 30, sequence_nr=7, **node)
    inside = fe(4, "aten::t", 21, 22, stack=["engine"], thread=2)
    wrapper = fe(5, "evaluate", 19, 31, sequence_nr=7, stack=["engine"], thread=2)
    accumulates = fe(6, "AccumulateGrad", 40, 41, **node)
    el([forward, second, backward, inside, wrapper, accumulates])
    assert backward.stack == inside.stack == forward.stack == ["train.py(3)"]
    assert wrapper.stack == ["engine"]
    assert accumulates.stack == []


def test_t_4_a_backward_node_names_its_forward_thread() -> None:
    with pytest.raises(AssertionError, match="Expected fwd_thread to be set for backward parent"):
        el([fe(1, "TBackward0", 0, 1, scope=1)])


def test_t_5_the_order_of_the_list_stays() -> None:
    built = el([fe(3, "late", 5, 6), fe(1, "early", 0, 10), fe(2, "late", 5, 6, thread=2)])
    assert [event.id for event in built] == [3, 1, 2]


def test_k_1_rows_need_a_tree() -> None:
    listed = util.EventList([fe(1, "a", 0, 1)])
    expected = "Expected tree to be built before calling key_averages"
    with pytest.raises(AssertionError, match=expected):
        listed.key_averages()
    listed._build_tree()
    with pytest.raises(AssertionError, match=expected):
        listed.key_averages().key_averages()


def keys(rows: Any) -> list[tuple[str, int]]:
    return [(row.key, row.count) for row in rows]


def test_k_2_what_tells_rows_apart_always() -> None:
    built = el(
        [
            fe(1, "a", 0, 1),
            fe(2, "a", 2, 3, node_id=1),
            fe(3, "a", 4, 5, device_type=DeviceType.CUDA),
            fe(4, "a", 6, 7, is_legacy=True),
            fe(5, "a", 8, 9, is_user_annotation=True),
            fe(6, "a", 10, 11, thread=2, is_async=True, scope=7),
        ]
    )
    assert keys(built.key_averages()) == [("a", 2)] + [("a", 1)] * 4


def test_k_2_what_tells_rows_apart_if_asked_for() -> None:
    built = el(
        [
            fe(1, "a", 0, 1, overload_name="x", input_shapes=[[1]], stack=["f", "g"]),
            fe(2, "a", 2, 3, overload_name="y", input_shapes=[[1]], stack=["f", "h"]),
            fe(3, "a", 4, 5, overload_name="y", input_shapes=[[2]], stack=["f", "h", "i"]),
        ]
    )
    assert keys(built.key_averages()) == [("a", 3)]
    assert keys(built.key_averages(group_by_overload_name=True)) == [("a", 1), ("a", 2)]
    assert keys(built.key_averages(group_by_input_shapes=True)) == [("a", 2), ("a", 1)]
    assert keys(built.key_averages(group_by_stack_n=1)) == [("a", 3)]
    assert keys(built.key_averages(group_by_stack_n=2)) == [("a", 1), ("a", 2)]
    assert keys(built.key_averages(group_by_stack_n=3)) == [("a", 1)] * 3


def test_k_3_python_functions_have_rows_if_asked_for() -> None:
    built = el([fe(1, "f", 0, 9, is_python_function=True), fe(2, "a", 1, 2)])
    assert keys(built.key_averages()) == [("a", 1)]
    assert keys(built.key_averages(include_python_functions=True)) == [("f", 1), ("a", 1)]
    assert built.total_average().count == 2
    assert built.self_cpu_time_total == 9
    assert built.key_averages().self_cpu_time_total == 1


def test_k_4_rows_come_in_the_order_of_their_first_events() -> None:
    more = {"use_device": "cuda", "profile_memory": True, "with_flops": True}
    built = el([fe(1, "b", 0, 1), fe(2, "a", 2, 3), fe(3, "b", 4, 5)], **more)
    rows = built.key_averages()
    assert keys(rows) == [("b", 2), ("a", 1)]
    assert isinstance(rows, util.EventList)
    assert (rows._use_device, rows._profile_memory, rows._with_flops) == ("cuda", True, True)
    assert rows._tree_built is False


def test_k_5_what_was_not_grouped_by_is_emptied() -> None:
    event = fe(1, "a", 0, 1, overload_name="x", input_shapes=[[1]], stack=["f", "g"])
    (row,) = el([event]).key_averages()
    assert (row.stack, row.input_shapes, row.overload_name) == ([], "", "")
    asked = {"group_by_input_shapes": True, "group_by_overload_name": True}
    (row,) = el([event]).key_averages(group_by_stack_n=1, **asked)
    assert (row.stack, row.input_shapes, row.overload_name) == (["f"], [[1]], "x")


def test_k_5_a_negative_number_of_frames_cuts_from_the_end() -> None:
    (row,) = el([fe(1, "a", 0, 1, stack=["f", "g"]), fe(2, "a", 2, 3, stack=["h"])]).key_averages(
        group_by_stack_n=-1
    )
    assert (row.count, row.stack) == (2, ["f"])
    for wrong in (None, "1"):
        with pytest.raises(TypeError, match="'>' not supported between instances of"):
            el([fe(1, "a", 0, 1)]).key_averages(group_by_stack_n=wrong)


def test_the_total_is_described_by_the_last_event() -> None:
    built = el([fe(1, "a", 0, 5, flops=3), fe(2, "b", 1, 3, scope=7, flops=4)])
    total = built.total_average()
    assert (total.key, total.count, total.scope, total.flops) == ("Total", 2, 7, 7)
    assert (total.cpu_time_total, total.self_cpu_time_total) == (7, 5)
    assert util.EventList().total_average().key == "Total"
    assert util.EventList().self_cpu_time_total == 0
