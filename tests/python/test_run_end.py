"""The end of `mindprof run`: what it writes and says, and which modules a program sees."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from mindprof._results.step_times import StepTime, StepTimes

MODULE = [sys.executable, "-m", "mindprof", "run"]

#: `mindprof run` as its script runs it: the folder of the script is on the path.
SCRIPT = "import sys\nfrom mindprof._command import main\nsys.exit(main())\n"

#: Works for as long as it takes to be sampled.
BUSY = "import time\nend = time.monotonic() + 0.3\nwhile time.monotonic() < end: pass\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    place = tmp_path / "place"
    place.mkdir()
    monkeypatch.chdir(place)
    return place


def write(folder: Path, text: str, name: str = "program.py") -> str:
    (folder / name).write_text(textwrap.dedent(text), encoding="utf-8")
    return name


def call(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(words, capture_output=True, text=True)


def patched(change: str) -> list[str]:
    """Returns the command of `mindprof run` with something changed in it."""
    code = (
        f"{change}\nimport sys; from mindprof._run.command import run; sys.exit(run(sys.argv[1:]))"
    )
    return [sys.executable, "-c", code]


def test_a_program_has_the_path_that_it_has_alone(folder: Path, tmp_path: Path) -> None:
    name = write(folder, "import sys; print(sys.path)")
    script = tmp_path / "bin" / "mindprof"
    script.parent.mkdir()
    script.write_text(SCRIPT, encoding="utf-8")
    alone = call(sys.executable, name)
    for command in (MODULE, [sys.executable, str(script), "run"]):
        done = call(*command, "-q", "-o", "out", name)
        assert (done.returncode, done.stdout) == (0, alone.stdout), done.stderr
    if sys.version_info >= (3, 11):
        alone = call(sys.executable, "-P", name)
        done = call(sys.executable, "-P", "-m", "mindprof", "run", "-q", "-o", "out", name)
        assert (done.returncode, done.stdout) == (0, alone.stdout), done.stderr


@pytest.mark.parametrize("shadow", ["random", "json", "socket", "inspect", "tempfile", "queue"])
def test_a_program_sees_its_own_module_of_a_known_name(folder: Path, shadow: str) -> None:
    write(folder, "OURS = 7", f"{shadow}.py")
    name = write(folder, f"import {shadow}; print({shadow}.OURS)")
    done = call(*MODULE, "-q", "-o", "out", name)
    assert (done.returncode, done.stdout) == (0, "7\n"), done.stderr
    assert "could not write" not in done.stderr
    assert {"summary.json", "table.txt", "trace.json.gz"} <= set(os.listdir("out"))


def test_results_of_an_earlier_run_are_removed(folder: Path) -> None:
    out = folder / "out"
    out.mkdir()
    for name in ("memory.html", "trace-3.json.gz", "notes.txt", "summary-old.json"):
        (out / name).write_text("old", encoding="utf-8")
    assert call(*MODULE, "-q", "-o", "out", write(folder, "pass")).returncode == 0
    kept = {path.name for path in out.iterdir() if path.read_bytes() == b"old"}
    assert kept == {"notes.txt", "summary-old.json"}


def test_the_printed_path_is_that_of_the_users_folder(folder: Path) -> None:
    name = write(folder, BUSY + "import os; os.makedirs('deep'); os.chdir('deep')\n")
    done = call(*MODULE, "-o", "out", name)
    assert "\nwrote out (" in done.stderr
    assert " out/trace.json.gz\n" in done.stderr


def test_lines_of_a_file_that_changed_meanwhile_are_not_shown(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = BUSY + "import os; os.utime(__file__, (2**32, 2**32))\n"
    done = call(*MODULE, "-o", "out", write(folder, text))
    assert "program.py changed while the program ran: its lines are not shown" in done.stderr
    assert " | " not in done.stderr
    # As it is, the line is shown, wherever the program lies and goes.
    write(folder, BUSY + "import os; os.chdir('/')\n")
    (folder / "other").mkdir()
    monkeypatch.chdir(folder / "other")
    done = call(*MODULE, "-o", "out", "../program.py")
    assert "3 | while time.monotonic() < end: pass" in done.stderr


def test_the_trace_is_written_even_if_the_rest_is_interrupted(folder: Path) -> None:
    change = textwrap.dedent("""
        from mindprof._run.results import Results
        def interrupt(*_):
            raise KeyboardInterrupt
        Results._files = interrupt
    """)
    done = call(*patched(change), "-q", "-o", "out", write(folder, BUSY))
    assert done.returncode != 0
    assert os.listdir("out") == ["trace.json.gz"]


def test_a_long_end_says_what_it_is_busy_with(folder: Path) -> None:
    change = textwrap.dedent("""
        import threading
        from mindprof._run import results
        results.SILENT_SECONDS = 0
        said = threading.Event()
        say, report = results.Results.say, results.RunProfile.report
        def saying(self, text):
            say(self, text)
            said.set()
        def reporting(*arguments):
            assert said.wait(60)
            return report(*arguments)
        results.Results.say, results.RunProfile.report = saying, reporting
    """)
    done = call(*patched(change), "-q", "-o", "out", write(folder, "pass"))
    assert done.returncode == 0, done.stderr
    assert "mindprof: the program has ended: " in done.stderr


def test_the_trace_of_a_run_is_not_logged(folder: Path) -> None:
    name = write(folder, "import logging; logging.basicConfig(level=logging.INFO)")
    done = call(*MODULE, "-q", "-o", "out", name)
    assert "INFO" not in done.stderr


def test_a_wrong_option_names_the_right_one(folder: Path) -> None:
    done = call(*MODULE, "--stack", "every", write(folder, "pass"))
    assert done.returncode == 2
    assert "did you mean `--stacks`?" in done.stderr


def test_sleep_is_idle_and_not_python(folder: Path) -> None:
    name = write(folder, "import time\ndef fetch():\n    time.sleep(0.5)\nfetch()\n")
    done = call(*MODULE, "-o", "out", name)
    said = " ".join(done.stderr.split())
    if sys.platform == "linux" and sys.version_info >= (3, 11):
        assert "in fetch (program.py:3), mostly waiting" in said
        assert "its own Python code" not in said
    summary = json.loads((folder / "out/summary.json").read_text(encoding="utf-8"))
    assert summary["samples"] is None or summary["samples"] > 0


def test_idle_threads_do_not_make_shares_look_exact(folder: Path) -> None:
    text = """
        import threading
        leave = threading.Event()
        threads = [threading.Thread(target=leave.wait) for _ in range(32)]
        for thread in threads:
            thread.start()
    """
    text = textwrap.dedent(text) + BUSY + "leave.set()\n"
    done = call(*MODULE, "-o", "out", write(folder, text))
    assert done.returncode == 0
    summary = json.loads((folder / "out/summary.json").read_text(encoding="utf-8"))
    if summary["samples"] is not None:
        time_us = summary["functions"]["total_us"]
        assert summary["samples"] * summary["sample_interval_us"] <= time_us


def test_step_times_are_a_short_text() -> None:
    split = {"operators": 600.0, "python": 300.0, "idle": 100.0, "kernel": 0.0}
    steps = [StepTime(number, 0.0, 1000.0, split, False) for number in range(500)]
    whole = {kind: 500 * time for kind, time in split.items()}
    times = StepTimes(steps, whole, 1000.0, 1000.0, 1000.0, 1000.0, None, [], True)
    assert repr(times) == str(times)
    assert str(times).splitlines() == [
        "500 steps: p50 1.00 ms, p90 1.00 ms, p99 1.00 ms, longest 1.00 ms",
        "",
        "Class          Share  Per step   In all",
        "-------------  -----  --------  -------",
        "operators       60 %    600 us   300 ms",
        "Python          30 %    300 us   150 ms",
        "idle            10 %    100 us  50.0 ms",
    ]
    few = StepTimes(steps[:7], split, 1000.0, 1000.0, 1000.0, 1000.0, None, [], True)
    assert str(few).splitlines()[0] == "7 steps: p50 1.00 ms, longest 1.00 ms"
    behind = few._replace(device_p50_us=9000.0)
    assert "its median step takes 9.00 ms" in str(behind).splitlines()[1]


needs_samples = pytest.mark.skipif(
    sys.version_info < (3, 11) or not sys.platform.startswith("linux"),
    reason="stacks are sampled from CPython 3.11 on, on Linux",
)


@needs_samples
def test_a_forked_child_that_exits_says_nothing_of_its_own(folder: Path) -> None:
    program = """
        import os, sys, time
        end = time.monotonic() + 0.3
        while time.monotonic() < end: pass
        if os.fork() == 0:
            sys.exit(7)
        print(os.waitstatus_to_exitcode(os.wait()[1]))
    """
    done = call(*MODULE, "-q", "-o", "out", write(folder, program))
    assert (done.returncode, done.stdout) == (0, "7\n"), done.stderr
    assert "panicked" not in done.stderr


@needs_samples
def test_the_work_of_threads_that_are_waited_for_is_named(folder: Path) -> None:
    program = """
        import threading, time

        def parse():
            end = time.monotonic() + 1.5
            while time.monotonic() < end:
                sum(range(1000))

        thread = threading.Thread(target=parse)
        thread.start()
        thread.join()
    """
    done = call(*MODULE, "-o", "out", write(folder, program))
    said = " ".join(done.stderr.split())
    assert "the main thread waits for other threads" in said, done.stderr
    assert "spend most of theirs in parse (program.py:" in said
