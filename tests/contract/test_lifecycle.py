"""Sections 2.3 to 2.5: start, step, stop, in any order."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest
from host import (
    CLEARS_EVENTS,
    CPU,
    Action,
    counts,
    export,
    follow,
    mark,
    names,
    profile,
    record,
    torch,
    work,
)


def run(letters: str, **arguments: Any) -> Any:
    """Runs as many steps as there are letters, with a range of its own in each."""
    with profile(schedule=follow(letters), **arguments) as profiler:
        for step in range(len(letters)):
            mark(f"in {step}")
            if step < len(letters) - 1:
                profiler.step()
    return profiler


def test_p_24_step_before_start_without_schedule() -> None:
    profiler = profile()
    profiler.step()
    assert profiler.step_num == 1
    assert not torch.autograd._profiler_enabled()


def test_p_25_steps_alone_start_profiling() -> None:
    profiler = profile(schedule=follow("NRS"))
    profiler.step()
    assert torch.autograd._profiler_enabled()
    work()
    profiler.stop()
    assert counts(profiler)["aten::add"] == 1


def test_p_26_stop_before_start() -> None:
    text = "^Profiler must be initialized before stopping trace$"
    with pytest.raises(AssertionError, match=text):
        profile().stop()


@pytest.mark.differs("torch replaces the results by nothing and calls back again")
def test_p_27_second_stop_keeps_results(tmp_path: Path) -> None:
    calls: list[Any] = []
    profiler = profile(on_trace_ready=calls.append)
    profiler.start()
    work()
    profiler.stop()
    profiler.stop()
    assert counts(profiler)["aten::add"] == 1
    assert calls == [profiler]
    assert names(export(profiler, tmp_path))["aten::add"] == 1


def test_p_28_start_twice_begins_anew() -> None:
    profiler = profile()
    profiler.start()
    mark("first")
    profiler.start()
    mark("second")
    profiler.stop()
    assert counts(profiler) == {"second": 1}


@pytest.mark.differs("torch's outer profiler ends without events")
def test_p_29_nested_profilers_both_get_their_events() -> None:
    with profile() as outer:
        mark("before")
        with profile() as inner:
            mark("during")
        mark("after")
    assert counts(inner) == {"during": 1}
    assert counts(outer) == {"before": 1, "during": 1, "after": 1}


@pytest.mark.differs("torch's outer profiler loses links")
def test_p_29_a_profiler_on_another_thread_disturbs_nobody() -> None:
    inner = profile()

    def other() -> None:
        with inner:
            mark("other")

    with profile() as outer:
        mark("mine")
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
    assert counts(inner) == {"other": 1}
    assert counts(outer) == {"mine": 1, "other": 1}


@pytest.mark.parametrize(
    ("method", "arguments", "doing"),
    [
        pytest.param("key_averages", (), "getting key averages", id="p_30"),
        pytest.param("events", (), "accessing events", id="p_31"),
        pytest.param("export_chrome_trace", ("x.json",), "exporting chrome trace", id="p_32"),
        pytest.param("export_stacks", ("x.txt",), "exporting stacks", id="p_33"),
        pytest.param("start_trace", (), "starting trace", id="start_trace"),
        pytest.param("stop_trace", (), "stopping trace", id="stop_trace"),
    ],
)
def test_p_30_p_31_p_32_p_33_results_before_start(
    method: str, arguments: tuple[str, ...], doing: str
) -> None:
    text = f"^Profiler must be initialized before {doing}$"
    with pytest.raises(AssertionError, match=text):
        getattr(profile(), method)(*arguments)


def test_p_34_no_id_and_no_stats_before_start() -> None:
    assert profile().get_trace_id() is None
    assert profile()._stats() is None


def test_p_35_toggling_before_start_does_nothing() -> None:
    profile().toggle_collection_dynamic(False, [CPU])
    profile().toggle_collection_dynamic(False, 3)


def test_p_36_metadata_before_start_is_kept(tmp_path: Path) -> None:
    profiler = profile()
    profiler.add_metadata("early", "text")
    profiler.add_metadata_json("early_json", "[1]")
    with profiler:
        work()
    trace = export(profiler, tmp_path, use_python_export=True)
    assert (trace["early"], trace["early_json"]) == ("text", [1])


def test_p_37_results_while_running_are_empty() -> None:
    with profile() as profiler:
        work()
        assert list(profiler.key_averages()) == []
        assert list(profiler.events()) == []
    assert counts(profiler)["aten::add"] == 1


def test_p_38_export_while_running(tmp_path: Path) -> None:
    with (
        profile() as profiler,
        pytest.raises(AttributeError, match="'NoneType' object has no attribute 'save'"),
    ):
        profiler.export_chrome_trace(str(tmp_path / "trace.json"))
    assert not (tmp_path / "trace.json").exists()


def test_p_39_stacks_need_the_flag() -> None:
    text = r"^export_stacks\(\) requires with_stack=True$"
    with profile() as profiler, pytest.raises(AssertionError, match=text):
        profiler.export_stacks("x.txt", "nope")


def test_p_40_unknown_activity_types_fail_at_start() -> None:
    profiler = profile(activities=[{CPU: ["NOPE"]}])
    with pytest.raises(RuntimeError, match="Unknown or non-member activity type name: 'NOPE'"):
        profiler.start()


def test_p_41_stop_after_a_failed_start() -> None:
    profiler = profile(activities=[{CPU: ["NOPE"]}])
    with pytest.raises(RuntimeError):
        profiler.start()
    profiler.stop()
    profiler = profile(post_processing_timeout_s=-1)
    with pytest.raises(ValueError, match="non-negative"):
        profiler.start()
    with pytest.raises(AssertionError, match="initialized before stopping trace"):
        profiler.stop()


def test_p_42_an_exception_in_the_body_passes_through() -> None:
    calls: list[Any] = []

    def body() -> None:
        work()
        raise KeyError

    profiler = profile(on_trace_ready=calls.append)
    with pytest.raises(KeyError), profiler:
        body()
    assert calls == [profiler]
    assert counts(profiler)["aten::add"] == 1


def test_p_43_an_exception_in_the_callback_leaves_everything_usable() -> None:
    def fail(_: Any) -> None:
        raise KeyError

    profiler = profile(on_trace_ready=fail)
    profiler.start()
    work()
    with pytest.raises(KeyError):
        profiler.stop()
    assert counts(profiler)["aten::add"] == 1
    with profile() as another:
        work()
    assert counts(another)["aten::add"] == 1
    profiler.on_trace_ready = None
    with profiler:
        mark("again")
    assert counts(profiler) == {"again": 1}


def test_p_44_step_after_stop_without_schedule() -> None:
    with profile() as profiler:
        work()
    profiler.step()
    assert profiler.step_num == 1
    assert counts(profiler)["aten::add"] == 1


def test_p_45_step_after_stop_with_schedule_goes_on() -> None:
    profiler = profile(schedule=follow("S"))
    profiler.start()
    profiler.stop()
    profiler.step()
    assert torch.autograd._profiler_enabled()
    mark("again")
    profiler.stop()
    assert counts(profiler)["again"] == 1


def test_p_46_restart_forgets() -> None:
    profiler = profile()
    for name in ("first", "second"):
        profiler.start()
        mark(name)
        profiler.stop()
    assert counts(profiler) == {"second": 1}


def test_p_47_entering_again_keeps_the_step() -> None:
    profiler = profile(schedule=follow("S"))
    for _ in range(2):
        with profiler:
            profiler.step()
    assert profiler.step_num == 2


def test_p_48_a_schedule_that_raises_changes_nothing() -> None:
    def schedule(step: int) -> Any:
        if step == 1:
            raise KeyError
        return Action.RECORD

    profiler = profile(schedule=schedule)
    profiler.start()
    with pytest.raises(KeyError):
        profiler.step()
    assert (profiler.step_num, profiler.current_action) == (0, Action.RECORD)
    assert profiler.step_rec_fn is None
    profiler.stop()
    assert counts(profiler) == {"ProfilerStep*": 1}


@pytest.mark.differs("torch stops nothing: its state is of the thread that started")
def test_p_49_stop_from_another_thread() -> None:
    profiler = profile()
    profiler.start()
    work()
    thread = threading.Thread(target=profiler.stop)
    thread.start()
    thread.join()
    assert not torch.autograd._profiler_enabled()
    assert counts(profiler)["aten::add"] == 1


def test_p_50_the_second_cycle_warns_once() -> None:
    torch.profiler.profiler._WARNINGS_SHOWN.discard(CLEARS_EVENTS)
    profiler = profile()
    with profiler:
        pass
    with pytest.warns(UserWarning, match="clears events") as warned:
        profiler.start()
    profiler.stop()
    assert [str(warning.message) for warning in warned] == [CLEARS_EVENTS]
    with profiler:
        pass


def test_p_51_a_schedule_that_never_records() -> None:
    profiler = run("NNN")
    assert profiler.get_trace_id() is None
    assert profiler.profiler is None
    with pytest.raises(AssertionError, match="before getting key averages"):
        profiler.key_averages()
    with pytest.raises(AssertionError, match="before accessing events"):
        profiler.events()


def test_p_52_results_last_until_the_next_warmup() -> None:
    with profile(schedule=follow("SNWN")) as profiler:
        work()
        profiler.step()
        assert counts(profiler)["aten::add"] == 1
        profiler.step()
        assert counts(profiler) == {}
        with pytest.warns(UserWarning, match="Incorrect schedule: WARMUP followed by NONE"):
            profiler.step()


TABLE = {
    "NN": "",
    "NW": "P",
    "NR": "PS",
    "NS": "PS",
    "WN": "wSX",
    "WW": "",
    "WR": "S",
    "WS": "S",
    "WD": "SXR",
    "W-": "SX",
    "RN": "wX",
    "RW": "wX",
    "RR": "",
    "RS": "",
    "RD": "XR",
    "R-": "XR",
    "SN": "XR",
    "SW": "XRP",
    "SR": "XRPS",
    "SS": "XRPS",
    "S-": "XR",
    "DN": "",
    "DW": "P",
    "DR": "PS",
    "DS": "PS",
    "DD": "",
    "D-": "",
}
ACTIONS = {
    "N": Action.NONE,
    "W": Action.WARMUP,
    "R": Action.RECORD,
    "S": Action.RECORD_AND_SAVE,
    "D": Action.DEVICE_STOPPED,
    "-": None,
}


def test_the_table_of_transitions() -> None:
    profiler = profile()
    letters = {
        "prepare_trace": "P",
        "start_trace": "S",
        "stop_trace": "X",
        "_trace_ready": "R",
    }
    found = {
        pair: "".join(
            letters[step.__name__] if hasattr(step, "__name__") else "w"
            for step in profiler.action_map[ACTIONS[pair[0]], ACTIONS[pair[1]]]
        )
        for pair in TABLE
    }
    assert found == TABLE


@pytest.mark.parametrize("before", ["NONE", "RECORD_AND_SAVE"])
def test_transitions_that_cannot_be(before: str) -> None:
    (step,) = profile().action_map[Action[before], Action.DEVICE_STOPPED]
    text = f"^Profiler internal error: {before} -> DEVICE_STOPPED should be unreachable$"
    with pytest.raises(RuntimeError, match=text):
        step()


@pytest.mark.parametrize(
    ("letters", "text"),
    [
        ("WN", "Incorrect schedule: WARMUP followed by NONE"),
        ("RN", "Incorrect schedule: RECORD followed by NONE"),
        ("RW", "Incorrect schedule: RECORD followed by WARMUP"),
    ],
)
def test_incorrect_schedules_warn_and_do_not_call_back(letters: str, text: str) -> None:
    calls: list[Any] = []
    with pytest.warns(UserWarning, match=f"^{text}$"):
        run(letters, on_trace_ready=calls.append)
    assert calls == []


def test_record_then_warmup_goes_on_with_the_same_profiler() -> None:
    calls: list[Any] = []
    with pytest.warns(UserWarning, match="RECORD followed by WARMUP"):
        profiler = run("RWR", on_trace_ready=calls.append)
    assert len(calls) == 1
    assert counts(profiler) == {"in 2": 1, "ProfilerStep*": 1}


def test_stop_during_warmup_leaves_an_empty_result(tmp_path: Path) -> None:
    calls: list[Any] = []
    profiler = run("NW", on_trace_ready=calls.append)
    assert calls == []
    assert counts(profiler) == {}
    assert not names(export(profiler, tmp_path))


def test_ending_on_a_save_calls_back_for_each_cycle() -> None:
    seen: list[dict[str, int]] = []
    run("NWSS", on_trace_ready=lambda profiler: seen.append(counts(profiler)))
    assert seen == [{"in 2": 1, "ProfilerStep*": 1}, {"in 3": 1, "ProfilerStep*": 1}]


def test_parsing_is_lazy_and_averages_are_new_each_time() -> None:
    with profile() as profiler:
        work()
    stats = profiler._stats()
    assert stats.number_of_events == 0
    assert stats.profiling_window_duration_sec > 0
    assert profiler.key_averages() is not profiler.key_averages()


def test_events_are_made_once() -> None:
    with profile() as profiler:
        work()
    assert profiler.events() is profiler.events()
    assert profiler._stats().number_of_events == len(profiler.events())


def test_the_module_says_whether_a_profiler_is_on() -> None:
    module = torch.autograd.profiler
    assert not module._is_profiler_enabled
    with profile():
        assert module._is_profiler_enabled
        assert torch.autograd._profiler_enabled()
    assert not module._is_profiler_enabled


def test_the_inner_profiler_is_entered_once() -> None:
    profiler = torch.autograd.profiler.profile()
    assert repr(profiler) == str(profiler) == "<unfinished torch.autograd.profile>"
    assert list(profiler.key_averages()) == []
    with profiler as entered:
        work()
    assert entered is profiler
    assert counts(profiler)["aten::add"] == 1
    with pytest.raises(RuntimeError, match=r"^Profiler context manager is not reentrant$"):
        profiler.__enter__()


def test_the_inner_profiler_can_be_disabled() -> None:
    profiler = torch.autograd.profiler.profile(enabled=False)
    with profiler as entered:
        pass
    assert entered is None
    with pytest.raises(AttributeError):
        profiler.key_averages()


def test_the_base_class_has_no_schedule() -> None:
    profiler = torch.profiler._KinetoProfile(activities=[])
    assert profiler.activities == set()
    profiler = torch.profiler._KinetoProfile()
    profiler.start()
    work()
    profiler.stop()
    assert counts(profiler)["aten::add"] == 1
    assert not hasattr(profiler, "step")
    assert not hasattr(profiler, "__enter__")


def test_profile_has_no_methods_of_the_inner_one() -> None:
    for name in ("table", "self_cpu_time_total", "total_average", "__call__"):
        assert not hasattr(profile(), name)


def test_trace_only_has_no_events(tmp_path: Path) -> None:
    config = torch.profiler._ExperimentalConfig(trace_only=True)
    with profile(experimental_config=config) as profiler:
        work()
    text = "is not available when trace_only=True in ExperimentalConfig. Use export_chrome_trace"
    for method in (profiler.events, profiler.key_averages):
        with pytest.raises(RuntimeError, match=text):
            method()
    assert names(export(profiler, tmp_path))["aten::add"] == 1


def test_no_time_for_results_means_none() -> None:
    with profile(post_processing_timeout_s=0) as profiler:
        work()
    assert list(profiler.key_averages()) == []


def test_activity_types_filter_the_trace_only(tmp_path: Path) -> None:
    with profile(activities=[{CPU: ["USER_ANNOTATION"]}]) as profiler, record("range"):
        work()
    assert counts(profiler)["aten::add"] == 1
    found = names(export(profiler, tmp_path))
    assert found["range"] == 1
    assert found["aten::add"] == 0


@pytest.mark.parametrize("missing", ["record_shapes", "profile_memory", "with_stack"])
def test_m_1_the_memory_timeline_needs_three_flags(missing: str) -> None:
    flags = {"record_shapes": True, "profile_memory": True, "with_stack": True, missing: False}
    text = f"^{missing}=True required for memory profiling.$"
    with (
        pytest.warns(FutureWarning, match="`export_memory_timeline` is deprecated"),
        pytest.raises(ValueError, match=text),
    ):
        profile(**flags).export_memory_timeline("x.json")


def test_m_1_the_memory_timeline_names_all_missing_flags() -> None:
    text = "^record_shapes=True, profile_memory=True, with_stack=True required for memory profiling"
    with (
        pytest.warns(FutureWarning, match="`export_memory_timeline` is deprecated"),
        pytest.raises(ValueError, match=text),
    ):
        profile().export_memory_timeline("x.json")
