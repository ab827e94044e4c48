"""Compares how fast mindprof and HTA (HolisticTraceAnalysis) analyse a trace, in one run.

`mindprof device` is compared with HTA's temporal breakdown, kernel types, overlap, idle time,
launches and queue lengths of one rank, and `mindprof critical-path` with HTA's critical path of
all steps. HTA's times leave out its imports and include loading the trace; those of mindprof
are the times of whole processes. `mindprof info` shows how much of them is reading. `--megabytes`
repeats each trace up to this size of JSON.

    python benchmarks/hta.py --hta-python target/hta/bin/python TRACE [TRACE ...]

CPU time is more reliable than elapsed time on a shared machine. Both are printed.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import subprocess
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path

from read_trace import make_trace  # type: ignore[import-not-found]

ROOT = Path(__file__).parents[1]

ASK_HTA = """
import json, logging, sys, time, warnings
warnings.filterwarnings("ignore")
logging.disable(logging.CRITICAL)
from hta.trace_analysis import TraceAnalysis

def spent():
    return time.perf_counter(), time.process_time()

times = {}
def measure(name, ask):
    begin = spent()
    try:
        result = ask()
    except Exception as error:
        print(name, repr(error)[:200], file=sys.stderr)
        return None
    times[name] = [end - start for start, end in zip(begin, spent())]
    return result

load = lambda: TraceAnalysis(trace_files={0: sys.argv[1]}, trace_dir="")
trace = measure("load", load)
measure("temporal", lambda: trace.get_temporal_breakdown(visualize=False))
measure("kernels", lambda: trace.get_gpu_kernel_breakdown(visualize=False))
measure("overlap", lambda: trace.get_comm_comp_overlap(visualize=False))
measure("idle", lambda: trace.get_idle_time_breakdown(ranks=[0], visualize=False))
measure("launches", lambda: trace.get_cuda_kernel_launch_stats(visualize=False))
measure("queue", lambda: trace.get_queue_length_summary())
measure(
    "critical path",
    # All steps.
    lambda: trace.critical_path_analysis(
        rank=0, annotation="ProfilerStep", instance_id=(0, 10**9)
    ),
)
print(json.dumps(times))
"""

DEVICE = ("temporal", "kernels", "overlap", "idle", "launches", "queue")

Times = dict[str, tuple[float, float]]


def ask_hta(python: str, trace: Path) -> Times:
    """Returns the elapsed and the CPU time of each of HTA's analyses."""
    command = [python, "-c", ASK_HTA, str(trace)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    times: dict[str, list[float]] = json.loads(done.stdout.splitlines()[-1])
    return {name: (elapsed, cpu) for name, (elapsed, cpu) in times.items()}


def ask_mindprof(program: Path, trace: Path) -> Times:
    """Returns the elapsed and the CPU time of each command."""
    times = {}
    for command in ("info", "device", "critical-path"):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        begin = time.perf_counter()
        subprocess.run([program, command, trace, "--json"], check=True, stdout=subprocess.DEVNULL)
        elapsed = time.perf_counter() - begin
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        times[command] = (elapsed, cpu)
    return times


def median(rounds: list[Times]) -> Times:
    """Returns the medians of each time."""
    names = rounds[0]
    return {
        name: (
            statistics.median(times[name][0] for times in rounds),
            statistics.median(times[name][1] for times in rounds),
        )
        for name in names
    }


def total(times: Times, names: Iterable[str]) -> tuple[float, float]:
    """Returns the elapsed and the CPU time of some analyses together."""
    known = [times[name] for name in names if name in times]
    return sum(each[0] for each in known), sum(each[1] for each in known)


def show(title: str, theirs: tuple[float, float], ours: tuple[float, float]) -> None:
    """Prints times in milliseconds and their ratios."""
    ratios = f"{theirs[0] / ours[0]:5.0f} {theirs[1] / ours[1]:5.0f}"
    times = " ".join(f"{each * 1e3:9,.0f}" for each in (*theirs, *ours))
    print(f"  {title:14} {times}   {ratios}")


def main() -> None:
    """Prints both tools' times for each trace, and their ratio."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("traces", nargs="+", type=Path)
    parser.add_argument("--hta-python", default=str(ROOT / "target" / "hta" / "bin" / "python"))
    parser.add_argument("--program", type=Path, default=ROOT / "target" / "release" / "mindprof")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--megabytes", type=int)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for trace in options.traces:
            path = trace
            if options.megabytes is not None:
                path = Path(folder, trace.name.removesuffix(".gz"))
                make_trace(trace, path, options.megabytes * 1_000_000)
            print(trace.name)
            rounds = range(options.rounds)
            all_theirs = [ask_hta(options.hta_python, path) for _ in rounds]
            all_ours = [ask_mindprof(options.program, path) for _ in rounds]
            show_all(median(all_theirs), median(all_ours))


def show_all(theirs: Times, ours: Times) -> None:
    """Prints the times of reading, of both analyses with reading, and of HTA's without it."""
    print("                  HTA ms       CPU  mindprof       CPU   ratio   CPU")
    show("reading", total(theirs, ["load"]), ours["info"])
    show("device", total(theirs, ["load", *DEVICE]), ours["device"])
    show("critical path", total(theirs, ["load", "critical path"]), ours["critical-path"])
    for name, analyses in (("device", DEVICE), ("critical path", ("critical path",))):
        elapsed, cpu = total(theirs, analyses)
        print(f"  HTA without reading: {name} {elapsed * 1e3:,.0f} ms, CPU {cpu * 1e3:,.0f} ms")


if __name__ == "__main__":
    main()
