"""Measures the cost of `mindprof run` beside other profilers and none.

    python benchmarks/run_cost.py [--rounds N] [--shares] [PROGRAM...]

Each program runs as a process of its own under each tool, one after the other, N rounds long; the
table shows the median of the whole wall time, imports included, its ratio to the median without a
profiler, and the same ratio of processor time, which a busy machine changes less. With `--shares`,
each runs once, and the table shows the shares of the program's functions instead. Tools that are
not installed are left out: py-spy and pyinstrument. Needs torch.
"""

from __future__ import annotations

import argparse
import importlib.util
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from run_shares import (  # type: ignore[import-not-found]
    of_mindprof,
    of_py_spy,
    of_pyinstrument,
    print_shares,
)

PROGRAMS = {
    # Operators of a few microseconds: 1,504 parameters, one by one.
    "many_parameters": """
import torch
torch.set_num_threads(1)

def train(steps):
    net = torch.nn.ModuleList(torch.nn.Linear(4, 4) for _ in range(752))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9, foreach=False)
    x = torch.randn(2, 4)
    for _ in range(steps):
        optimizer.zero_grad()
        sum(layer(x).sum() for layer in net).backward()
        optimizer.step()

train(12 * REPEAT)
""",
    # Operators of 50 microseconds and more.
    "large_operators": """
import torch
torch.set_num_threads(2)

def evaluate(net, x):
    with torch.no_grad():
        return net(x).mean().item()

def train(steps):
    net = torch.nn.Sequential(*[
        layer for _ in range(6) for layer in (torch.nn.Linear(512, 512), torch.nn.ReLU())
    ])
    optimizer = torch.optim.Adam(net.parameters())
    x = torch.randn(512, 512)
    for _ in range(steps):
        optimizer.zero_grad()
        net(x).square().mean().backward()
        optimizer.step()
        evaluate(net, x)

train(60 * REPEAT)
""",
    # Functions of the program with known shares, between operators of all sizes.
    "functions": """
import torch
torch.set_num_threads(1)

def tokenize(text):
    return [ord(letter) * 31 % 1000 for letter in text]

def batch(texts):
    return torch.stack([torch.tensor(tokenize(text)) for text in texts])

def forward(net, x):
    return net(torch.nn.functional.one_hot(x, 1000).float().mean(1))

def metrics(y):
    rows = y.softmax(1)
    return [row.argmax().item() for row in rows]

def train(steps):
    net = torch.nn.Sequential(
        torch.nn.Linear(1000, 1000), torch.nn.ReLU(), torch.nn.Linear(1000, 10)
    )
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    texts = ["some words of a text " * 10] * 32
    for _ in range(steps):
        optimizer.zero_grad()
        y = forward(net, batch(texts))
        y.sum().backward()
        optimizer.step()
        metrics(y)

train(300 * REPEAT)
""",
    "pure_python": """
def leaf(x):
    return x * x + 1

def walk(n):
    total = 0
    for i in range(n):
        total += leaf(i)
    return total

def words(n):
    counts = {}
    for i in range(n):
        key = str(i % 1000)
        counts[key] = counts.get(key, 0) + 1
    return sorted(counts.items())

for _ in range(60 * REPEAT):
    walk(300_000)
    words(200_000)
""",
    "compiled": """
import torch

def loss(x, scale):
    return ((x @ x).relu() * scale).sum()

compiled = torch.compile(loss, backend="aot_eager", dynamic=False)
for size in range(16, 22):
    x = torch.randn(size, size, requires_grad=True)
    for _ in range(30):
        compiled(x, 2.0).backward()
""",
}


# How often the work of a program is repeated when shares are compared: their error shrinks with the
# number of samples.
REPEAT_FOR_SHARES = 4


def tools(folder: Path) -> dict[str, list[str]]:
    """Returns the commands that a program's path is appended to."""
    python = sys.executable
    run = [python, "-m", "mindprof", "run", "--out", str(folder / "run")]
    found = {
        "plain": [python],
        "mindprof run": run,
        "mindprof run --stacks every": [*run, "--stacks", "every"],
        "mindprof run --no-stacks": [*run, "--no-stacks"],
    }
    py_spy = shutil.which("py-spy")
    if py_spy:
        options = ["-r", "100", "--nonblocking", "-f", "raw", "-o", str(folder / "py-spy.txt")]
        found["py-spy --nonblocking"] = [py_spy, "record", *options, "--", python]
    if importlib.util.find_spec("pyinstrument"):
        options = ["-r", "text", "-o", str(folder / "pyinstrument.txt")]
        found["pyinstrument"] = [python, "-m", "pyinstrument", *options]
    return found


def show_shares(program: str, path: Path, folder: Path) -> None:
    """Runs a program once under each tool, and prints the shares of its functions."""
    commands = tools(folder)
    shares = {}
    for tool in ("mindprof run", "mindprof run --stacks every"):
        measure([*commands[tool], "--keep", "all", str(path)])
        shares[tool] = of_mindprof(folder / "run" / "trace.json.gz", path)
    if "py-spy --nonblocking" in commands:
        measure([*commands["py-spy --nonblocking"], str(path)])
        shares["py-spy"] = of_py_spy((folder / "py-spy.txt").read_text().splitlines(), path)
    if "pyinstrument" in commands:
        output = folder / "pyinstrument.json"
        command = [sys.executable, "-m", "pyinstrument", "-r", "json", "-o", str(output)]
        measure([*command, str(path)])
        shares["pyinstrument"] = of_pyinstrument(output.read_text(), path)
    print_shares(program, shares)


def measure(command: list[str]) -> tuple[float, float]:
    """Returns the wall time and the processor time of a command in seconds."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    begin = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(command)} failed:\n{done.stderr}")
    wall = time.perf_counter() - begin
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    """Measures the programs of the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("programs", nargs="*", choices=[*PROGRAMS, []], metavar="PROGRAM")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--shares", action="store_true")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for program in arguments.programs or PROGRAMS:
            path = folder / f"{program}.py"
            repeat = REPEAT_FOR_SHARES if arguments.shares else 1
            path.write_text(f"REPEAT = {repeat}\n{PROGRAMS[program]}")
            if arguments.shares:
                show_shares(program, path, folder)
                continue
            commands = tools(folder)
            times: dict[str, list[tuple[float, float]]] = {tool: [] for tool in commands}
            # The files of torch are read for the first time.
            measure([sys.executable, str(path)])
            for _ in range(arguments.rounds):
                for tool, command in commands.items():
                    times[tool].append(measure([*command, str(path)]))
            medians = {
                tool: [statistics.median(column) for column in zip(*found, strict=True)]
                for tool, found in times.items()
            }
            plain = medians["plain"]
            print(f"{program}: {plain[0]:.2f} s without a profiler, processor {plain[1]:.2f} s")
            for tool, (wall, processor) in medians.items():
                ratios = f"{wall / plain[0]:5.2f}  processor {processor / plain[1]:5.2f}"
                print(f"  {tool:30} {wall:6.2f} s  {ratios}", flush=True)
            written = folder / "run"
            size = sum(file.stat().st_size for file in written.rglob("*") if file.is_file())
            print(f"  written by the last mindprof run: {size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
