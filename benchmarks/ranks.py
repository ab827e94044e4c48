"""Measures `mindprof ranks` on many copies of a golden, each with a rank and a clock of its own.

Prints ranks per second and core (CPU time, so other programs on the machine do not count), and the
peak memory, for one file and for all, which shows what of it grows with the number of ranks.

    python benchmarks/ranks.py --program target/release/mindprof --ranks 1000

With `--hta-python PYTHON`, an interpreter that has HTA, HTA analyses the first 20 ranks too.
"""

from __future__ import annotations

import argparse
import gzip
import json
import resource
import subprocess
import tempfile
from pathlib import Path

GOLDEN = Path(__file__).parents[1] / "tests/goldens/h200-torch2.11/gpt-full.trace.json.gz"


def make_job(folder: Path, ranks: int) -> list[Path]:
    """Writes the traces of a job: copies of a golden whose clocks are a millisecond apart."""
    with gzip.open(GOLDEN, "rt") as file:
        trace = json.load(file)
    base = int(trace.pop("baseTimeNanoseconds", 0))
    trace.pop("distributedInfo", None)
    # The copies differ in their first lines only.
    rest = json.dumps(trace)[1:]
    paths = []
    for rank in range(ranks):
        head = {
            "distributedInfo": {"backend": "nccl", "rank": rank, "world_size": ranks},
            "baseTimeNanoseconds": base + 1_000_000 * rank,
        }
        path = folder / f"rank{rank}.json"
        path.write_text(f"{json.dumps(head)[:-1]}, {rest}")
        paths.append(path)
    return paths


def cost_of(program: Path, paths: list[Path]) -> tuple[float, int]:
    """Returns the CPU seconds of summing up and merging some traces, and the peak memory in MiB."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command: list[str | Path] = [program, "ranks", "--json", *paths]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return spent, after.ru_maxrss >> 10


HTA = """
import logging, sys
logging.disable(logging.CRITICAL)
from hta.trace_analysis import TraceAnalysis
files = dict(enumerate(sys.argv[1:]))
analysis = TraceAnalysis(trace_files=files, trace_dir="")
analysis.get_temporal_breakdown(visualize=False)
analysis.get_comm_comp_overlap(visualize=False)
analysis.get_gpu_kernel_breakdown(visualize=False)
"""


def cost_of_hta(python: Path, paths: list[Path]) -> float:
    """Returns the CPU time that HTA takes to load traces and for three of its questions."""

    def seconds(arguments: list[str]) -> float:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([python, "-W", "ignore", *arguments], check=True, stdout=subprocess.DEVNULL)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    imports = seconds(["-c", "import hta.trace_analysis"])
    return seconds(["-c", HTA, *map(str, paths)]) - imports


def main() -> None:
    """Measures jobs of growing size."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", type=Path, default=Path("target/release/mindprof"))
    parser.add_argument("--ranks", type=int, default=1000)
    parser.add_argument("--hta-python", type=Path)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        paths = make_job(Path(folder), arguments.ranks)
        for count in sorted({1, min(20, len(paths)), len(paths)}):
            seconds, memory = cost_of(arguments.program, paths[:count])
            rate = count / seconds
            print(f"{count:5} ranks: {rate:6.1f} ranks/s and core, peak {memory} MiB")
        if arguments.hta_python:
            some = paths[:20]
            seconds, _ = cost_of(arguments.program, some)
            hta = cost_of_hta(arguments.hta_python, some)
            print(f"{len(some):5} ranks: mindprof {seconds:.2f} s, HTA {hta:.2f} s of CPU time")


if __name__ == "__main__":
    main()
