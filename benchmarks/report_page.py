"""Measures the report of a large trace: its size, writing it, and drawing it in Chromium.

The trace is a training loop with nested operators, shapes and random times, so that its times
compress as badly as recorded ones.

    python benchmarks/report_page.py --program target/release/mindprof --events 1000000 5000000

With `--speedscope FOLDER`, a release of speedscope opens the same events beside it.
"""

from __future__ import annotations

import argparse
import base64
import json
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.browser.browser import Browser

OPERATORS = ("linear", "relu", "layer_norm", "softmax", "dropout", "add_", "mul", "embedding")
SHARES = (1.0, 0.1, 0.01, 0.001)


# Notes the end of the first frame after the page is ready, or after speedscope has loaded.
NOTE_FIRST_FRAME = """
const isReady = () => document.documentElement?.hasAttribute("data-ready") || OTHER;
const watch = new MutationObserver(() => {
  if (!isReady()) return;
  watch.disconnect();
  requestAnimationFrame(() => setTimeout(() => { window.firstFrame = performance.now(); }));
});
watch.observe(document, { attributes: true, childList: true, subtree: true });
"""
OF_REPORT = NOTE_FIRST_FRAME.replace("OTHER", "false")
# The names of its views appear with the profile; its canvas is there before.
OF_SPEEDSCOPE = NOTE_FIRST_FRAME.replace(
    "OTHER", 'document.body?.textContent.includes("Left Heavy")'
)


def make_trace(path: Path, events: int) -> None:
    """Writes a trace of steps, each with operators that call others, on two threads."""
    chance = random.Random(1)
    now, count, step = 0, 0, 0
    with path.open("w") as file:
        file.write('{"schemaVersion": 1, "traceEvents": [\n')

        def write(name: str, category: str, start: int, end: int, shape: str = "") -> None:
            nonlocal count
            arguments = f', "args": {{"Input Dims": [{shape}]}}' if shape else ""
            file.write(
                f'{{"ph":"X","cat":"{category}","name":"{name}","pid":1,"tid":1,'
                f'"ts":{start / 1000:.3f},"dur":{(end - start) / 1000:.3f}{arguments}}},\n'
            )
            count += 1

        while count < events:
            begin = now
            for _ in range(min(2000, (events - count) // 3 + 1)):
                outer, now = now, now + int(chance.lognormvariate(6, 0.5))
                name = chance.choice(OPERATORS)
                for inner in range(2):
                    start, now = now, now + int(chance.lognormvariate(9 - inner, 0.7))
                    write(f"aten::{name}_{inner}", "cpu_op", start, now, f"[{32 << inner}, 64]")
                    now += int(chance.lognormvariate(6, 0.5))
                write(f"aten::{name}", "cpu_op", outer, now, "[32, 64], [64, 64]")
            write(f"ProfilerStep#{step}", "user_annotation", begin, now)
            now, step = now + 1000, step + 1
        file.write('{"ph":"M","name":"process_name","pid":1,"args":{"name":"python"}}\n]}')


def seconds_of(*command: str | Path) -> float:
    """Runs a command, and returns how long it took."""
    started = time.perf_counter()
    subprocess.run([str(part) for part in command], check=True, capture_output=True)
    return time.perf_counter() - started


def measure(program: Path, folder: Path, events: int, runs: int) -> None:
    """Prints the measurements for a number of events."""
    trace, page = folder / f"{events}.json", folder / f"{events}.html"
    make_trace(trace, events)
    conclusions = seconds_of(program, "critical-path", trace) + seconds_of(
        program, "explain", trace
    )
    whole = seconds_of(program, "report", trace, "--out", page)
    print(f"{events} events: {page.stat().st_size / 1e6:.2f} MB")
    print(f"  mindprof report {whole:.2f} s; critical-path and explain alone {conclusions:.2f} s")
    with Browser() as browser:
        for _ in range(runs):
            opened = browser.open(page, "#step", early=OF_REPORT)
            opened.wait("window.firstFrame")
            ready = float(opened.run("window.firstFrame"))
            redraws = []
            span = (
                json.loads(
                    subprocess.run(
                        [program, "info", "--json", trace], check=True, capture_output=True
                    ).stdout
                )["span_us"]
                * 1000
            )
            for share in SHARES:
                middle, half = span / 2, span * share / 2
                opened.go(f"#step?at={int(middle - half)}-{int(middle + half)}")
                redraws.append(
                    float(opened.run("document.getElementById('timeline').dataset.drawn"))
                )
            shown = ", ".join(f"{time:.1f}" for time in redraws)
            print(f"  open to first full draw {ready / 1000:.2f} s; redraw of {SHARES} {shown} ms")
            opened.close()


def measure_speedscope(program: Path, release: Path, folder: Path, events: int, runs: int) -> None:
    """Prints how large the same events are for speedscope, and how long it takes to draw them."""
    trace, profile = folder / f"{events}.json", folder / f"{events}.speedscope.json"
    seconds_of(program, "convert", trace, profile)
    content = profile.read_bytes()
    # How speedscope's own command hands a file to the page.
    script = folder / f"{events}.speedscope.js"
    encoded = base64.b64encode(content).decode()
    script.write_text(f"speedscope.loadFileFromBase64({json.dumps(profile.name)}, '{encoded}')")
    print(f"speedscope: {len(content) / 1e6:.2f} MB of JSON, {len(encoded) / 1e6:.2f} MB as a page")
    with Browser() as browser:
        for _ in range(runs):
            opened = browser.open(
                release / "index.html", f"#localProfilePath={script}", early=OF_SPEEDSCOPE
            )
            opened.wait("window.firstFrame", seconds=300)
            drawn = float(opened.run("window.firstFrame"))
            print(f"  open to first draw {drawn / 1000:.2f} s")
            opened.close()


def main() -> None:
    """Measures each of the sizes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", type=Path, default=Path("target/release/mindprof"))
    parser.add_argument("--events", type=int, nargs="+", default=[1_000_000])
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--speedscope", type=Path)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for events in arguments.events:
            measure(arguments.program, Path(folder), events, arguments.runs)
            if arguments.speedscope is not None:
                measure_speedscope(
                    arguments.program, arguments.speedscope, Path(folder), events, arguments.runs
                )


if __name__ == "__main__":
    main()
