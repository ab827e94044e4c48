"""What `import mindprof` costs over a bare interpreter.

Fresh interpreters of both kinds alternate, so that a noisy machine disturbs them alike; medians are
printed. Run it with `make bench`.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time

RUNS = 31

BARE = "pass"
IMPORT = "import mindprof"
EXPENSIVE = ("dataclasses", "inspect", "json", "socket", "uuid", "concurrent.futures", "pathlib")


def seconds(program: str) -> float:
    """Returns how long an interpreter takes to run a program."""
    started = time.perf_counter()
    subprocess.run([sys.executable, "-I", "-c", program], check=True)
    return time.perf_counter() - started


def main() -> None:
    """Prints both times, and which expensive modules an import brings."""
    seconds(IMPORT)
    found: dict[str, list[float]] = {BARE: [], IMPORT: []}
    for _ in range(RUNS):
        for program, times in found.items():
            times.append(seconds(program))
    bare, imported = (statistics.median(times) * 1e3 for times in found.values())
    print(f"bare interpreter {bare:6.1f} ms")
    print(f"import mindprof  {imported:6.1f} ms, {imported - bare:.1f} more")
    program = f"import sys, mindprof; print(*(name for name in {EXPENSIVE} if name in sys.modules))"
    said = subprocess.run(
        [sys.executable, "-I", "-c", program], check=True, capture_output=True, text=True
    )
    print(f"expensive modules: {said.stdout.strip() or 'none'}")


if __name__ == "__main__":
    main()
