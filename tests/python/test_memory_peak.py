"""Live bytes by category, counted from outside: by what the program does and holds.

The count knows nothing of how data flows. It has the records of memory, the operators with the
addresses of their inputs, the part of a training step that a moment lies in, and the tensors that
the program holds. Where the contract's rules say otherwise than a program would, a rule here says
so in words.
"""

from __future__ import annotations

import gzip
import json
from bisect import bisect_right
from collections import Counter
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

import mindtorch_v2 as torch
import pytest
from mindprof import profile
from mindtorch_v2.profiler import record_function

from tests.host.record_memory import CATEGORIES
from tests.host.workloads import WORKLOADS, Workload

pytestmark = pytest.mark.filterwarnings("ignore:`export_memory_timeline`:FutureWarning")

PARTS = ("input", "clear", "forward", "backward", "update")
NAMES = (*CATEGORIES, "UNKNOWN")

Amounts = dict[str, int]
"""Bytes by category, without zeros."""


@dataclass
class Span:
    """An operator, or a part of a step."""

    name: str
    start: int
    end: int
    addresses: list[int]

    def holds(self, time: int) -> bool:
        return self.start <= time <= self.end


@dataclass
class Block:
    """Memory from its allocation to its release; none where that is outside of the window."""

    address: int
    size: int
    taken: int | None
    dropped: int | None = None

    def lives(self, time: int) -> bool:
        begins = self.taken is None or self.taken <= time
        return begins and (self.dropped is None or time <= self.dropped)


class Trained:
    """Two steps of a workload after two others, with what the program held meanwhile."""

    def __init__(self, workload: Workload, folder: Path) -> None:
        self.workload = workload
        self.gradients: list[set[int]] = []
        for _ in range(2):
            self.step()
        self.gradients.clear()
        with profile(record_shapes=True, profile_memory=True, with_stack=True) as self.prof:
            for _ in range(2):
                self.step()
        self.prof.export_chrome_trace(str(folder / "trace.json"))
        trace = json.loads((folder / "trace.json").read_text())
        self.base: int = trace["baseTimeNanoseconds"]
        events = trace["traceEvents"]
        self.parts = [span(event) for event in events if event["name"] in PARTS]
        operators = [span(event) for event in events if event.get("cat") == "cpu_op"]
        self.operators = [each for each in operators if not each.name.startswith("autograd::")]
        self.outermost = outermost(self.operators)
        self.blocks = blocks([event for event in events if event["name"] == "[memory]"])
        self.blocks += self.held_throughout()
        self.uses: dict[int, list[int]] = {}
        for each in self.operators:
            for address in each.addresses:
                self.uses.setdefault(address, []).append(each.start)

    def step(self) -> None:
        workload = self.workload
        autocast = torch.autocast("cpu", dtype=torch.bfloat16, enabled=workload.autocast)
        with autocast:
            with record_function("input"):
                x, y = workload.make()
            with record_function("clear"):
                workload.optimizer.zero_grad()
            with record_function("forward"):
                loss = workload.loss(workload.model(x), y)
            with record_function("backward"):
                loss.backward()
            parameters = workload.model.parameters()
            self.gradients.append({parameter.grad.data_ptr() for parameter in parameters})
            with record_function("update"):
                workload.optimizer.step()

    def states(self) -> list[Any]:
        states = self.workload.optimizer.state.values()
        values = [value for state in states for value in state.values()]
        return [value for value in values if isinstance(value, torch.Tensor)]

    def held_throughout(self) -> list[Block]:
        """The program's own tensors, which are there before and after the window."""
        model = self.workload.model
        tensors = [*model.parameters(), *model.buffers(), *self.states()]
        known = {block.address for block in self.blocks if block.dropped is None}
        return [
            Block(tensor.data_ptr(), tensor.numel() * tensor.element_size(), None)
            for tensor in tensors
            if tensor.data_ptr() not in known
        ]

    def operation(self, time: int | None) -> Span | None:
        """The outermost operator or backward node at a time."""
        place = bisect_right([each.start for each in self.outermost], time or 0) - 1
        found = self.outermost[place] if place >= 0 else None
        return found if found is not None and time is not None and found.holds(time) else None

    def part(self, time: int | None) -> str:
        return next((part.name for part in self.parts if part.holds(time or 0)), "")

    def category(self, block: Block) -> str:
        held = self.category_held(block)
        if held:
            return held
        operation = self.operation(block.taken)
        if operation is not None and operation is self.operation(block.dropped):
            return "TEMPORARY"
        made_by = operation.name if operation is not None else ""
        return {
            "input": "INPUT",
            "forward": self.category_forward(made_by),
            "backward": self.category_backward(made_by),
            # The numbers of an optimizer's formula come from outside and go into the parameters.
            "update": "UNKNOWN" if made_by else "INPUT",
        }.get(self.part(block.taken), "UNKNOWN")

    def category_held(self, block: Block) -> str:
        """What the program says of its own tensors, and what no operator had to do with."""
        model, address = self.workload.model, block.address
        if block.dropped is None:
            if address in {parameter.data_ptr() for parameter in model.parameters()}:
                return "PARAMETER"
            if address in {state.data_ptr() for state in self.states()}:
                return "OPTIMIZER_STATE"
        if not any(block.lives(use) for use in self.uses.get(address, [])):
            return "UNKNOWN"
        backward = [part.end for part in self.parts if part.name == "backward"]
        for time, gradients in zip(backward, self.gradients, strict=True):
            if address in gradients and block.lives(time):
                return "GRADIENT"
        # Running means come from outside and go into what is learned; a count of batches does not.
        buffers = {buffer.data_ptr(): buffer.dtype for buffer in model.buffers()}
        if block.taken is None and block.dropped is None and address in buffers:
            return "INPUT" if buffers[address].is_floating_point else "UNKNOWN"
        return ""

    @staticmethod
    def category_forward(made_by: str) -> str:
        # What is made of nothing comes from outside; a number beside all operators goes nowhere.
        return {"aten::arange": "INPUT", "": "UNKNOWN"}.get(made_by, "ACTIVATION")

    @staticmethod
    def category_backward(made_by: str) -> str:
        # Where the pass begins is made of the loss; what the engine sums up between two nodes is
        # made by neither.
        if made_by == "aten::ones_like":
            return "ACTIVATION"
        return "UNKNOWN" if made_by.startswith("aten::") else "AUTOGRAD_DETAIL"

    def counted(self) -> list[tuple[int, str, int]]:
        """The time, category and bytes of each allocation and release, in time order."""
        found: list[tuple[int, str, int]] = []
        for block in self.blocks:
            category = self.category(block)
            found.append((block.taken or -1, category, block.size))
            if block.dropped is not None:
                found.append((block.dropped, category, -block.size))
        return sorted(found, key=lambda step: step[0])

    def told(self, folder: Path) -> list[tuple[int, str, int]]:
        """The same of the memory timeline."""
        path = folder / "memory.raw.json.gz"
        self.prof.export_memory_timeline(str(path))
        rows = json.loads(gzip.decompress(path.read_bytes()))
        times = [-1 if time == -1 else time - self.base for time, _, _, _ in rows]
        return [(time, NAMES[row[3]], row[2]) for time, row in zip(times, rows, strict=True)]


def span(event: dict[str, Any]) -> Span:
    start = round(event["ts"] * 1000)
    end = start + round(event["dur"] * 1000)
    return Span(event["name"], start, end, event["args"].get("Input Storages", []))


def outermost(spans: list[Span]) -> list[Span]:
    found: list[Span] = []
    for each in sorted(spans, key=lambda each: (each.start, -each.end)):
        if not found or each.start > found[-1].end:
            found.append(each)
    return found


def blocks(records: list[dict[str, Any]]) -> list[Block]:
    """Matches each release to the last allocation at its address."""
    found: list[Block] = []
    live: dict[int, Block] = {}
    for record in records:
        address, size = record["args"]["Addr"], record["args"]["Bytes"]
        time = round(record["ts"] * 1000)
        if size > 0:
            assert address not in live, "memory is taken once"
            live[address] = Block(address, size, time)
            found.append(live[address])
            continue
        block = live.pop(address, None)
        if block is None:
            block = Block(address, -size, None)
            found.append(block)
        assert block.size == -size, "as much is given back as was taken"
        block.dropped = time
    return found


def moments(steps: list[tuple[int, str, int]]) -> tuple[list[int], list[Amounts]]:
    """The times at which something changes, and the bytes by category after each."""
    times, amounts = [], []
    now: Counter[str] = Counter()
    for time, group in groupby(steps, key=lambda step: step[0]):
        for _, category, size in group:
            now[category] += size
        times.append(time)
        amounts.append({category: size for category, size in now.items() if size})
    return times, amounts


def at(found: tuple[list[int], list[Amounts]], time: int) -> Amounts:
    place = bisect_right(found[0], time) - 1
    return found[1][place]


def together(amounts: Amounts, categories: tuple[str, ...]) -> Amounts:
    """Takes some categories for one."""
    found: Counter[str] = Counter()
    for category, size in amounts.items():
        found[categories[0] if category in categories else category] += size
    return dict(found)


# What a residual connection sums up between two nodes changes its category each time it is written
# to, and the formula of AdamW makes tensors that flow into parameters as activations do. There, and
# only between the ends of the parts, these are counted together.
UNCLEAR = {
    "backward": ("AUTOGRAD_DETAIL", "UNKNOWN"),
    "update": ("UNKNOWN", "INPUT", "ACTIVATION", "PARAMETER"),
}


@pytest.mark.parametrize("name", WORKLOADS)
def test_every_category_is_that_of_a_count_at_every_moment(name: str, tmp_path: Path) -> None:
    trained = Trained(WORKLOADS[name](torch), tmp_path)
    counted, told = moments(trained.counted()), moments(trained.told(tmp_path))
    for time in sorted({*counted[0], *told[0]}):
        during = trained.part(time)
        unclear = UNCLEAR.get(during, ("",)) if name.startswith("gpt") else ("",)
        amounts = [together(at(found, time), unclear) for found in (told, counted)]
        assert amounts[0] == amounts[1], during
    for part in trained.parts:
        assert at(told, part.end) == at(counted, part.end), part.name
    peaks = [max(zip(*found, strict=True), key=highest) for found in (told, counted)]
    assert peaks[0] == peaks[1]
    assert len(peaks[0][1]) >= 5, "the peak has parameters, inputs, activations and more"


def highest(moment: tuple[int, Amounts]) -> int:
    return sum(moment[1].values())
