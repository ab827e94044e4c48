"""Sections 2.6 to 2.8: steps, callbacks, cycles, trace ids."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from host import Action, counts, export, follow, mark, names, profile, torch, work


def run(letters: str, **arguments: Any) -> Any:
    """Runs one step more than there are letters, with a range of its own in each."""
    with profile(schedule=follow(letters), **arguments) as profiler:
        for step in range(len(letters)):
            mark(f"in {step}")
            profiler.step()
    return profiler


def test_p_60_steps_are_marked_only_with_a_schedule() -> None:
    with profile() as plain:
        plain.step()
    assert plain.step_rec_fn is None
    assert counts(plain) == {}
    with profile(schedule=follow("R")) as scheduled:
        assert scheduled.record_steps
        assert scheduled.step_rec_fn.name == "ProfilerStep#0"
        scheduled.step()
        assert scheduled.step_rec_fn.name == "ProfilerStep#1"
    assert scheduled.step_rec_fn is None
    assert counts(scheduled) == {"ProfilerStep*": 2}


def test_p_61_recorded_steps_are_in_the_trace(tmp_path: Path) -> None:
    profiler = run("NWRSN")
    found = names(export(profiler, tmp_path))
    assert {name for name in found if name.startswith("ProfilerStep")} == {
        "ProfilerStep#2",
        "ProfilerStep#3",
    }


def test_p_62_rows_have_one_name_for_all_steps() -> None:
    with profile() as profiler:
        mark("ProfilerStep#41")
        mark("ProfilerStep#42")
    assert counts(profiler) == {"ProfilerStep*": 2}


def test_p_62_events_keep_the_number_in_their_trace_name() -> None:
    with profile() as profiler:
        mark("ProfilerStep#42")
    (event,) = profiler.events()
    assert (event.name, event.key, event.trace_name) == (
        "ProfilerStep*",
        "ProfilerStep*",
        "ProfilerStep#42",
    )


def test_p_63_the_callback_sees_the_next_step() -> None:
    seen: list[Any] = []

    def ready(profiler: Any) -> None:
        seen.append((profiler.step_num, profiler.current_action, counts(profiler)))

    run("NWRSN", on_trace_ready=ready)
    assert seen == [(4, Action.NONE, {"ProfilerStep*": 2, "in 2": 1, "in 3": 1})]


def test_p_64_the_callback_gets_the_profiler() -> None:
    calls: list[tuple[Any, ...]] = []

    def ready(*arguments: Any) -> str:
        calls.append(arguments)
        return "ignored"

    with profile(on_trace_ready=ready) as profiler:
        pass
    assert calls == [(profiler,)]


def test_p_65_one_callback_without_schedule_also_for_nothing() -> None:
    calls: list[Any] = []
    with profile(on_trace_ready=calls.append) as profiler:
        profiler.step()
        profiler.step()
        assert calls == []
    assert len(calls) == 1


def cycles(**arguments: Any) -> Any:
    """Runs two cycles of one range each."""
    profiler = profile(**arguments)
    for name in ("first", "second"):
        profiler.start()
        mark(name)
        mark("both")
        profiler.stop()
    return profiler


def test_p_70_the_newest_cycle_comes_first() -> None:
    profiler = cycles(acc_events=True)
    assert [event.name for event in profiler.events()] == ["second", "both", "first", "both"]


def test_p_70_the_inner_profiler_stays() -> None:
    profiler = profile(acc_events=True)
    with profiler:
        pass
    inner = profiler.profiler
    with profiler:
        pass
    assert profiler.profiler is inner


def test_p_71_rows_sum_over_cycles_and_the_trace_has_the_last(tmp_path: Path) -> None:
    profiler = cycles(acc_events=True)
    assert counts(profiler) == {"first": 1, "second": 1, "both": 2}
    assert names(export(profiler, tmp_path)) == {"second": 1, "both": 1}


def test_p_72_without_accumulation_the_last_cycle_is_seen() -> None:
    assert profile().acc_events is False
    torch.profiler.profiler._WARNINGS_SHOWN.clear()
    cycles(acc_events=True)
    with pytest.warns(UserWarning, match="Profiler clears events at the end of each cycle"):
        profiler = cycles()
    assert counts(profiler) == {"second": 1, "both": 1}


def test_p_80_ids_are_random_by_default() -> None:
    with profile() as profiler:
        pass
    assert re.fullmatch("[0-9A-F]{32}", profiler.get_trace_id())


def test_p_81_each_cycle_has_an_id() -> None:
    made: list[str] = []

    def make() -> str:
        made.append(f"id {len(made)}")
        return made[-1]

    with profile(schedule=follow("SNSN"), custom_trace_id_callback=make) as profiler:
        seen = [profiler.get_trace_id()]
        for _ in range(3):
            profiler.step()
            seen.append(profiler.get_trace_id())
    assert seen == ["id 0", "id 0", "id 1", "id 1"]
    assert made == ["id 0", "id 1"]


def test_p_82_a_new_callback_counts_from_the_next_cycle() -> None:
    for accumulate, expected in [(False, "new"), (True, "old")]:
        profiler = profile(custom_trace_id_callback=lambda: "old", acc_events=accumulate)
        profiler.start()
        profiler.set_custom_trace_id_callback(lambda: "new")
        assert profiler.get_trace_id() == "old"
        profiler.stop()
        with profiler:
            assert profiler.get_trace_id() == expected


def test_p_83_ids_are_texts(tmp_path: Path) -> None:
    profiler = profile(custom_trace_id_callback=lambda: 3)
    with pytest.raises(TypeError, match=r"__init__\(\): incompatible constructor arguments."):
        profiler.start()
    with profile(custom_trace_id_callback=lambda: "") as profiler:
        work()
    assert "trace_id" not in export(profiler, tmp_path)


def test_p_84_the_trace_has_the_id(tmp_path: Path) -> None:
    with profile() as profiler:
        work()
    assert export(profiler, tmp_path)["trace_id"] == profiler.get_trace_id()
