"""Every face of one trace of `mindprof run` gives the same answer."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import mindprof
import pytest

pytestmark = pytest.mark.runtime

MINDPROF = [sys.executable, "-m", "mindprof"]

PROGRAM = """
import slow
import mindtorch_v2 as torch
from mindprof import record_function
model = torch.nn.Linear(2, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(6):
    with record_function("step"):
        optimizer.zero_grad()
        model(torch.ones((2, 2))).sum().backward()
    optimizer.step()
"""

STEPS = 6


class Run:
    """One run of the program, and what it printed."""

    def __init__(self, folder: Path, *options: str) -> None:
        (folder / "slow.py").write_text("import time\ntime.sleep(0.1)\n", encoding="utf-8")
        (folder / "program.py").write_text(PROGRAM, encoding="utf-8")
        words = [*MINDPROF, "run", "-o", "out", *options, "program.py"]
        subprocess.run(words, cwd=folder, capture_output=True, text=True, check=True)
        self.folder = folder
        self.trace = folder / "out/trace.json.gz"
        self.table = (self.trace.parent / "table.txt").read_text(encoding="utf-8")

    def mindprof(self, *words: str | Path) -> str:
        """Runs another command of the program, and returns what it printed."""
        done = subprocess.run(
            [*MINDPROF, *words], cwd=self.folder, capture_output=True, text=True, check=True
        )
        return done.stdout

    def json(self, *words: str | Path) -> Any:
        return json.loads(self.mindprof(*words, "--json"))


@pytest.fixture(scope="module")
def marked(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run as a whole, whose steps are marks."""
    return Run(tmp_path_factory.mktemp("marked"))


@pytest.fixture(scope="module")
def scheduled(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run of chosen steps, which are ranges."""
    return Run(tmp_path_factory.mktemp("scheduled"), "--active", "4", "--no-stacks")


@pytest.fixture(params=["marked", "scheduled"])
def run(request: pytest.FixtureRequest) -> Run:
    found: Run = request.getfixturevalue(request.param)
    return found


def test_self_cpu_time_is_one_number(run: Run) -> None:
    table = run.json("table", run.trace)
    (own,) = {table["self_cpu_time_total"]}
    loaded = mindprof.load(run.trace)
    rows = loaded.key_averages()
    assert rows.self_cpu_time_total == pytest.approx(own)
    assert loaded.events().key_averages().self_cpu_time_total == pytest.approx(own)
    frame = [row["self_cpu_time_total"] for row in rows.to_dicts()]
    assert sum(frame) == pytest.approx(own)
    assert run.json("info", run.trace)["work"]["self_cpu_time_total"] == pytest.approx(own)
    diff = run.json("diff", run.trace, run.trace)
    assert diff["before"]["self_cpu_us"] == pytest.approx(own)
    assert mindprof.diff(run.trace, run.trace).before.self_cpu_time == pytest.approx(own)
    # The run itself and the table in its folder say it in words.
    (shown,) = set(
        re.findall(r"^Self CPU time total: (\S+)$", run.mindprof("table", run.trace), re.M)
    )
    assert f"Self CPU time total: {shown}\n" in run.table
    assert f"Self CPU time total: {shown}\n" in (run.folder / "out/table.txt").read_text()
    assert f"Self CPU time total: {shown}\n" in run.mindprof("info", run.trace)


def test_rows_are_the_same(run: Run) -> None:
    rows = run.json("table", run.trace)["rows"]
    table = {row["key"]: row["count"] for row in rows}
    totals = {row["key"]: pytest.approx(row["cpu_time_total"], abs=1e-6) for row in rows}
    loaded = mindprof.load(run.trace)
    assert {row.key: row.count for row in loaded.key_averages()} == table
    assert {row["key"]: row["count"] for row in loaded.key_averages().to_dicts()} == table
    assert {row.key: row.cpu_time_total for row in loaded.key_averages()} == totals
    diff = mindprof.diff(run.trace, run.trace, by_shapes=False)
    assert {row.key: row.total_time_after for row in diff.rows} == totals
    assert {row.key: row.count_after for row in diff.rows} == table
    assert "step" in table
    assert not [key for key in table if key.startswith(("import ", "ProfilerStep"))]


def test_what_is_left_out_is_the_same(run: Run) -> None:
    left_out = run.json("table", run.trace)["left_out"]
    info = run.json("info", run.trace)["work"]["left_out"]
    imports = [row for row in left_out if row["key"].startswith("import ")]
    steps = [row for row in left_out if not row["key"].startswith("import ")]
    time_us = sum(row["self_cpu_time_total"] for row in imports)
    assert info["imports_us"] == pytest.approx(time_us)
    assert info["step_ranges"] == sum(row["count"] for row in steps)
    whole = run.json("diff", run.trace, run.trace)["before"]
    assert whole["imports_us"] == pytest.approx(time_us)
    assert "Imports, not compared: " in run.mindprof("diff", run.trace, run.trace)
    metadata = mindprof.load(run.trace).metadata["mindprof_run"]
    assert sorted(metadata["imports"]) == sorted(row["key"] for row in imports)
    assert sorted(metadata["steps"]) == sorted(row["key"] for row in steps)
    assert "import slow" in metadata["imports"]
    (said,) = re.findall(r"^imports: (\S+)", run.table, re.M)
    assert f"imports {said}," in run.mindprof("info", run.trace)


def test_steps_are_the_same(run: Run) -> None:
    info = run.json("info", run.trace)["steps"]
    (count,) = re.findall(r"^(\d+) optimizer steps", run.table, re.M)
    assert len(info) == int(count)
    numbers = [step["number"] for step in info]
    assert numbers == list(range(len(info)))
    events = mindprof.load(run.trace).events()
    in_steps = {event.step for event in events if event.name == "aten::addmm"}
    assert in_steps >= set(numbers)
    frame = {event["step"] for event in events.to_dicts() if event["key"] == "aten::addmm"}
    assert frame == in_steps
    for number in numbers:
        run.mindprof("slim", run.trace, "part.json", "--steps", str(number))
        (operators,) = (
            row["count"]
            for row in run.json("table", "part.json")["rows"]
            if row["key"] == "aten::addmm"
        )
        expected = [event for event in events if event.name == "aten::addmm"]
        assert operators == sum(event.step == number for event in expected)


def test_a_run_as_a_whole_has_all_its_steps(marked: Run) -> None:
    assert len(marked.json("info", marked.trace)["steps"]) == STEPS
    assert f"Steps: {STEPS}\n" in marked.mindprof("info", marked.trace)


def test_a_program_without_operators_has_its_python_functions(tmp_path: Path) -> None:
    program = "import time\ndef work():\n    time.sleep(0.01)\nfor _ in range(3):\n    work()\n"
    (tmp_path / "program.py").write_text(program, encoding="utf-8")
    words = [*MINDPROF, "run", "-q", "-o", "out", "program.py"]
    subprocess.run(words, cwd=tmp_path, capture_output=True, check=True)
    trace = tmp_path / "out/trace.json.gz"
    done = subprocess.run([*MINDPROF, "table", trace, "--json"], capture_output=True, check=True)
    table = json.loads(done.stdout)
    rows = mindprof.load(trace).key_averages()
    assert {row.key for row in rows} == {row["key"] for row in table["rows"]}
    assert rows.self_cpu_time_total == pytest.approx(table["self_cpu_time_total"])
    diff = mindprof.diff(trace, trace)
    assert diff.before.self_cpu_time == pytest.approx(table["self_cpu_time_total"])
    assert diff.verdict(0.05)


def test_a_part_of_a_run_has_only_its_own_steps(marked: Run) -> None:
    for number in (1, 3, STEPS):
        marked.mindprof("slim", marked.trace, "own.json", "--steps", str(number))
        steps = marked.json("info", "own.json")["steps"]
        # The last one is open: it ends with the recording, not with another step.
        assert [step["number"] for step in steps] == ([number] if number < STEPS else [])


def test_steps_of_the_programs_own_profiler_are_not_the_runs(tmp_path: Path) -> None:
    own = PROGRAM.replace("for _ in range(6):", "prof.start()\nfor _ in range(6):\n    prof.step()")
    own = own.replace(
        "model =",
        "import mindprof\nprof = mindprof.profile(schedule=mindprof.schedule(wait=0, warmup=0, "
        "active=9))\nmodel =",
    )
    (tmp_path / "slow.py").write_text("", encoding="utf-8")
    (tmp_path / "program.py").write_text(own + "prof.stop()\n", encoding="utf-8")
    words = [*MINDPROF, "run", "--wait", "1", "--active", "2", "--no-stacks", "program.py"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=True)
    table = (tmp_path / "mindprof-program" / "table.txt").read_text(encoding="utf-8")
    assert "\n2 optimizer steps: " in table, done.stderr


@pytest.mark.filterwarnings("ignore:Warning. Profiler clears events")
def test_a_restarted_profiler_has_no_step_before_its_first() -> None:
    prof = mindprof.profile()
    prof.start()
    prof.step()
    prof.stop()
    prof.start()
    with mindprof.record_function("work"):
        pass
    prof.step()
    prof.stop()
    assert prof.profiler is not None
    assert prof.profiler.kineto_results is not None
    steps = json.loads(prof.profiler.kineto_results.ask("steps"))
    assert [step["number"] for step in steps["complete"]] == [1]
    assert steps["open"]["number"] == 2
