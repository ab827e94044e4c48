"""What a profiler must survive: many cycles, threads, forks, exits and callbacks that fail."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import textwrap
import threading
from pathlib import Path
from typing import Any

import pytest
from mindprof import ProfilerActivity, profile, record_function

from tests.workloads import IMPORT_TORCH, torch

PREAMBLE = f"""
import os, sys, threading
{IMPORT_TORCH}
from mindprof import profile, record_function
"""


def run(code: str) -> subprocess.CompletedProcess[str]:
    """Runs a program with the profiler imported, in a process of its own."""
    program = PREAMBLE + textwrap.dedent(code)
    command = [sys.executable, "-W", "error", "-c", program]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def counts(profiler: Any) -> dict[str, int]:
    """Returns how often each name was recorded."""
    return {row.key: row.count for row in profiler.key_averages()}


def resident_bytes() -> int:
    """Returns how much memory the process has."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


# In a process of its own: what other tests have freed lies in huge pages, in whose steps memory
# would grow here.
MEASURED = """
import gc, warnings
from pathlib import Path

warnings.simplefilter("ignore")

def resident_bytes():
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

def growth(cycle):
    for _ in range(100):
        cycle()
    gc.collect()
    before = resident_bytes()
    for _ in range(500):
        cycle()
    gc.collect()
    return resident_bytes() - before
"""


def growth_of_500(cycle: str) -> int:
    """Returns by how many bytes a process grows that calls the function `cycle` 500 times."""
    done = run(MEASURED + textwrap.dedent(cycle) + "\nprint(growth(cycle))\n")
    assert done.stderr == ""
    return int(done.stdout)


@pytest.mark.parametrize("arguments", ["", "record_shapes=True"])
def test_500_cycles_leak_nothing(tmp_path: Path, arguments: str) -> None:
    cycle = f"""
        def cycle():
            with profile({arguments}) as profiler, record_function("range"):
                (torch.ones(4, 4) + 1).sum()
            profiler.key_averages()
            profiler.add_metadata("key", "value")
            profiler.export_chrome_trace({str(tmp_path / "trace.json")!r})
        """
    assert growth_of_500(cycle) < 1 << 20


def test_one_profiler_started_500_times_leaks_nothing() -> None:
    cycle = """
        profiler = profile()

        def cycle():
            profiler.start()
            torch.ones(4, 4).sum()
            profiler.stop()
        """
    assert growth_of_500(cycle) < 1 << 20


def test_threads_that_come_and_go_leak_nothing() -> None:
    def cycles(count: int) -> None:
        for _ in range(count):
            with profile():
                thread = threading.Thread(target=lambda: torch.ones(4, 4).sum())
                thread.start()
                thread.join()

    cycles(100)
    gc.collect()
    before = resident_bytes()
    cycles(400)
    gc.collect()
    assert resident_bytes() - before < 1 << 20


def test_start_in_one_thread_and_stop_in_another() -> None:
    profiler = profile()
    for target in (profiler.start, lambda: torch.ones(2).sum(), profiler.stop):
        thread = threading.Thread(target=target)
        thread.start()
        thread.join()
    assert counts(profiler)["aten::sum"] == 1


@pytest.mark.filterwarnings("ignore:Warning. Profiler clears events")
def test_profilers_of_many_threads_at_once() -> None:
    profilers = [profile() for _ in range(8)]

    def body(number: int) -> None:
        for _ in range(20):
            with profilers[number], record_function(f"thread {number}"):
                torch.ones(2).sum()

    threads = [threading.Thread(target=body, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for number, profiler in enumerate(profilers):
        assert counts(profiler)[f"thread {number}"] == 1


def test_a_forked_child_records_nothing_and_exits_clean() -> None:
    done = run(
        """
        with profile() as profiler:
            torch.ones(2).sum()
            child = os.fork()
            torch.ones(2).sum()
            if child == 0:
                with record_function("in the child"):
                    torch.ones(2).sum()
                profiler.stop()
                sys.exit(7 if list(profiler.key_averages()) == [] else 8)
            status = os.waitpid(child, 0)[1]
        rows = {row.key: row.count for row in profiler.key_averages()}
        print(os.waitstatus_to_exitcode(status), rows["aten::sum"], "in the child" in rows)
        """
    )
    assert (done.stdout, done.stderr, done.returncode) == ("7 2 False\n", "", 0)


def test_a_forked_child_may_profile_for_itself() -> None:
    done = run(
        """
        with profile() as outer, record_function("around the fork"):
            torch.ones(2).sum()
            child = os.fork()
            if child == 0:
                with profile() as inner:
                    with record_function("in the child"):
                        torch.ones(2).sum()
                rows = {row.key: row.count for row in inner.key_averages()}
                ok = rows["aten::sum"] == 1 and rows["in the child"] == 1
                ok = ok and "around the fork" not in rows
                os._exit(7 if ok else 8)
            status = os.waitpid(child, 0)[1]
        print(os.waitstatus_to_exitcode(status))
        """
    )
    assert (done.stdout, done.stderr, done.returncode) == ("7\n", "", 0)


def test_forks_while_other_threads_hold_the_locks() -> None:
    done = run(
        """
        # Threads that give the interpreter up all the time starve this one otherwise.
        sys.setswitchinterval(1e-5)
        stop = False
        def churn(number):
            step = 0
            while not stop:
                step += 1
                with profile(record_shapes=True), record_function(f"{number} {step}"):
                    torch.ones(2).sum()
        import warnings
        warnings.simplefilter("ignore")
        threads = [threading.Thread(target=churn, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        codes = set()
        for _ in range(60):
            child = os.fork()
            if child == 0:
                with profile() as profiler, record_function("fresh"):
                    torch.ones(2).sum()
                os._exit(7 if len(profiler.key_averages()) > 1 else 8)
            codes.add(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        stop = True
        for thread in threads:
            thread.join()
        print(codes)
        """
    )
    assert (done.stdout, done.stderr, done.returncode) == ("{7}\n", "", 0)


@pytest.mark.parametrize("ending", ["", "sys.exit(3)", "os._exit(3)", "raise SystemExit(3)"])
def test_exit_while_recording_is_silent(ending: str) -> None:
    done = run(
        f"""
        profiler = profile(schedule=lambda step: __import__("mindprof").ProfilerAction.RECORD)
        profiler.start()
        scope = record_function("open")
        scope.__enter__()
        worker = threading.Thread(target=lambda: [torch.ones(2).sum() for _ in range(10_000)])
        worker.daemon = True
        worker.start()
        torch.ones(2).sum()
        {ending}
        """
    )
    assert (done.stdout, done.stderr) == ("", "")
    assert done.returncode == (3 if ending else 0)


def test_an_exception_while_recording_keeps_its_exit_code() -> None:
    done = run("profile().start()\nraise KeyError('mine')")
    assert done.returncode == 1
    assert done.stderr.endswith("KeyError: 'mine'\n")


def test_a_profiler_that_is_dropped_while_it_records_stops() -> None:
    profiler = profile()
    profiler.start()
    assert torch.autograd._profiler_enabled()
    del profiler
    assert not torch.autograd._profiler_enabled(), "it waited for the garbage collector"


@pytest.mark.parametrize("with_stack", [False, True])
def test_a_profiler_that_is_dropped_by_an_exception_keeps_it(with_stack: bool) -> None:
    # The first element dies while the exception of the second is on its way.
    done = run(
        f"""
        def start():
            prof = profile(with_stack={with_stack})
            prof.start()
            return prof

        for _ in range(100):
            try:
                (start(), 1 / 0)
            except ZeroDivisionError:
                continue
            raise AssertionError("nothing was raised")
        """
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_an_export_waits_for_no_lock_of_the_logging_module(tmp_path: Path) -> None:
    # A handler of a signal that raises can leave it locked.
    done = run(
        f"""
        import logging
        with profile() as prof:
            torch.ones(2)
        path = {str(tmp_path / "trace.json")!r}
        prof.export_chrome_trace(path)
        logging._lock.acquire()
        export = threading.Thread(target=prof.export_chrome_trace, args=(path,), daemon=True)
        export.start()
        export.join(30)
        print(export.is_alive(), flush=True)
        os._exit(0)
        """
    )
    assert (done.stdout, done.stderr) == ("False\n", "")


def test_callbacks_that_fail_leave_the_profiler_usable() -> None:
    def fail(*_: Any) -> Any:
        raise KeyError

    profiler = profile(on_trace_ready=fail, custom_trace_id_callback=fail)
    with pytest.raises(KeyError):
        profiler.start()
    assert not torch.autograd._profiler_enabled()
    profiler.set_custom_trace_id_callback(None)
    with pytest.raises(KeyError), profiler:
        torch.ones(2).sum()
    assert counts(profiler)["aten::sum"] == 1
    assert not torch.autograd._profiler_enabled()


def test_collection_that_is_off_fills_no_budget() -> None:
    with profile(budget_bytes=3200) as profiler:
        profiler.toggle_collection_dynamic(False, [ProfilerActivity.CPU])
        for _ in range(1000):
            torch.ones(2).sum()
        profiler.toggle_collection_dynamic(True, [ProfilerActivity.CPU])
        torch.ones(2).sum()
    assert counts(profiler)["aten::sum"] == 1
    assert profiler.lost_events == 0


def test_a_profiler_that_is_dropped_listens_to_no_collections() -> None:
    before = list(gc.callbacks)
    config = torch.profiler._ExperimentalConfig(record_python_gc_info=True)
    profiler: Any = profile(with_stack=True, experimental_config=config)
    profiler.start()
    assert len(gc.callbacks) == len(before) + 1
    del profiler
    gc.collect()
    assert gc.callbacks == before
