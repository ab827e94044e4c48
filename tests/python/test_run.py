"""`mindprof run`: a program is profiled without a change, and its results outlive its end."""

from __future__ import annotations

import contextlib
import fcntl
import gzip
import json
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import termios
import textwrap
import time
from collections import Counter
from pathlib import Path
from typing import Any

import mindprof
import pytest

from tests import workloads

COMMAND = [sys.executable, "-m", "mindprof", "run"]

#: The files of a run with stacks.
FILES = {
    "trace.json.gz",
    "summary.json",
    "table.txt",
    "stacks.folded",
    "flamegraph.svg",
    "report.html",
}

TRAINING = """
import mindtorch_v2 as torch
model = torch.nn.Linear(2, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
other = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(6):
    optimizer.zero_grad()
    model(torch.ones((2, 2))).sum().backward()
    optimizer.step()
    other.step()
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the tests' programs stand and run."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*words: str) -> subprocess.CompletedProcess[str]:
    """Runs `mindprof run` with these words."""
    return subprocess.run(
        [*COMMAND, *words], capture_output=True, text=True, timeout=120, check=False
    )


def write(folder: Path, text: str, name: str = "program.py") -> str:
    """Writes a program, and returns its name."""
    (folder / name).write_text(textwrap.dedent(workloads.program(text)), encoding="utf-8")
    return name


def told(folder: Path) -> str:
    """Returns the table of a run and the lines after it."""
    return (folder / "table.txt").read_text(encoding="utf-8")


def events_of(path: Path) -> list[dict[str, Any]]:
    """Returns what a trace says."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        events: list[dict[str, Any]] = json.load(file)["traceEvents"]
    return events


def names_of(path: Path) -> Counter[str]:
    """Returns how often each name is in a trace."""
    return Counter(event["name"] for event in events_of(path) if event["ph"] == "X")


def test_a_program_is_what_it_is_alone(folder: Path) -> None:
    program = """
        import sys
        main = sys.modules["__main__"]
        print(__name__, __file__, sys.argv, sys.path[0], main.__dict__ is globals())
        """
    name = write(folder, program)
    alone = subprocess.run([sys.executable, name, "--memory", "x"], capture_output=True, text=True)
    done = run(name, "--memory", "x")
    assert (done.returncode, done.stdout) == (0, alone.stdout)


def test_a_program_on_stdin_is_what_it_is_alone(folder: Path) -> None:
    program = (
        "import sys\n"
        "main = sys.modules['__main__']\n"
        "print(__name__, globals().get('__file__'), sys.argv, sys.path[0])\n"
        "print(main.__dict__ is globals())\n"
        "print(repr(sys.stdin.read()), (lambda: 0).__code__.co_filename)\n"
    )
    words = ["-", "--memory", "x"]
    done = [
        subprocess.run([*command, *words], input=program, capture_output=True, text=True)
        for command in ([sys.executable], [*COMMAND, "-q"])
    ]
    assert [run.returncode for run in done] == [0, 0]
    assert done[1].stdout == done[0].stdout
    assert (folder / "mindprof-stdin" / "trace.json.gz").exists()
    broken = subprocess.run([*COMMAND, "-"], input="(", capture_output=True, text=True)
    assert broken.returncode != 0
    assert "<stdin> is not valid Python" in broken.stderr


def test_a_range_named_like_the_launchers_is_the_programs_own(folder: Path) -> None:
    program = TRAINING + (
        "import mindprof\n"
        "with mindprof.record_function('after the last optimizer step'):\n"
        "    model(torch.ones((2, 2)))\n"
    )
    run("--no-stacks", write(folder, program))
    table = told(folder / "mindprof-program")
    facts = [line for line in table.splitlines() if line.startswith("after the last")]
    assert len(facts) == 1, table
    assert table.count("after the last optimizer step") == 2


@pytest.mark.parametrize("columns", [80, 200])
def test_the_table_fits_the_terminal(folder: Path, columns: int) -> None:
    name = write(folder, TRAINING)
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("4H", 24, columns, 0, 0))
    words = [*COMMAND, "--limit", "15", "-o", "out", name]
    process = subprocess.Popen(words, stderr=theirs)
    os.close(theirs)
    text = b""
    # A terminal that nobody writes to any more fails to be read.
    with contextlib.suppress(OSError):
        while read := os.read(ours, 65536):
            text += read
    os.close(ours)
    assert process.wait(timeout=60) == 0
    lines = text.decode().splitlines()
    rules = [number for number, line in enumerate(lines) if line.startswith("---")]
    table = [line.rstrip() for line in lines[rules[0] : rules[-1]]]
    assert 60 < max(map(len, table)) <= columns
    in_file = (folder / "out/table.txt").read_text(encoding="utf-8").splitlines()
    assert len(in_file[0]) > 80


def bounded(**limits: int) -> str:
    """Returns a program that is `mindprof run` with other limits of its results."""
    set_all = "".join(f"bounds.{name} = {limit}; " for name, limit in limits.items())
    return (
        f"from mindprof._run import bounds; {set_all}"
        "import sys; from mindprof._run.command import run; sys.exit(run(sys.argv[1:]))"
    )


def run_bounded(limits: dict[str, int], *words: str) -> subprocess.CompletedProcess[str]:
    """Runs `mindprof run` with other limits of its results."""
    command = [sys.executable, "-c", bounded(**limits), *words]
    return subprocess.run(command, capture_output=True, text=True, check=True)


def test_a_full_budget_keeps_the_end_of_a_run_and_sums_of_the_whole(folder: Path) -> None:
    program = """
        import mindtorch_v2 as torch
        for name, times in [("early", 40_000), ("late", 500)]:
            for _ in range(times):
                with torch.profiler.record_function(name):
                    pass
        """
    name = write(folder, program)
    done = run("--no-stacks", "--budget", "1MB", "-o", "out", name)
    assert done.returncode == 0, done.stderr
    assert "events lost" not in done.stderr
    summary = json.loads((folder / "out/summary.json").read_text(encoding="utf-8"))
    sums = summary["whole_run"]
    calls = {row["name"]: row["calls"] for row in sums["names"]}
    assert (calls["early"], calls["late"]) == (40_000, 500)
    kept = names_of(folder / "out/trace.json.gz")
    assert kept["late"] == 500
    assert sums["only_in_sums"] >= 40_000 - kept["early"] > 0
    assert 0 < sums["kept_us"] < sums["duration_us"]
    said = " ".join(done.stderr.split())
    assert f"{sums['only_in_sums']:,} earlier events are only in the sums" in said
    # A run that fits is described as a whole.
    done = run("--no-stacks", "-o", "whole", name)
    assert "earlier" not in done.stderr
    summary = json.loads((folder / "whole/summary.json").read_text(encoding="utf-8"))
    assert summary["whole_run"] is None


def test_a_run_that_cannot_sample_says_that_it_traces(folder: Path) -> None:
    name = write(folder, TRAINING)
    said = "every call is traced instead of sampled"
    done = run("-o", "sampled", name)
    can_sample = sys.platform == "linux" and sys.version_info >= (3, 11)
    assert (said in done.stderr) is not can_sample
    with gzip.open(folder / "sampled/trace.json.gz", "rt", encoding="utf-8") as file:
        assert ("mindprof_traced_instead" in json.load(file)) is not can_sample
    # Nothing is said about calls that were to be traced.
    assert said not in run("--stacks", "every", "-o", "traced", name).stderr


def test_a_run_records_the_number_of_cores(folder: Path) -> None:
    done = run("-o", "out", write(folder, TRAINING))
    assert done.returncode == 0, done.stderr
    with gzip.open(folder / "out/trace.json.gz", "rt", encoding="utf-8") as file:
        trace = json.load(file)
    assert trace["cpu_cores"] in range(1, (os.cpu_count() or 1) + 1)


def test_the_files_of_a_run_have_a_largest_size(folder: Path) -> None:
    program = """
        import mindtorch_v2 as torch
        for number in range(20_000):
            with torch.profiler.record_function(f"{number * number} " + 300 * "n"):
                pass
        """
    name = write(folder, program)
    most = {"MOST_BYTES": 400_000, "_LEAST_TRACE_BYTES": 1, "_MOST_TABLE_BYTES": 200_000}
    for options, is_cut in [((), True), (("--keep", "all"), False)]:
        done = run_bounded(most, "-o", "out", *options, name)
        sizes = [path.stat().st_size for path in (folder / "out").iterdir()]
        assert (sum(sizes) <= 400_000) is is_cut
        assert ("the trace has the last " in done.stderr) is is_cut
        assert names_of(folder / "out/trace.json.gz")[f"{19_999**2} " + 300 * "n"] == 1
        (line,) = re.findall(r"the first ([0-9,]+) of 20,000 rows", told(folder / "out"))
        assert told(folder / "out").count(300 * "n") <= int(line.replace(",", ""))


def test_a_large_trace_keeps_its_last_part(folder: Path) -> None:
    name = write(folder, TRAINING)
    assert run("-o", "out", name).returncode == 0
    names = names_of(folder / "out/trace.json.gz")
    whole, most = names["aten::addmm"], names.total() * 2 // 3
    code = bounded(_MOST_RECORDS=most)
    for options, is_cut in [((), True), (("--keep", "all"), False)]:
        words = [sys.executable, "-c", code, "-o", "out", *options, name]
        done = subprocess.run(words, capture_output=True, text=True, check=True)
        assert ("the trace has the last " in done.stderr) is is_cut
        names = names_of(folder / "out/trace.json.gz")
        assert (0 < names["aten::addmm"] < whole) is is_cut
        # The last step is kept, and the table is about the whole run.
        steps = {event.step for event in mindprof.load(folder / "out/trace.json.gz").events()}
        assert 5 in steps
        rows = [line.split() for line in told(folder / "out").splitlines()]
        assert [row[-1] for row in rows if row[:1] == ["aten::addmm"]] == [str(whole)]


def test_results_are_in_a_folder_of_their_own(folder: Path) -> None:
    name = write(folder, TRAINING)
    for expected in ("mindprof-program", "mindprof-program-2"):
        done = run(name)
        assert (done.returncode, done.stdout) == (0, "")
        files = {path.name for path in (folder / expected).iterdir()}
        assert files == FILES
        assert "(program.py:" in done.stderr
        assert f"wrote {expected} (" in done.stderr
    table = (folder / "mindprof-program/table.txt").read_text(encoding="utf-8")
    assert "aten::addmm" in table
    assert names_of(folder / "mindprof-program/trace.json.gz")["aten::addmm"] == 6
    lines = (folder / "mindprof-program/stacks.folded").read_text().splitlines()
    assert any("program.py" in line for line in lines)
    paths = [line.rpartition(" ")[0] for line in lines]
    assert len(paths) == len(set(paths))


def test_what_is_recorded_can_be_chosen(folder: Path) -> None:
    name = write(folder, TRAINING)
    assert run("--no-stacks", "-q", "-o", "few", name).returncode == 0
    few = {"trace.json.gz", "summary.json", "table.txt", "report.html"}
    assert {path.name for path in (folder / "few").iterdir()} == few
    done = run("--memory", "--flops", "--quiet", "--budget", "64MiB", "--out", "deep/all", name)
    assert done.returncode == 0
    assert "aten::" not in done.stderr
    assert (folder / "deep/all/memory.html").stat().st_size > 0
    adds = [
        each
        for each in events_of(folder / "deep/all/trace.json.gz")
        if each["name"] == "aten::addmm"
    ]
    assert adds[0]["args"]["Input Dims"]


def test_a_page_that_is_left_out_is_told(folder: Path) -> None:
    small = "from mindprof._run import results\nresults._LARGEST_FOR_REPORT = 100\n"
    name = write(folder, small + TRAINING)
    done = run("-o", "out", name)
    assert done.returncode == 0
    assert not (folder / "out/report.html").exists()
    told = "no report.html, to end quickly: mindprof report out/trace.json.gz writes it"
    assert told in done.stderr.splitlines()
    assert "report.html" not in run("-o", "whole", write(folder, TRAINING)).stderr


def test_steps_are_those_of_the_first_optimizer(folder: Path) -> None:
    name = write(folder, TRAINING)
    done = run("--wait", "1", "--warmup", "1", "--active", "2", "--repeat", "1", "-o", "out", name)
    assert done.returncode == 0
    names = names_of(folder / "out/trace.json.gz")
    assert {each for each in names if each.startswith("ProfilerStep")} == {
        "ProfilerStep#2",
        "ProfilerStep#3",
    }
    assert names["aten::addmm"] == 2


def test_each_window_of_a_schedule_has_its_files(folder: Path) -> None:
    name = write(folder, TRAINING)
    words = ["--wait", "1", "--active", "1", "--repeat", "0", "--no-stacks"]
    assert run(*words, "-o", "out", name).returncode == 0
    traces = sorted((folder / "out").glob("trace-*.json.gz"))
    assert [path.name for path in traces] == [f"trace-{n}.json.gz" for n in (1, 2, 3)]
    assert [names_of(path)["aten::addmm"] for path in traces] == [1, 1, 1]


def test_what_comes_after_the_last_step_is_no_step(folder: Path) -> None:
    done = run("--active", "10", "-o", "out", write(folder, TRAINING))
    assert done.returncode == 0
    names = names_of(folder / "out/trace.json.gz")
    assert sorted(each for each in names if each.startswith("ProfilerStep")) == [
        f"ProfilerStep#{number}" for number in range(6)
    ]
    assert names["after the last optimizer step"] == 1
    assert "the window has 6 of 10 requested optimizer steps" in done.stderr
    assert "\nafter the last optimizer step: " in told(folder / "out")


def test_no_window_is_written_without_a_step(folder: Path) -> None:
    done = run(
        "--active", "2", "--repeat", "0", "--no-stacks", "-o", "out", write(folder, TRAINING)
    )
    assert done.returncode == 0
    assert len(list((folder / "out").glob("trace-*"))) == 3
    assert "no further window was written: the program made no more optimizer steps" in done.stderr


def test_a_window_in_which_the_program_fails_is_written(folder: Path) -> None:
    program = write(folder, TRAINING + "raise ValueError\n")
    assert run("-q", "--active", "2", "--repeat", "0", "-o", "out", program).returncode == 1
    assert names_of(folder / "out/trace-4.json.gz")["after the last optimizer step"] == 1


def test_a_program_without_an_optimizer_is_one_window(folder: Path) -> None:
    name = write(folder, "import mindtorch_v2 as torch\ntorch.ones(2).sum()\n")
    done = run("--active", "2", "-o", "out", name)
    assert done.returncode == 0
    names = names_of(folder / "out/trace.json.gz")
    assert (names["aten::ones"], names["before the first optimizer step"]) == (1, 1)


def test_imports_are_said_beside_the_table(folder: Path) -> None:
    program = """
        import time
        import mindtorch_v2 as torch
        with torch.profiler.record_function("set up"):
            import slow
        with torch.profiler.record_function("import rows"):
            torch.ones(2).sum()
        """
    write(folder, "import time\ntime.sleep(0.2)\n", "slow.py")
    done = run("-o", "out", write(folder, program))
    assert done.returncode == 0
    table = (folder / "out/table.txt").read_text(encoding="utf-8")
    (imports,) = (line for line in table.splitlines() if line.startswith("imports: "))
    assert "slow " in imports
    assert "imports, in none of these shares: " in done.stderr
    assert "import slow" not in table
    # A range of the program's own is no import, whatever it is called.
    assert "import rows" in table
    # The import is not in the time of what is around it either.
    shares = [float(cell[:-1]) for cell in table.split() if cell.endswith("%") and cell != "%"]
    assert max(shares) <= 100


def test_the_table_of_the_trace_is_that_of_the_run(folder: Path) -> None:
    program = """
        import mindtorch_v2 as torch
        from mindprof import record_function
        def work():
            return torch.ones(2).sum()
        model = torch.nn.Linear(2, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(3):
            with record_function("step"):
                import slow
                work()
                optimizer.step()
        """
    write(folder, "import time\ntime.sleep(0.2)\n", "slow.py")
    assert run("-q", "-o", "out", write(folder, program)).returncode == 0
    table = (folder / "out/table.txt").read_text(encoding="utf-8")
    words = ["table", "out/trace.json.gz", "--row-limit", "-1"]
    shown = subprocess.run([*COMMAND[:-1], *words], capture_output=True, text=True)
    rows, imports = shown.stdout.splitlines(), shown.stderr.splitlines()[0]
    assert rows == table.splitlines()[: len(rows)]
    assert "step" in shown.stdout
    assert re.search(r"imports: .*slow .*, not in the table; --all-ranges shows them", imports)
    every = subprocess.run(
        [*COMMAND[:-1], *words, "--all-ranges"], capture_output=True, text=True, check=True
    )
    assert "import slow" in every.stdout
    assert every.stderr == ""


def test_imports_of_all_threads_are_told(folder: Path) -> None:
    program = """
        import threading
        import mindtorch_v2 as torch

        def late():
            import slow
            torch.ones(2).sum()

        thread = threading.Thread(target=late)
        thread.start()
        thread.join()
        """
    write(folder, "import time\ndef inside():\n    time.sleep(0.2)\ninside()\n", "slow.py")
    done = run("-o", "out", write(folder, program))
    assert done.returncode == 0, done.stderr
    names = names_of(folder / "out/trace.json.gz")
    assert names["import slow"] == 1
    assert not [each for each in names if each.endswith(": inside")]
    table = told(folder / "out")
    imports, others = (line for line in table.splitlines() if line.startswith("imports"))
    assert "slow " in imports
    assert re.search(r"imports on other threads: \S+ of these", others)
    assert "import slow" not in table


def test_steps_are_told_of_the_whole_run(folder: Path) -> None:
    done = run("-o", "out", write(folder, TRAINING))
    assert done.returncode == 0, done.stderr
    assert "\nuntil the end of the first optimizer step: " in told(folder / "out")
    assert "\n6 optimizer steps; those after the first: " in told(folder / "out")
    assert "\nafter the last optimizer step: " in told(folder / "out")
    # The first step began with the program, so that five have a known beginning.
    assert "\n5 steps, median " in done.stderr
    # They are marks: a range would be in what the program's own profilers record.
    events = mindprof.load(folder / "out/trace.json.gz").events()
    steps = {event.step for event in events if event.name == "aten::addmm"}
    assert steps == set(range(6))
    names = names_of(folder / "out/trace.json.gz")
    assert not [each for each in names if each.startswith("ProfilerStep")]
    # What finds them is no part of the program.
    assert not [each for each in names if each.endswith(": _open_step") and names[each] > 1]


def test_the_programs_own_profiler_has_its_own_steps(folder: Path) -> None:
    program = """
        import mindtorch_v2 as torch
        model = torch.nn.Linear(2, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        once = torch.profiler.schedule(wait=1, warmup=1, active=2, repeat=1)
        with torch.profiler.profile(schedule=once) as prof:
            for _ in range(5):
                model(torch.ones((2, 2))).sum().backward()
                optimizer.step()
                prof.step()
        print([row.count for row in prof.key_averages() if row.key.startswith("ProfilerStep")])
        """
    done = run("-o", "out", write(folder, program))
    assert (done.returncode, done.stdout) == (0, "[2]\n")
    assert "5 optimizer steps; those after the first: " in told(folder / "out")


def test_one_step_has_no_spread(folder: Path) -> None:
    done = run("-o", "out", write(folder, TRAINING.replace("range(6)", "range(1)")))
    assert "until the end of the first optimizer step: " in told(folder / "out")
    assert "those after the first" not in told(folder / "out")
    assert " steps, median " not in done.stderr


def test_no_step_is_told_where_none_was_made(folder: Path) -> None:
    done = run("-o", "out", write(folder, TRAINING.replace("range(6)", "range(0)")))
    assert done.returncode == 0, done.stderr
    assert "optimizer step" not in told(folder / "out")
    assert " steps, median " not in done.stderr
    ranges = ("ProfilerStep", "before the first", "after the last")
    assert not [each for each in names_of(folder / "out/trace.json.gz") if each.startswith(ranges)]


def test_own_shares_add_up_to_the_whole(folder: Path) -> None:
    assert run("-q", "-o", "out", write(folder, TRAINING)).returncode == 0
    lines = (folder / "out/table.txt").read_text(encoding="utf-8").splitlines()
    cells = [[cell for cell in line.split() if cell.endswith("%")] for line in lines[3:]]
    own = [float(row[0][:-1]) for row in cells if len(row) == 2]
    # Each is rounded to two digits.
    assert abs(sum(own) - 100) <= 0.005 * len(own)


def test_a_schedule_is_one_window_if_not_said_otherwise(folder: Path) -> None:
    name = write(folder, TRAINING)
    done = run("--wait", "1", "--active", "1", "-o", "out", name)
    assert done.returncode == 0
    assert names_of(folder / "out/trace.json.gz")["aten::addmm"] == 1
    assert done.stderr.endswith("next: mindprof lines out/trace.json.gz\n")


def test_a_schedule_that_begins_too_late_says_so(folder: Path) -> None:
    done = run("--wait", "50", "--active", "2", "-o", "out", write(folder, TRAINING))
    assert done.returncode == 0
    assert "nothing was recorded: the program made 6 optimizer steps" in done.stderr
    assert "--wait and --warmup skip the first 50" in done.stderr
    assert not (folder / "out").exists()


POOL = """
from concurrent.futures import ThreadPoolExecutor

pool = ThreadPoolExecutor(2)
print(pool.submit(int, "7").result())
"""


def test_a_pool_of_threads_that_is_left_open_ends(folder: Path) -> None:
    done = run("-o", "out", write(folder, POOL))
    assert (done.returncode, done.stdout) == (0, "7\n")


def test_a_program_that_raises_leaves_its_results(folder: Path) -> None:
    name = write(folder, TRAINING + "\ndef fail():\n    raise ValueError('mine')\nfail()\n")
    alone = subprocess.run([sys.executable, name], capture_output=True, text=True)
    done = run("-q", "-o", "out", name)
    assert done.returncode == 1
    assert done.stderr.startswith(alone.stderr)
    assert names_of(folder / "out/trace.json.gz")["aten::addmm"] == 6


@pytest.mark.parametrize(
    ("ending", "status", "said"),
    [("sys.exit()", 0, ""), ("sys.exit(3)", 3, ""), ("sys.exit('so')", 1, "so\n")],
)
def test_exit_codes_are_the_programs(folder: Path, ending: str, status: int, said: str) -> None:
    done = run("-q", "-o", "out", write(folder, f"import sys\n{ending}"))
    assert done.returncode == status
    assert done.stderr.startswith(f"{said}mindprof: wrote ")
    assert (folder / "out/trace.json.gz").exists()


@pytest.mark.parametrize(
    ("number", "status"),
    [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)],
    ids=["int", "term", "hup"],
)
def test_a_signal_leaves_the_results(folder: Path, number: int, status: int) -> None:
    endless = "import pathlib, time\nfor _ in range(6000):\n    time.sleep(0.01)\n"
    name = write(folder, TRAINING + "open('ready', 'w').close()\n" + endless)
    process = subprocess.Popen(
        [*COMMAND, "-q", "-o", "out", name], stderr=subprocess.PIPE, text=True
    )
    while not (folder / "ready").exists():
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(number)
    _, said = process.communicate(timeout=120)
    assert process.returncode == status, said
    assert names_of(folder / "out/trace.json.gz")["aten::addmm"] == 6


def test_a_second_interrupt_does_not_stop_the_writing(folder: Path) -> None:
    # The second comes from the function that writes the first file.
    program = """
        import os, signal
        from mindprof._run import results
        report_of = results.RunProfile.report
        def interrupted(*arguments):
            os.kill(os.getpid(), signal.SIGINT)
            return report_of(*arguments)
        results.RunProfile.report = interrupted
        raise KeyboardInterrupt
        """
    done = run("-q", "-o", "out", write(folder, program))
    assert done.returncode == 130
    assert "press Ctrl-C again to write the trace alone" in done.stderr
    assert (folder / "out/trace.json.gz").exists()
    assert (folder / "out/table.txt").exists()


def test_a_module_is_run_as_python_does(folder: Path) -> None:
    (folder / "package").mkdir()
    (folder / "package/__init__.py").touch()
    write(folder, "VALUE = 7", "package/other.py")
    program = """
        import sys
        from .other import VALUE
        print(__name__, __package__, __spec__.name, sys.argv, sys.path[0], VALUE)
        """
    write(folder, program, "package/task.py")
    alone = subprocess.run(
        [sys.executable, "-m", "package.task", "-o", "x"], capture_output=True, text=True
    )
    assert alone.returncode == 0
    done = run("-m", "package.task", "-o", "x")
    assert (done.returncode, done.stdout) == (0, alone.stdout)
    assert (folder / "mindprof-task/trace.json.gz").exists()


def test_ranks_that_share_a_folder_have_one_each_in_it(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = write(folder, "pass\n")
    monkeypatch.setenv("WORLD_SIZE", "2")
    for rank in (0, 1):
        monkeypatch.setenv("RANK", str(rank))
        assert run("-q", "-o", "out", name).returncode == 0
    assert {path.name for path in (folder / "out").iterdir()} == {"rank0", "rank1"}
    for rank in (0, 1):
        with gzip.open(folder / f"out/rank{rank}/trace.json.gz", "rt") as file:
            assert json.load(file)["distributedInfo"]["rank"] == rank
    # The only one has the folder to itself.
    monkeypatch.setenv("WORLD_SIZE", "1")
    assert run("-q", "-o", "alone", name).returncode == 0
    assert (folder / "alone/trace.json.gz").exists()


def test_programs_that_begin_at_once_have_a_folder_each(folder: Path) -> None:
    command = [*COMMAND, "-q", write(folder, "pass\n")]
    programs = [subprocess.Popen(command, stderr=subprocess.DEVNULL) for _ in range(3)]
    assert [program.wait(timeout=120) for program in programs] == [0, 0, 0]
    made = {path.parent.name for path in folder.glob("*/trace.json.gz")}
    assert made == {"mindprof-program", "mindprof-program-2", "mindprof-program-3"}


def test_a_forked_child_writes_nothing(folder: Path) -> None:
    program = """
        import os
        if os.fork() == 0:
            raise SystemExit(0)
        os.wait()
        """
    done = run("-q", write(folder, program))
    assert done.returncode == 0
    assert done.stderr.count("trace.json.gz") == 1
    assert [path.name for path in folder.glob("mindprof-*")] == ["mindprof-program"]


def test_a_forked_child_that_trains_on_leaves_the_results_alone(folder: Path) -> None:
    child = (
        "\nimport os, sys\nif os.fork() == 0:\n    for _ in range(9):\n        optimizer.step()\n"
    )
    program = TRAINING + child + "    os._exit(0)\nos.wait()\n"
    assert (
        run("-q", "--active", "2", "--repeat", "1", "-o", "out", write(folder, program)).returncode
        == 0
    )
    assert names_of(folder / "out/trace.json.gz")["aten::addmm"] == 2


def test_a_forked_child_ends_by_a_signal_as_it_would_alone(folder: Path) -> None:
    program = """
        import multiprocessing, time
        process = multiprocessing.get_context("fork").Process(target=time.sleep, args=(60,))
        process.start()
        process.terminate()
        process.join()
        print(process.exitcode)
        """
    assert run("-q", "-o", "out", write(folder, program)).stdout == "-15\n"


@pytest.mark.parametrize("status", [0, 3])
@pytest.mark.parametrize("ending", ["", "sys.exit"])
def test_threads_that_go_on_belong_to_the_program(folder: Path, ending: str, status: int) -> None:
    program = f"""
        import sys, threading, time
        import mindtorch_v2 as torch

        def late():
            time.sleep(0.2)
            torch.maximum(torch.ones(2), torch.ones(2))

        threading.Thread(target=late).start()
        {ending}({status})
        """
    done = run("-q", "-o", "out", write(folder, program))
    assert done.returncode == (status if ending else 0)
    assert names_of(folder / "out/trace.json.gz")["aten::maximum"] == 1


def test_a_signal_does_not_wait_for_threads(folder: Path) -> None:
    program = """
        import os, signal, threading, time
        import mindtorch_v2 as torch

        torch.maximum(torch.ones(2), torch.ones(2))
        threading.Thread(target=threading.Event().wait).start()
        print("said", end="")
        os.kill(os.getpid(), signal.SIGTERM)
        """
    done = run("-q", "-o", "out", write(folder, program))
    assert (done.returncode, done.stdout) == (143, "said")
    assert names_of(folder / "out/trace.json.gz")["aten::maximum"] == 1
    assert (folder / "out/flamegraph.svg").exists()


@pytest.mark.parametrize("ending", ["", "sys.exit(0)"])
def test_threads_see_that_the_main_thread_has_ended(folder: Path, ending: str) -> None:
    program = f"""
        import sys, threading

        def wait():
            threading.main_thread().join()
            print("it has")

        threading.Thread(target=wait).start()
        {ending}
        """
    done = run("-q", "-o", "out", write(folder, program))
    assert (done.returncode, done.stdout) == (0, "it has\n")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_while_results_are_written_is_heard_after_that(
    folder: Path, number: signal.Signals
) -> None:
    # It comes as the second file is begun.
    code = f"""
        import os, sys
        from mindprof._run import results
        from mindprof._run.command import run

        theirs = results.Results._files

        def files(*words):
            found = theirs(*words)
            name, write = found[1]

            def write_later(path):
                os.kill(os.getpid(), {number:d})
                write(path)

            found[1] = name, write_later
            return found

        results.Results._files = files
        sys.exit(run(sys.argv[1:]))
        """
    words = [sys.executable, write(folder, code, "own.py"), "-q", "-o", "out"]
    done = subprocess.run([*words, write(folder, TRAINING)], capture_output=True, text=True)
    assert done.returncode == 0
    files = {path.name for path in (folder / "out").iterdir()}
    assert files == FILES
    assert "writing results before the program ends" in done.stderr


#: Runs a program and sends it a signal when the second result file is begun.
SIGNALLED_WHILE_WRITING = """
    import os, signal, sys
    from mindprof._run import results
    from mindprof._run.command import run

    theirs = results.Results._files

    def files(*words):
        found = theirs(*words)
        name, write = found[1]

        def write_later(path):
            os.kill(os.getpid(), signal.SIGUSR1)
            write(path)

        found[1] = name, write_later
        return found

    results.Results._files = files
    sys.exit(run(sys.argv[1:]))
    """

WITH_HANDLER = """
import signal, sys

def handle(number, frame):
    {action}

signal.signal(signal.SIGUSR1, handle)
"""


@pytest.mark.parametrize(
    ("action", "status", "said"),
    [
        ("raise RuntimeError('a worker died')", 1, "RuntimeError: a worker died"),
        ("sys.exit(7)", 7, ""),
        ("raise KeyboardInterrupt", 130, "KeyboardInterrupt"),
        ("print('heard')", 0, ""),
    ],
    ids=["error", "exit", "interrupt", "nothing"],
)
def test_a_handler_of_the_program_runs_after_the_results_are_written(
    folder: Path, action: str, status: int, said: str
) -> None:
    program = write(folder, WITH_HANDLER.format(action=action) + textwrap.dedent(TRAINING))
    words = [sys.executable, write(folder, SIGNALLED_WHILE_WRITING, "own.py"), "-q", "-o", "out"]
    done = subprocess.run([*words, program], capture_output=True, text=True)
    assert done.returncode == status, done.stderr
    files = {path.name for path in (folder / "out").iterdir()}
    assert files == FILES
    lines = done.stderr.splitlines()
    wrote = max(place for place, line in enumerate(lines) if "wrote" in line)
    after = "mindprof: SIGUSR1 arrived while results were written: its handler is called now"
    assert lines.index(after) > wrote
    assert said in done.stderr.partition(after)[2]


def test_a_handler_runs_after_a_window_is_written_and_can_end_the_program(folder: Path) -> None:
    action = "raise RuntimeError('a worker died')"
    program = write(folder, WITH_HANDLER.format(action=action) + textwrap.dedent(TRAINING))
    words = [sys.executable, write(folder, SIGNALLED_WHILE_WRITING, "own.py"), "-q", "-o", "out"]
    options = ["--active", "1", "--repeat", "1"]
    done = subprocess.run([*words, *options, program], capture_output=True, text=True)
    assert done.returncode == 1, done.stderr
    assert "RuntimeError: a worker died" in done.stderr
    assert "could not write" not in done.stderr
    assert (folder / "out/table.txt").exists()


def test_a_folder_with_a_main_is_a_program(folder: Path) -> None:
    (folder / "app").mkdir()
    write(folder, "import helper; print(helper.VALUE)", "app/__main__.py")
    write(folder, "VALUE = 'right'", "app/helper.py")
    write(folder, "VALUE = 'wrong'", "helper.py")
    assert run("-q", "app").stdout == "right\n"


@pytest.mark.parametrize("place", ["2>/dev/full", "2>&-"])
def test_nobody_to_read_is_no_reason_to_fail(folder: Path, place: str) -> None:
    name = write(folder, "import sys\nprint('hi')\nsys.exit(7)\n")
    words = " ".join([*COMMAND, "-o", "out", name, place])
    done = subprocess.run(["bash", "-c", words], stdout=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stdout) == (7, "hi\n")
    assert (folder / "out/trace.json.gz").exists()


def test_a_module_that_lacks_another_shows_its_own_traceback(folder: Path) -> None:
    (folder / "package").mkdir()
    write(folder, "import missing_one", "package/__init__.py")
    write(folder, "", "package/__main__.py")
    done = run("-m", "package")
    assert done.returncode == 1
    assert done.stderr.endswith("ModuleNotFoundError: No module named 'missing_one'\n")


def test_the_inside_of_imports_is_left_out(folder: Path) -> None:
    write(folder, "def inside():\n    pass\ninside()\n", "module.py")
    name = write(folder, "def own():\n    pass\nimport module\nown()\n")
    done = run("--stacks", "every", "-o", "out", name)
    assert done.returncode == 0
    names = names_of(folder / "out/trace.json.gz")
    assert names["import module"] == 1
    assert sum(count for each, count in names.items() if each.endswith(": own")) == 1
    assert not [each for each in names if each.endswith(": inside")]
    # Where there are no operators, functions are what there is to show.
    assert "program.py(1): own" in (folder / "out/table.txt").read_text(encoding="utf-8")


def test_an_operator_in_an_import_does_not_show_its_inside(folder: Path) -> None:
    inner = """
        import mindtorch_v2 as torch
        def twice(x):
            return x + x
        for _ in range(3):
            twice(torch.ones(2))
        """
    write(folder, inner, "inner.py")
    program = write(folder, "import inner\ninner.twice(inner.torch.ones(2))\n")
    done = run("-q", "-o", "out", program)
    assert done.returncode == 0, done.stderr
    names = names_of(folder / "out/trace.json.gz")
    assert names["aten::add"] == 4
    calls = [name for name in names.elements() if name.endswith(": twice")]
    assert len(calls) == 1


def test_an_import_that_fails_is_the_programs_own(folder: Path) -> None:
    name = write(
        folder, "try:\n    import missing_one\nexcept ImportError as error:\n    print(error)"
    )
    done = run("-q", "-o", "out", name)
    assert (done.returncode, done.stdout) == (0, "No module named 'missing_one'\n")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "a script is missing"),
        (["-m"], "a script is missing"),
        (["missing.py"], "error: cannot read missing.py: No such file"),
        (["broken.py"], "broken.py is not valid Python: invalid syntax"),
        (["-m", "no.such.module"], "error: no module named no.such.module"),
        (["--wait", "3", "broken.py"], "need --active"),
        (["--active", "-1", "broken.py"], "-1 is negative"),
        (["--active", "0", "broken.py"], "argument --active: 0 steps record nothing"),
        (["--limit"], "expected one argument"),
        (["--limit", "few", "broken.py"], "'few' is not a number"),
        (["--row-limit", "few", "broken.py"], "'few' is not a number"),
        (["--sort-by", "colour", "broken.py"], "invalid choice: 'colour'"),
        (["--budget", "1 MB", "broken.py"], "'1 MB' is not a size"),
        (["--nonsense", "broken.py"], "unrecognized arguments: --nonsense"),
        (["--out", "fine.py/x", "fine.py"], "error: cannot write to "),
    ],
)
def test_what_cannot_be_run_is_refused(folder: Path, words: list[str], said: str) -> None:
    write(folder, "def", "broken.py")
    write(folder, "", "fine.py")
    done = run(*words)
    assert done.returncode == 2
    assert said in done.stderr
    assert sorted(os.listdir(folder)) == ["broken.py", "fine.py"]


@pytest.mark.parametrize(
    ("options", "place"),
    [
        ((), "the flame graph shows where"),
        (("--no-stacks",), "record Python calls, without --no-stacks, to see where"),
    ],
)
def test_time_in_python_is_told_beside_the_table(
    folder: Path, options: tuple[str, ...], place: str
) -> None:
    slow = TRAINING + "import time\ntime.sleep(1.5)\n"
    run(*options, "-o", "out", write(folder, slow))
    table = told(folder / "out")
    (outside,) = re.findall(r"^(\S+)s passed outside all rows", table, re.M)
    assert float(outside) >= 1.5
    assert f"hint: most of the time passed in Python code or waiting: {place}" in table


def test_what_was_lost_is_not_told_as_time_in_python(folder: Path) -> None:
    long = TRAINING + "for _ in range(20_000):\n    model.weight.sum()\n"
    done = run("--no-stacks", "--budget", "8KiB", "-o", "out", write(folder, long))
    assert re.search(r"mindprof: events lost: [\d,]+ over the byte budget", done.stderr)
    assert re.search(r"\nthe budget was too small: \d+ events are in none of these", done.stderr)
    table = told(folder / "out")
    assert "\nthe budget was full and later events are in no row: " in table
    assert "hint: the budget was full: raise it with --budget SIZE, or record only N " in table
    assert "in Python code or waiting" not in table


@pytest.mark.parametrize(
    ("end", "why"),
    [
        ("", "the first optimizer made no more"),
        ("raise SystemExit(3)", "the program was stopped"),
    ],
)
def test_a_window_with_too_few_steps_says_why(folder: Path, end: str, why: str) -> None:
    done = run("--active", "9", "-o", "out", write(folder, TRAINING + end))
    assert f"the window has 6 of 9 requested optimizer steps: {why}" in done.stderr


def test_a_window_without_an_optimizer_says_so(folder: Path) -> None:
    done = run("--active", "9", "-o", "out", write(folder, "print(1)"))
    assert "requested optimizer steps: no optimizer made a step\n" in done.stderr


def test_time_in_ranges_is_in_the_table(folder: Path) -> None:
    waiting = """
    import time
    import mindprof
    with mindprof.record_function("waits"):
        time.sleep(1.5)
    """
    run("-o", "out", write(folder, waiting))
    table = told(folder / "out")
    assert "outside all rows" not in table
    assert "waits" in table
