"""`mindprof.diff`: what changed between two profiles."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import mindprof
import pytest
from hypothesis import given
from hypothesis import strategies as st

GOLDENS = Path(__file__).parents[1] / "goldens"
MLP = GOLDENS / "cpu-torch2.15" / "mlp-full.trace.json.gz"
CNN = GOLDENS / "cpu-torch2.15" / "cnn-full.trace.json.gz"

Operators = list[tuple[str, int]]


def write(path: Path, operators: Operators) -> Path:
    """Writes a trace of operators one after the other: names and microseconds."""
    events, start = [], 0
    for name, duration in operators:
        event = {"ph": "X", "cat": "cpu_op", "name": name, "pid": 1, "tid": 1}
        events.append({**event, "ts": start, "dur": duration})
        start += duration
    path.write_text(json.dumps({"traceEvents": events}))
    return path


def test_rows_come_by_the_size_of_their_change(tmp_path: Path) -> None:
    before = write(tmp_path / "a.json", [("mm", 100), ("relu", 10), ("old", 40), ("same", 50)])
    after = write(tmp_path / "b.json", [("mm", 150), ("relu", 5), ("same", 50), ("new", 5)])
    found = mindprof.diff(before, str(after))
    assert [(row.key, row.state, row.self_time_change) for row in found.rows] == [
        ("mm", "changed", 50.0),
        ("old", "gone", -40.0),
        ("relu", "changed", -5.0),
        ("new", "new", 5.0),
        ("same", "same", 0.0),
    ]
    assert found
    assert (found.before.count, found.after.self_cpu_time) == (4, 210.0)
    assert found.growth == pytest.approx(0.05)
    worst = found.worst()
    assert worst is not None
    assert (worst.key, worst.growth) == ("mm", 0.25)
    assert found.table(row_limit=1).splitlines()[2].startswith("mm ")
    assert str(found) == found.table()
    assert found.to_dicts()[0]["count_before"] == 1
    assert [row["key"] for row in json.loads(found.to_json())["rows"]] == [
        row.key for row in found.rows
    ]
    assert repr(found) == "<mindprof.ProfileDiff of 5 rows, +5.0%>"


def test_shapes_tell_rows_apart_where_both_have_them() -> None:
    by_shapes = mindprof.diff(MLP, CNN)
    by_name = mindprof.diff(MLP, CNN, by_shapes=False)
    assert (by_shapes.by_shapes, by_name.by_shapes) == (True, False)
    assert len(by_shapes) > len(by_name)
    assert isinstance(by_shapes.rows[0].input_shapes, list)
    assert by_name.rows[0].input_shapes is None


def test_sums_are_those_of_the_rows() -> None:
    loaded = mindprof.load(MLP)
    found = mindprof.diff(loaded, loaded, by_shapes=False)
    expected = {
        (row.key, row.is_user_annotation): (row.count, row.self_cpu_time_total)
        for row in loaded.key_averages()
    }
    assert {
        (row.key, row.is_user_annotation): (row.count_after, row.self_time_after)
        for row in found.rows
    } == expected


def test_live_profiles_loaded_ones_and_files_can_be_compared(tmp_path: Path) -> None:
    with mindprof.profile() as prof:
        for _ in range(3):
            with mindprof.record_function("step"):
                pass
    path = tmp_path / "trace.json"
    prof.export_chrome_trace(path)
    for other in (prof, prof.profiler, path, str(path), mindprof.load(path)):
        assert other is not None
        found = mindprof.diff(prof, other)
        assert not found
        assert [row.count_after for row in found.rows] == [3]


def test_what_was_not_recorded_cannot_be_compared() -> None:
    with pytest.raises(ValueError, match="no finished recording"):
        mindprof.diff(mindprof.profile(), MLP)
    with pytest.raises(FileNotFoundError):
        mindprof.diff(MLP, "missing.json")
    with pytest.raises(ValueError, match="measure should be one of: self, total, count"):
        mindprof.diff(MLP, MLP, measure="colour")  # type: ignore[arg-type]


def test_a_profile_does_not_differ_from_itself() -> None:
    found = mindprof.diff(MLP, MLP)
    assert not found
    assert (found.worst(), found.growth) == (None, 0.0)
    assert found.table().startswith("No change.\n")


operators = st.lists(st.tuples(st.sampled_from("abcd"), st.integers(0, 99)), max_size=12)


@given(operators, operators, st.sampled_from(["self", "total", "count"]))
def test_the_other_way_round_it_is_the_negation(
    tmp_path_factory: pytest.TempPathFactory,
    a: Operators,
    b: Operators,
    measure: mindprof._diff.Measure,
) -> None:
    folder = tmp_path_factory.mktemp("diff")
    first, second = write(folder / "a.json", a), write(folder / "b.json", b)
    there = mindprof.diff(first, second, measure=measure)
    back = mindprof.diff(second, first, measure=measure)
    assert [row.key for row in there.rows] == [row.key for row in back.rows]
    for row, other in zip(there.rows, back.rows, strict=True):
        assert row.count_change == -other.count_change
        assert row.self_time_change == -other.self_time_change
        assert row.total_time_change == -other.total_time_change


def test_a_verdict_is_that_of_the_program(tmp_path: Path) -> None:
    """`verdict` passes, fails and refuses what `mindprof diff --fail-over` does."""

    def trace(name: str, duration: float) -> Path:
        event = {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1}
        path = tmp_path / name
        path.write_text(json.dumps({"traceEvents": [event | {"ts": 0, "dur": duration}]}))
        return path

    before, after = trace("before.json", 100), trace("after.json", 110)
    empty = tmp_path / "empty.json"
    empty.write_text('{"traceEvents": []}')
    cut = tmp_path / "cut.json"
    cut.write_text(before.read_text()[:-2] + ', {"ph": "X", ')
    for first, second, outcome, code in [
        (before, before, "within", 0),
        (before, after, "exceeded", 1),
        (before, empty, "refused", 2),
        (empty, before, "refused", 2),
        (before, cut, "refused", 2),
        (cut, before, "refused", 2),
    ]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", mindprof.RepairWarning)
            verdict = mindprof.diff(first, second).verdict(0.05)
            sides = [pickle.loads(pickle.dumps(mindprof.load(path))) for path in (first, second)]
            assert mindprof.diff(*sides).verdict(0.05) == verdict
        assert (verdict.outcome, bool(verdict)) == (outcome, outcome == "within")
        words = ["diff", str(first), str(second), "--fail-over", "5%"]
        done = subprocess.run(
            [sys.executable, "-m", "mindprof", *words], capture_output=True, text=True
        )
        assert done.returncode == code, done.stderr
        if not verdict:
            sentence = str(verdict)
            for path in (first, second):
                # The program writes a colon after the path.
                sentence = sentence.removeprefix(f"{path} ")
            assert sentence in done.stderr
        else:
            assert f"{verdict}\n" == done.stderr


@pytest.mark.parametrize(
    ("events", "facts", "reason", "is_incomplete"),
    [
        ({}, {"mindprof": {"lost": {"budget": 24}}}, "lost 24 events, up to 96.0%", True),
        ({}, {"mindprof_slim": {"events": 9, "kept": 1, "clipped": 0}}, "was cut by", True),
        ({}, {"mindprof_damage": {"cuts": 1, "altered": 0}}, "is damaged or cut off", True),
        ({}, {"mindprof": {"lost": {"future": 9}}}, "has a note of loss", True),
        ({"ph": "i"}, {}, "has no operators, ranges or device work", False),
        ({"cat": "cuda_sync"}, {}, "has no operators, ranges or device work", False),
        ({"dur": 0}, {}, "has no event with a duration", False),
        ({"name": "other"}, {}, "has no row in common with the first", False),
    ],
)
def test_a_verdict_refuses_what_compares_nothing(
    tmp_path: Path, events: dict[str, Any], facts: dict[str, Any], reason: str, is_incomplete: bool
) -> None:
    before, after = tmp_path / "before.json", tmp_path / "after.json"
    event = {"ph": "X", "cat": "cpu_op", "name": "mm", "pid": 1, "tid": 1, "ts": 0, "dur": 9}
    before.write_text(json.dumps({"traceEvents": [event]}))
    after.write_text(json.dumps({"traceEvents": [event | events], **facts}))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mindprof.RepairWarning)
        found = mindprof.diff(before, after)
        loaded = mindprof.load(after)
        unnamed = mindprof.diff(before, mindprof.load(after.read_bytes())).verdict(0.05)
    verdict = found.verdict(0.05)
    assert (verdict.outcome, bool(verdict), verdict.growth) == ("refused", False, None)
    assert str(verdict).startswith(f"{after} {reason}")
    assert str(unnamed).startswith(f"the second profile {reason}")
    first_line = f"\nnote: B {reason.removesuffix(' the first')}"
    assert first_line in str(found)
    assert json.loads(found.to_json())["notes"][0]["side"] == "after"
    accepted = found.verdict(0.05, allow_incomplete=True)
    assert accepted.outcome == ("within" if is_incomplete else "refused")
    told = [warning.startswith(f"{after} {reason}") for warning in accepted.warnings]
    assert told == [True] * is_incomplete
    again = pickle.loads(pickle.dumps(loaded))
    assert mindprof.diff(before, again).verdict(0.05) == verdict


def test_a_recording_that_lost_most_of_its_events_is_refused() -> None:
    def record(budget_bytes: int) -> mindprof.profile:
        with mindprof.profile(budget_bytes=budget_bytes) as prof:
            for _ in range(100):
                with mindprof.record_function("step"):
                    pass
        return prof

    whole, little = record(1 << 20), record(320)
    assert little.lost_events > 50
    assert mindprof.diff(whole, whole).verdict("1000%")
    assert mindprof.diff(whole, little).verdict("1000%").outcome == "refused"


def test_a_verdict_checks_its_limit() -> None:
    with mindprof.profile() as prof, mindprof.record_function("step"):
        pass
    found = mindprof.diff(prof, prof)
    assert found.verdict(0, fail_on="row")
    assert found.verdict(0).growth == 0
    for limit in (-0.1, float("nan")):
        with pytest.raises(ValueError, match="fail_over must be zero or more, got"):
            found.verdict(limit)
    refused: list[tuple[Any, type[Exception], str]] = [
        (float("inf"), ValueError, "fail_over must be finite, got inf"),
        ("inf%", ValueError, "fail_over must be finite"),
        ("-5%", ValueError, "fail_over must be zero or more, got -5%"),
        ("5", ValueError, "a fraction such as 0.05, or a percentage such as \"5%\", got '5'"),
        ("five%", ValueError, "a percentage such as"),
        (None, TypeError, "a fraction such as 0.05, .* got NoneType"),
        (True, TypeError, "a fraction such as 0.05, .* got True"),
    ]
    for value, error, text in refused:
        with pytest.raises(error, match=text):
            found.verdict(value)
    with pytest.raises(ValueError, match="fail_on should be one of: total, row"):
        found.verdict(0, fail_on="rows")  # type: ignore[arg-type]


def test_a_limit_of_one_or_more_may_be_meant_as_a_percentage(tmp_path: Path) -> None:
    before = write(tmp_path / "before.json", [("aten::mm", 100)])
    after = write(tmp_path / "after.json", [("aten::mm", 110)])
    found = mindprof.diff(before, after)
    doubt = "the limit is 500%; pass 0.05 if you meant 5%"
    with pytest.warns(UserWarning, match=doubt):
        verdict = found.verdict(5)
    assert (verdict.outcome, verdict.warnings) == ("within", (doubt,))
    assert str(verdict) == "CPU time grew by 10.0%, within 500%"
    by_sign = found.verdict("5%")
    assert (by_sign.outcome, by_sign.warnings) == ("exceeded", ())
    assert by_sign == found.verdict(0.05)
    assert found.verdict("500%").warnings == ()


def test_a_verdict_divides_losses_by_the_kind_that_was_lost(tmp_path: Path) -> None:
    def trace(name: str, operators: int, other: list[dict[str, Any]], lost: dict[str, int]) -> Path:
        operator = {"ph": "X", "cat": "cpu_op", "name": "mm", "pid": 1, "tid": 1, "dur": 10}
        events = [operator | {"ts": 100 * start} for start in range(operators)] + other
        path = tmp_path / name
        path.write_text(json.dumps({"traceEvents": events, "mindprof": {"lost": lost}}))
        return path

    call = {"ph": "X", "cat": "python_function", "name": "f", "pid": 1, "tid": 2, "dur": 1}
    calls = [call | {"ts": 10 * start} for start in range(2000)]
    argument = {"Device Type": 0, "Device Id": -1, "Addr": 1, "Bytes": 64, "Total Allocated": 64}
    record = {"ph": "i", "s": "t", "cat": "cpu_instant_event", "name": "[memory]", "pid": 1}
    memory = [record | {"tid": 1, "ts": start, "args": argument} for start in range(2000)]
    for other in (calls, memory):
        before = trace("before.json", 100, other, {})
        after = trace("after.json", 10, other, {"budget": 10})
        verdict = mindprof.diff(before, after).verdict(0.05)
        assert verdict.outcome == "refused"
        assert "lost 10 events, up to 50.0% of its CPU events" in str(verdict)


def test_a_profile_with_fewer_devices_is_refused(tmp_path: Path) -> None:
    def trace(name: str, devices: int) -> Path:
        operator = {"ph": "X", "cat": "cpu_op", "name": "mm", "pid": 99, "tid": 1, "dur": 10}
        kernel = {"ph": "X", "cat": "kernel", "name": "k", "tid": 7, "ts": 50, "dur": 10}
        events = [operator | {"ts": 0}]
        for device in range(devices):
            place = {"device": device, "stream": 7, "correlation": device + 1}
            events.append(kernel | {"pid": device, "args": place})
        path = tmp_path / name
        path.write_text(json.dumps({"traceEvents": events}))
        return path

    before, after = trace("before.json", 4), trace("after.json", 1)
    found = mindprof.diff(before, after)
    assert "has work of 1 CUDA device, but the first has 4" in str(found.verdict(0.05))
    assert found.verdict(0.05, allow_incomplete=True)
    assert "\nnote: B has work of 1 CUDA device, but A has 4\n" in found.table()
    assert mindprof.diff(before, before).verdict(0)


def test_what_changed_follows_the_measure(tmp_path: Path) -> None:
    before = write(tmp_path / "before.json", [("aten::mm", 100), ("aten::add", 5)])
    after = write(tmp_path / "after.json", [("aten::mm", 120), ("aten::add", 5)])
    by_time = mindprof.diff(before, after)
    assert bool(by_time)
    assert {row.key: row.state for row in by_time.rows} == {
        "aten::mm": "changed",
        "aten::add": "same",
    }
    by_count = mindprof.diff(before, after, measure="count")
    assert not by_count
    assert {row.state for row in by_count.rows} == {"same"}
    assert by_count.table().startswith("No change of counts.\n")
    assert '"changed"' not in by_count.to_json()
