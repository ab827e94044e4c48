"""`profile(only=...)`: recordings that hold some of the operators, and say so."""

from __future__ import annotations

import fnmatch
import json
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import mindprof
import pytest
from mindprof import ProfilerActivity, profile, record_function
from mindprof._profiler import autograd_profile as autograd_profiler

from tests.workloads import torch


def steps(number: int) -> None:
    for _ in range(number):
        with record_function("step"):
            x = torch.ones((4, 4))
            (x @ x + x).sum()


def recorded(number: int = 1, **options: Any) -> mindprof.profile:
    with profile(**options) as prof:
        steps(number)
    return prof


def names(prof: mindprof.profile) -> set[str]:
    return {event.name for event in prof.events()}


def table_of(trace: Path, *options: str) -> str:
    command = [sys.executable, "-m", "mindprof", "table", str(trace), *options]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def test_ranges_alone_are_recorded() -> None:
    assert names(recorded(only="ranges")) == {"step"}


@pytest.mark.parametrize(
    "patterns", [["aten::m*"], ["*add*", "aten::sum"], ["aten::[!a]*"], ["nothing"]]
)
def test_patterns_choose_the_operators_that_fnmatch_does(patterns: list[str]) -> None:
    operators = names(recorded()) - {"step"}
    expected = {
        name
        for name in operators
        if any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)
    }
    assert names(recorded(only=patterns)) == {"step"} | expected
    assert patterns == ["nothing"] or expected < operators


def test_depth_counts_operators() -> None:
    whole = recorded()
    outermost = {
        event.name
        for event in whole.events()
        if event.cpu_parent is None or event.cpu_parent.name == "step"
    }
    assert names(recorded(only="depth=1")) == {"step"} | outermost
    assert names(recorded(only=["depth=99"])) == names(whole)


def test_the_table_says_what_was_recorded_also_from_a_file(tmp_path: Path) -> None:
    prof = recorded(only=("aten::m*", "depth=2"))
    footer = "Recorded only: aten::m*, depth=2; the time of other operators belongs to what they"
    rows = prof.key_averages()
    assert footer in rows.table()
    assert [row.key for row in rows], "looking at rows makes the table from them"
    assert footer in rows.table()
    trace = tmp_path / "trace.json"
    prof.export_chrome_trace(str(trace))
    assert footer in " ".join(table_of(trace).split())
    assert json.loads(table_of(trace, "--json"))["only"] == ["aten::m*", "depth=2"]
    assert "Recorded only" not in recorded().key_averages().table()


def test_a_share_is_scaled_to_the_whole(tmp_path: Path) -> None:
    number = 4000
    prof = recorded(number, only="share=25%")
    rows = {row.key: row for row in prof.key_averages()}
    drawn = sum(event.name == "aten::sum" for event in prof.events())
    assert rows["step"].count == number
    # Fifteen standard deviations on either side.
    assert 590 < drawn < 1410
    assert rows["aten::sum"].count == 4 * drawn
    # The ranges hold all operators, so self times add up to theirs.
    total = sum(row.self_cpu_time_total for row in rows.values())
    assert total == pytest.approx(rows["step"].cpu_time_total, rel=1e-3)
    trace = tmp_path / "trace.json"
    prof.export_chrome_trace(str(trace))
    document = json.loads(table_of(trace, "--json"))
    assert document["only"] == ["share=0.25"]
    found = next(row for row in document["rows"] if row["key"] == "aten::sum")
    assert found["count"] == 4 * drawn
    assert found["margins"]["count"] == pytest.approx(1.96 * (0.75 * drawn) ** 0.5 * 4)
    for text in (prof.key_averages().table(), table_of(trace)):
        assert "Self CPU ±" in text
        assert "estimates from 25% of the outermost operators" in " ".join(text.split())


def test_profilers_beside_each_other_each_get_what_they_want() -> None:
    with profile() as whole, profile(only="ranges") as ranges, profile(only="*sum") as sums:
        steps(2)
    assert names(ranges) == {"step"}
    assert names(sums) == {"step", "aten::sum"}
    assert names(whole) == names(recorded())


def test_only_recordings_with_the_same_limit_are_compared() -> None:
    whole, mm, again = recorded(), recorded(only="*mm"), recorded(only="*mm")
    verdict = mindprof.diff(whole, mm).verdict("99%")
    assert not verdict
    assert "holds only some of its operators" in verdict.reason
    assert "holds only some" not in mindprof.diff(mm, again).verdict("99%").reason


@pytest.mark.filterwarnings("ignore:Warning. Profiler clears events:UserWarning")
def test_every_cycle_is_limited() -> None:
    found = []
    with profile(
        only="aten::sum",
        schedule=mindprof.schedule(wait=1, warmup=1, active=1, repeat=2),
        on_trace_ready=lambda prof: found.append(names(prof)),
    ) as prof:
        for _ in range(6):
            steps(1)
            prof.step()
    assert [{"aten::sum", "step"} <= cycle for cycle in found] == [True, True]
    assert not any("aten::mm" in cycle or "aten::add" in cycle for cycle in found)


@pytest.mark.parametrize(
    ("only", "problem"),
    [
        ((), "it is empty"),
        ("", "not a pattern"),
        ("deep=2", "not a pattern"),
        ("depth=0", "not a depth"),
        ("share=1.5", "not a share"),
        (["ranges", "aten::*"], "use it alone"),
        (["depth=1", "depth=2"], "two values of depth"),
    ],
)
def test_what_makes_no_sense_is_refused(only: str | Iterable[str], problem: str) -> None:
    for make in (profile, autograd_profiler.profile):
        with pytest.raises(ValueError, match=f"^only: .*{problem}"):
            make(only=only)


def test_a_limit_must_suit_the_other_options() -> None:
    with pytest.raises(ValueError, match="memory cannot be estimated"):
        profile(only="share=0.1", profile_memory=True)
    with pytest.raises(ValueError, match=r"add ProfilerActivity\.CPU"):
        profile(only="ranges", activities=[ProfilerActivity.CUDA])
    with pytest.raises(TypeError, match="got 3"):
        profile(only=[3])  # type: ignore[list-item]
