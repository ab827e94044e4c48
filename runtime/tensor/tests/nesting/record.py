"""Writes torch.txt: the nesting of torch's operators, and the inputs that torch records.

Run it with a Python that has torch: `python record.py > torch.txt`. The test `nesting` compares the
embedded runtime with the result.
"""

import json
import tempfile

import torch
from torch.profiler import ProfilerActivity, profile

CASES = """
torch.ones(2, 3)
torch.ones(2, dtype=torch.int64)
torch.zeros(2, 3)
torch.zeros(2, dtype=torch.int64)
torch.zeros(0)
torch.zeros(32767)
torch.zeros(32768)
torch.full((2, 3), 1.5)
torch.full((2,), 2)
torch.full((2,), True)
torch.empty(2, 3)
torch.randn(2, 3)
torch.randn(2, dtype=torch.float64)
torch.tensor([[1.0, 2.0], [3.0, 4.0]])
torch.tensor(3)
torch.tensor([1.0, 2.0], dtype=torch.int64)
x + x
x + row
x + 2
x + 2.5
x + True
x + i
i + 1
i + 1.5
i + zero_dim
x * zero_dim
x.t() + x.t()
torch.add(x, x, alpha=2)
x - x
x - 2
2 - x
2 - i
torch.rsub(i, 2.5)
x * x
i * 2
x / x
x / 2
i / i
i / 2
x.neg()
x.relu()
i.relu()
x.reciprocal()
i.reciprocal()
x.sum()
x.sum(0)
x.sum((0, 1), True)
x.sum((), False)
x.sum(dtype=torch.float64)
i.sum()
i32.sum()
zero_dim.sum()
torch.zeros(2, 0).sum(1)
batch.sum((0, 2))
batch.sum((0, 2), keepdim=True)
x.t().sum(1)
x.mean()
x.mean(0)
x.mean(1, keepdim=True)
batch.mean((0, -1))
zero_dim.mean()
x.t()
row.t()
zero_dim.t()
x.transpose(0, 1)
batch.transpose(1, 1)
batch.transpose(-1, 0)
x.expand(2, 4, 4)
x.expand(1, 2, 4, 4)
x.expand(1, -1, 4)
row.expand(2, 1, 4)
x.view(2, 8)
x.view(-1)
x.reshape(2, 8)
x.reshape(-1)
x.t().reshape(16)
x.t().reshape(-1, 8)
x.t().reshape(4, 2, 2)
x.t().contiguous()
x.contiguous()
x.clone()
x.t().clone()
row.expand(3, 4).clone()
x.to(torch.int64)
x.to(torch.float32)
x.t().to(torch.float64)
x.unsqueeze(0)
x.unsqueeze(-1)
x.t().unsqueeze(1)
zero_dim.unsqueeze(0)
x.squeeze(0)
torch.ones(1, 4).squeeze(0)
zero_dim.item()
x @ x
x @ x.t()
x.t() @ x
x.t() @ x.t()
i @ i
row.expand(4, 4) @ x
x @ row.expand(4, 4)
torch.ones(4, 1) @ torch.ones(1, 4)
torch.ones(1, 4) @ torch.ones(4, 1)
torch.ones(4, 1) @ torch.ones(1, 1)
torch.ones(4, 1) @ torch.ones(4, 1).t()
torch.ones(0, 4) @ x
torch.ones(2, 0) @ torch.ones(0, 3)
x @ row
x.t() @ row
row.expand(3, 4) @ row
torch.ones(3, 0) @ torch.ones(0)
row @ x
row @ row
torch.ones(0) @ torch.ones(0)
batch @ batch
batch @ x
batch @ x.t()
batch.transpose(1, 2) @ x
batch @ row
batch.transpose(1, 2) @ row
x @ batch
row @ batch
row @ batch.transpose(1, 2)
x @ batch.transpose(1, 2)
torch.ones(2, 1, 4, 4) @ batch
torch.ones(2, 3, 0) @ torch.ones(2, 0, 3)
torch.ones(2, 0, 4) @ x
torch.mm(x, x)
torch.bmm(batch, batch)
torch.mv(x, row)
torch.dot(row, row)
"""

NAMES = {
    "torch": torch,
    "x": torch.ones(4, 4),
    "row": torch.ones(4),
    "batch": torch.ones(2, 4, 4),
    "i": torch.ones(4, 4, dtype=torch.int64),
    "i32": torch.ones(4, 4, dtype=torch.int32),
    "zero_dim": torch.tensor(2.0),
}


def events(expression: str) -> list[dict]:
    """Runs an expression under the profiler and returns its operators in start order."""
    code = compile(expression, "case", "eval")
    eval(code, NAMES)
    with profile(activities=[ProfilerActivity.CPU], record_shapes=True) as recording:
        eval(code, NAMES)
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        recording.export_chrome_trace(file.name)
        with open(file.name, encoding="utf-8") as trace:
            rows = json.load(trace)["traceEvents"]
    operators = [row for row in rows if row.get("cat") == "cpu_op"]
    return sorted(operators, key=lambda row: (row["ts"], -row["dur"]))


def text(row: dict) -> str:
    """Formats an operator and its inputs as one line."""
    arguments = row["args"]
    columns = zip(
        arguments["Input type"],
        arguments["Input Dims"],
        arguments["Input Strides"],
        arguments["Concrete Inputs"],
        strict=True,
    )
    inputs = []
    for kind, dims, strides, value in columns:
        if kind in ("Scalar", "ScalarList"):
            inputs.append(value + "0" if value.endswith(".") else value.lower())
        else:
            inputs.append(f"{kind}{dims}{strides}" if kind else "-")
    return " ".join([row["name"], *inputs])


def main() -> None:
    """Records all expressions and prints them."""
    for expression in CASES.strip().splitlines():
        print(f"# {expression}")
        ends: list[float] = []
        for row in events(expression):
            while ends and row["ts"] >= ends[-1]:
                ends.pop()
            print("  " * len(ends) + text(row))
            ends.append(row["ts"] + row["dur"])


if __name__ == "__main__":
    main()
