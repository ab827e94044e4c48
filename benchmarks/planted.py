"""Plants one fault each in small training runs on the CPU, and compares advice with the truth.

Each run is timed with its fault and without it, without a profiler, in alternating rounds. Then it
is recorded with stacks and shapes, and the advice for the recording is put beside what mending the
fault really saves.

Run it with an environment that has PyTorch, and with mindprof on the path:

    PYTHONPATH=python .venv/bin/python benchmarks/planted.py [FOLDER] [NAME...]

Times are the CPU time of the process: the runs use one thread and wait for nothing, so that this is
their time on an idle machine, even while others use it.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import mindprof
import numpy as np
import torch  # type: ignore[import-not-found]
from torch import nn
from torch.profiler import (  # type: ignore[import-not-found]
    ProfilerActivity,
    profile,
    schedule,
)

Step = Callable[[], object]

#: By name, the rule that should find the fault, the function to blame, and what makes the steps
#: with the fault and without it.
RUNS: dict[str, tuple[str, str, Callable[[], tuple[Step, Step]]]] = {}

ROUNDS = 9
STEPS = 8


def planted(rule: str, function: str) -> Callable[[Callable[[], tuple[Step, Step]]], None]:
    """Registers a run."""

    def add(make: Callable[[], tuple[Step, Step]]) -> None:
        RUNS[make.__name__.replace("_", "-")] = (rule, function, make)

    return add


class Job:
    """A model, its optimizer and a batch."""

    def __init__(self, width: int = 256, layers: int = 3, batch: int = 128) -> None:
        blocks = [m for _ in range(layers) for m in (nn.Linear(width, width), nn.GELU())]
        self.model = nn.Sequential(*blocks, nn.Linear(width, 10))
        self.optimizer = torch.optim.AdamW(self.model.parameters(), fused=True)
        self.x = torch.randn(batch, width)
        self.y = torch.randint(0, 10, (batch,))

    def step(self, x: torch.Tensor | None = None) -> torch.Tensor:
        """Trains on a batch, and returns the output of the model."""
        self.optimizer.zero_grad()
        out = self.model(self.x if x is None else x)
        nn.functional.cross_entropy(out, self.y).backward()
        self.optimizer.step()
        return out.detach()


@planted("double-precision", "normalize")
def promoted_to_double() -> tuple[Step, Step]:
    """Inputs that a scale of numpy turns into float64."""
    job = Job(width=512)
    scale = torch.from_numpy(np.linspace(0.5, 1.5, 512))
    raw = torch.randn(8, 128, 512)

    def normalize(scale: torch.Tensor) -> torch.Tensor:
        scaled = torch.tanh(raw * scale)
        return (scaled - scaled.mean(-1, keepdim=True)).softmax(-1).sum(0).float()

    single = scale.float()
    return lambda: job.step(normalize(scale)), lambda: job.step(normalize(single))


@planted("metric-loop", "accuracy")
def accuracy_one_by_one() -> tuple[Step, Step]:
    """A metric that reads each comparison."""
    job = Job(batch=512)

    def accuracy(out: torch.Tensor) -> float:
        right = out.argmax(1) == job.y
        return sum(1 for one in right if one.item()) / len(right)

    def at_once(out: torch.Tensor) -> float:
        return float((out.argmax(1) == job.y).float().mean().item())

    return lambda: accuracy(job.step()), lambda: at_once(job.step())


@planted("per-step-validation", "evaluate")
def validation_in_each_step() -> tuple[Step, Step]:
    """A held-out batch after each step."""
    job = Job()
    held_out = torch.randn(256, 256)

    def evaluate() -> float:
        with torch.no_grad():
            return float(job.model(held_out).argmax(1).float().mean().item())

    def slow() -> None:
        job.step()
        evaluate()

    return slow, job.step


@planted("python-bound", "tokenize")
def strings_in_python() -> tuple[Step, Step]:
    """Texts that become numbers in Python."""
    job = Job()
    texts = ["the quick brown fox jumps over the lazy dog"] * 128
    words: dict[str, int] = {}

    def tokenize() -> torch.Tensor:
        rows = []
        for text in texts:
            row = [0.0] * 256
            for word in text.lower().split():
                row[words.setdefault(word.strip(".,"), len(words)) % 256] += 1.0
            rows.append(row)
        return torch.tensor(rows)

    ready = tokenize()
    return lambda: job.step(tokenize()), lambda: job.step(ready)


@planted("python-bound", "causal_mask")
def mask_in_python() -> tuple[Step, Step]:
    """A mask that each step builds of lists."""
    job = Job()

    def causal_mask(n: int) -> torch.Tensor:
        return torch.tensor([[float(j <= i) for j in range(n)] for i in range(n)])

    def masked(mask: torch.Tensor) -> torch.Tensor:
        return job.x @ (job.x.T @ job.x * mask).softmax(-1)

    mask = causal_mask(256)
    return lambda: job.step(masked(causal_mask(256))), lambda: job.step(masked(mask))


@planted("conversions", "attend")
def contiguous_back_and_forth() -> tuple[Step, Step]:
    """Copies into another layout and back."""
    job = Job()
    heads = torch.randn(64, 128, 256)

    def attend() -> torch.Tensor:
        x = heads
        for _ in range(3):
            x = torch.relu(x.transpose(1, 2).contiguous()).transpose(1, 2).contiguous()
        return x.mean(0)

    def in_place() -> torch.Tensor:
        x = heads
        for _ in range(3):
            x = torch.relu(x)
        return x.mean(0)

    return lambda: job.step(attend()), lambda: job.step(in_place())


@planted("one-hot-product", "encode")
def one_hot_inputs() -> tuple[Step, Step]:
    """Indices that become one-hot vectors before the first layer."""
    job = Job()
    table = torch.randn(2000, 256)
    ids = torch.randint(0, 2000, (8, 128))

    def encode() -> torch.Tensor:
        return nn.functional.one_hot(ids, 2000).float() @ table

    def look_up() -> torch.Tensor:
        return nn.functional.embedding(ids, table)

    return lambda: job.step(encode().sum(0)), lambda: job.step(look_up().sum(0))


def cpu_ms(step: Step) -> float:
    """Returns the time of a step, as an average of a few."""
    start = time.process_time()
    for _ in range(STEPS):
        step()
    return (time.process_time() - start) / STEPS * 1e3


def measure(slow: Step, mended: Step) -> tuple[float, float]:
    """Returns the times of both, as medians of alternating rounds."""
    rounds = [(cpu_ms(slow), cpu_ms(mended)) for _ in range(ROUNDS + 1)]
    with_fault, without = zip(*rounds[1:], strict=True)
    return statistics.median(with_fault), statistics.median(without)


def record(path: Path, step: Step) -> None:
    """Records a few steps into a trace file."""
    plan = schedule(wait=1, warmup=1, active=STEPS, repeat=1)
    with profile(
        activities=[ProfilerActivity.CPU],
        schedule=plan,
        on_trace_ready=lambda prof: prof.export_chrome_trace(str(path)),
        record_shapes=True,
        with_stack=True,
        profile_memory=True,
    ) as prof:
        for _ in range(2 + STEPS):
            step()
            prof.step()


def row(name: str, path: Path, truth: float) -> str:
    """Returns a line of a table about the advice for a recording."""
    rule, function, _ = RUNS[name]
    findings = mindprof.load(path).advice().findings
    ids = [finding.rule for finding in findings]
    rank = ids.index(rule) + 1 if rule in ids else None
    found = findings[rank - 1] if rank else None
    price = f"{found.share:.0%}" if found else "-"
    named = "yes" if found and found.function == function else "no"
    cells = [name, f"`{rule}`", str(rank or "-"), f"`{function}`", named, price, f"{truth:.0%}"]
    others = ", ".join(f"{one.rule} {one.share:.0%}" for one in findings if one.rule != rule)
    text = f"| {' | '.join(cells)} |" + (f"  others: {others}" if others else "")
    return text.replace("%", " %")


def main() -> None:
    """Prints the table."""
    torch.manual_seed(0)
    torch.set_num_threads(1)
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp(prefix="planted-"))
    folder.mkdir(parents=True, exist_ok=True)
    for name in sys.argv[2:] or RUNS:
        slow, mended = RUNS[name][2]()
        with_fault, without = measure(slow, mended)
        path = folder / f"{name}.trace.json"
        record(path, slow)
        print(row(name, path, 1 - without / with_fault), flush=True)


if __name__ == "__main__":
    main()
