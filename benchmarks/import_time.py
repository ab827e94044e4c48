"""Measures the time of `import mindprof` beyond the start of a bare interpreter.

Fresh interpreters with and without the import alternate, so that noise on the machine affects both
alike. Prints medians. Run it with `make bench`.
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
    """Returns the seconds that a fresh interpreter needs for a program."""
    started = time.perf_counter()
    subprocess.run([sys.executable, "-I", "-c", program], check=True)
    return time.perf_counter() - started


def main() -> None:
    """Prints both times, and the expensive modules that the import loads."""
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
