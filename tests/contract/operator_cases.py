"""The calls by which every operator of the host is compared with torch's, forward and backward.

Whatever the host offers is found in its sources: the functions of `mindtorch_v2`, the methods of
its tensors and `nn.functional`. Each is called with the arguments that `ARGUMENTS` has for it, and
where there are none, with each of the common ones that torch takes. A name that is added is so
compared as soon as `record_operators` has asked torch about it.
"""

from __future__ import annotations

import ast
import json
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from host import CPU, IS_TORCH, torch

if IS_TORCH:
    # Shapes of what kernels take for themselves depend on the threads.
    torch.set_num_threads(1)

ROOT = Path(__file__).parents[2]
GOLDEN = ROOT / "tests" / "goldens" / "operators.json"

COMMON = ("", "y", "2", "0", "2.5", "0, 1", "i", "2, 8")
COMMON_OF_FUNCTIONS = ("x", "x, y", "[x, y]", "x, 2", "3", "2, 3")

# What is looked at and not run: no operator of its own, or no result that could be compared.
LEFT_OUT = {
    "torch": {
        "Size",
        "Tensor",
        "__version__",
        "amp",
        "autocast",
        "autograd",
        "clear_autocast_cache",
        "cuda",
        "device",
        "dtype",
        "enable_grad",
        "get_autocast_dtype",
        "get_num_threads",
        "inference_mode",
        "bfloat16",
        "bool",
        "contiguous_format",
        "double",
        "float",
        "float32",
        "float64",
        "int",
        "int32",
        "int64",
        "long",
        "preserve_format",
        "is_autocast_cache_enabled",
        "is_autocast_enabled",
        "is_grad_enabled",
        "is_tensor",
        "load",
        "manual_seed",
        "memory_format",
        "nn",
        "no_grad",
        "optim",
        "profiler",
        "save",
        "serialization",
        "set_grad_enabled",
        "set_printoptions",
        "utils",
    },
    "Tensor": {
        "backward",
        "data",
        "data_ptr",
        "dim",
        "dtype",
        "element_size",
        "grad",
        "grad_fn",
        "is_contiguous",
        "is_floating_point",
        "is_leaf",
        "ndim",
        "numel",
        "register_hook",
        "requires_grad",
        "requires_grad_",
        "retain_grad",
        "retains_grad",
        "shape",
        "size",
        "storage_offset",
        "stride",
    },
    "F": set(),
}

# Methods here that torch has as functions only.
FUNCTIONS_ONLY = {"empty_like", "full_like", "ones_like", "rand_like", "randn_like", "zeros_like"}

# Calls of one name, written as the arguments or, where there are braces, as the whole call.
ARGUMENTS: dict[str, tuple[str, ...]] = {
    "torch.arange": ("4", "1.0", "1, 4", "0, 8, 2"),
    "torch.as_tensor": ("x", "[1.0, 2.0]"),
    "torch.broadcast_tensors": ("x, row",),
    "torch.cat": ("[x, y]", "[x, y], 1", "[x, y, i]"),
    "torch.einsum": ("'ij,jk->ik', x, y", "'ij->ji', x", "'bij,jk->bik', batch, x"),
    "torch.empty": ("2, 3",),
    "torch.eye": ("3", "2, 3"),
    "torch.from_numpy": ("array",),
    "torch.full": ("(2, 3), 1.5", "(2,), 2"),
    "torch.linspace": ("0, 1, 5",),
    "torch.meshgrid": ("row, other_row", "row, other_row, indexing='xy'"),
    "torch.ones": ("2, 3", "2, dtype=torch.int64"),
    "torch.rand": ("2, 3",),
    "torch.randint": ("5, (2, 3)", "1, 5, (2, 3)"),
    "torch.randn": ("2, 3",),
    "torch.randperm": ("5",),
    "torch.stack": ("[x, y]", "[x, y], 1"),
    "torch.tensor": ("[[1.0, 2.0]]", "3", "[1.0], dtype=torch.int64"),
    "torch.where": ("mask, x, y", "mask, x, 0.0", "mask"),
    "torch.zeros": ("2, 3", "40000"),
    "x.add": ("y", "row", "2", "2.5", "i", "number", "y, alpha=2"),
    "x.addcdiv": ("y, p", "y, p, value=2"),
    "x.addcmul": ("y, p", "y, p, value=2"),
    "x.addmm": ("y, p", "{x.narrow(1, 0, 3).addmm(tall, wide)}", "{row.addmm(x, y)}"),
    "x.allclose": ("y",),
    "x.as_strided": ("(2, 2), (1, 2)",),
    "x.bmm": (
        "{batch.bmm(other_batch)}",
        "{batch.transpose(1, 2).bmm(other_batch)}",
        "{tall.expand(2, 4, 2).bmm(wide.expand(2, 2, 3))}",
    ),
    "x.bool": ("", "{i.bool()}"),
    "x.bitwise_not": ("{i.bitwise_not()}", "{mask.bitwise_not()}"),
    "x.chunk": ("2", "2, 1"),
    "x.clamp": ("0.25", "0.25, 0.75", "max=0.75"),
    "x.clamp_min": ("0.25",),
    "x.contiguous": ("", "{x.t().contiguous()}"),
    "x.clone": ("", "{x.t().clone()}", "{row.expand(3, 4).clone()}"),
    "x.diag": ("", "1", "{row.diag()}", "{row.diag(-1)}"),
    "x.div": ("y", "row", "2", "i", "number", "{i.div(i)}", "{i.div(2)}"),
    "x.dot": ("{row.dot(other_row)}",),
    "x.expand": ("2, 4, 4", "-1, 4", "{row.expand(3, 4)}", "{column.expand(4, 3)}"),
    "x.expand_as": ("batch", "{row.expand_as(x)}"),
    "x.floor_divide": (
        "{attention.floor_divide(2)}",
        "{attention.floor_divide(weights)}",
        "{i.floor_divide(2)}",
    ),
    "x.flatten": ("", "{x.t().flatten()}", "{batch.flatten(1)}"),
    "torch.full_like": ("x, 2",),
    "x.gather": ("0, places", "1, places"),
    "x.index_select": ("0, picks", "1, picks"),
    "x.item": ("{number.item()}",),
    "x.log_softmax": ("0", "-1"),
    "x.masked_fill": ("mask, 0.0", "mask, number"),
    "x.masked_select": ("mask",),
    "x.matmul": (
        "y",
        "row",
        "batch",
        "y.t()",
        "{x.t().matmul(y)}",
        "{x.t().matmul(y.t())}",
        "{row.matmul(x)}",
        "{row.matmul(other_row)}",
        "{batch.matmul(x)}",
        "{batch.matmul(row)}",
        "{batch.matmul(other_batch)}",
        "{row.matmul(batch)}",
    ),
    "x.max": ("", "0", "1, True", "y"),
    "x.maximum": ("y", "row"),
    "x.mean": ("", "0", "1, True", "{batch.mean((0, 2))}"),
    "x.median": ("", "0", "1, True"),
    "x.min": ("", "0", "1, True", "y"),
    "x.minimum": ("y", "row"),
    "x.mm": (
        "y",
        "{tall.mm(wide)}",
        "{wide.t().mm(tall.t())}",
        "{x.t().mm(y)}",
        "{x.mm(y.t())}",
        "{x.t().mm(y.t())}",
    ),
    "x.mul": ("y", "row", "2", "2.5", "i", "number", "x", "column"),
    "x.mv": ("row", "{x.t().mv(row)}"),
    "x.narrow": ("0, 1, 2", "1, 1, 2"),
    "x.new_zeros": ("(2, 3)",),
    "x.norm": ("", "1", "2, 0", "dim=1, keepdim=True"),
    "x.numpy": ("{x.detach().numpy()}",),
    "x.outer": ("{row.outer(other_row)}",),
    "x.permute": ("1, 0", "{batch.permute(2, 0, 1)}"),
    "x.pow": ("2", "3", "0.5", "0", "1", "-1", "y", "{i.pow(2)}", "{i.pow(0.5)}", "{i.pow(i)}"),
    "x.prod": ("", "0", "1, True", "{i.prod()}"),
    "x.random_": ("", "5"),
    "x.remainder": ("2", "y", "{i.remainder(2)}"),
    "x.reshape": ("2, 8", "-1", "{x.t().reshape(16)}", "{x.t().reshape(4, 2, 2)}"),
    "x.roll": ("1", "1, 0", "(1, 2), (0, 1)"),
    "x.scatter": ("0, places, y[:2]", "1, places, 2.0"),
    "x.scatter_add": ("0, places, y[:2]", "1, places, y[:2]"),
    "x.select": ("0, 1", "1, 2"),
    "x.softmax": ("0", "-1"),
    "x.split": ("2", "2, 1", "[1, 3]"),
    "x.squeeze": ("", "{column.squeeze(1)}", "{column.squeeze()}", "0"),
    "x.std": ("", "0", "1, keepdim=True"),
    "x.sub": ("y", "row", "2", "i", "y, alpha=2"),
    "x.sum": ("", "0", "1, True", "dtype=torch.float64", "{i.sum()}", "{batch.sum((0, 2))}"),
    "x.t": ("", "{row.t()}"),
    "x.to": ("torch.float64", "torch.float32", "torch.int64", "torch.bfloat16", "'cpu'"),
    "x.tolist": ("{x.detach().tolist()}",),
    "x.transpose": ("0, 1", "{batch.transpose(1, 2)}"),
    "x.tril": ("", "1"),
    "x.triu": ("", "1"),
    "x.unbind": ("", "1"),
    "x.unique": ("{i.unique()}", "{i.unique(return_inverse=True, return_counts=True)}"),
    "x.unsqueeze": ("0", "-1"),
    "x.var": ("", "0", "1, keepdim=True", "unbiased=False"),
    "x.view": ("2, 8", "-1"),
    "x.view_as": ("y",),
    "w.add_": ("y", "row", "2", "y, alpha=2"),
    "w.addcdiv_": ("y, p", "y, p, value=2"),
    "w.addcmul_": ("y, p", "y, p, value=2"),
    "w.bernoulli_": ("0.5",),
    "w.clamp_": ("0.25", "0.25, 0.75"),
    "w.copy_": ("y", "row", "i"),
    "w.detach_": ("",),
    "w.div_": ("y", "2"),
    "w.fill_": ("2",),
    "w.lerp_": ("y, 0.5",),
    "w.masked_fill_": ("mask, 0.0",),
    "w.mul_": ("y", "row", "2"),
    "w.scatter_": ("0, places, y[:2]", "1, places, 2.0"),
    "w.scatter_add_": ("0, places, y[:2]",),
    "w.sub_": ("y", "2", "y, alpha=2"),
    "F.adaptive_avg_pool2d": ("image, 2", "image, 1"),
    "F.avg_pool2d": ("image, 2", "image, 2, 1, 1", "image, 3, count_include_pad=False"),
    "F.batch_norm": (
        "image, None, None, weight, bias, True",
        "image, mean, variance, weight, bias, True",
        "image, mean, variance, weight, bias, False",
        "image, mean, variance",
    ),
    "F.conv1d": ("batch, batch", "batch, batch, kernel_bias, 1, 1"),
    "F.conv2d": (
        "image, kernel",
        "image, kernel, kernel_bias",
        "image, kernel, kernel_bias, 2, 1",
    ),
    "F.cross_entropy": (
        "x, labels",
        "x, labels, reduction='sum'",
        "x, labels, reduction='none'",
        "x, labels, weight=weights",
        "x, labels, label_smoothing=0.1",
        "x, labels, weight=weights, label_smoothing=0.1",
        "x, y.softmax(1)",
    ),
    "F.dropout": ("x", "x, 0.25", "x, 0.5, False", "w, 0.5, True, True"),
    "F.embedding": ("i, x", "i, x, 1"),
    "F.gelu": ("x", "x, approximate='tanh'"),
    "F.huber_loss": ("x, y", "x, y, reduction='sum'", "x, y, reduction='none'"),
    "F.layer_norm": ("x, (4,)", "x, (4,), row, other_row", "batch, (4,), row, other_row"),
    "F.linear": ("x, y", "x, y, row", "batch, y", "batch, y, row", "row, y, other_row"),
    "F.log_softmax": ("x, 1", "x, 1, dtype=torch.float64"),
    "F.max_pool2d": ("image, 2", "image, 2, 1", "image, 2, return_indices=True"),
    "F.mse_loss": ("x, y", "x, y, reduction='sum'", "x, y, reduction='none'"),
    "F.nll_loss": ("x, labels", "x, labels, weights", "x, labels, reduction='none'"),
    "F.one_hot": ("labels", "labels, 5"),
    "F.relu": ("x", "w, True"),
    "F.scaled_dot_product_attention": (
        "batch, other_batch, batch",
        "heads, heads, heads",
        "heads, heads, heads, is_causal=True",
        "heads, heads, heads, attention",
        "heads, heads, heads, x",
    ),
    "F.smooth_l1_loss": (
        "x, y",
        "x, y, reduction='sum'",
        "x, y, reduction='none'",
        "x, y, beta=0.0",
    ),
    "F.softmax": ("x, 1", "x, 1, dtype=torch.float64"),
}

# What is written with operators of the language, and calls of more than one name.
EXPRESSIONS = """
x + y|x + 2|2 + x|x - y|2 - x|x * y|2 * x|x / y|2 / x|x.detach() // 2|x % 2|x ** 2|x ** y|2 ** x|-x
+x|abs(x)|x @ y|x == y|x != 2|x < y|x <= 2|x > y|x >= 2|mask & mask|mask | mask|mask ^ mask|~mask
i & i|i | i|i ^ i|x[0]|x[1:3]|x[:, 1]|x[..., 1]|x[None]|x[0, 1]|x[picks]|x[mask]|x[:, picks]
x[picks, picks]|x[1:3, ::2]|bool(number > 0)|float(number)|int(i[0, 0])|len(x)|list(x)|x in [x]
x.T|x.data|x.detach()|(x * y).sum()|((x @ y).relu() ** 2).mean()|x.sum() * 2|x.mean().item()
(x + x).relu()|x * x|(x.t() @ y).sum(0)|x.double() * x|w.__iadd__(y)|w.__imul__(2)|w.__isub__(y)
w.__itruediv__(2)|w.__setitem__(0, 2.0)|w.__setitem__(0, row)|w.__setitem__(mask, 0.0)
w.__setitem__(picks, row)|x.exp().log()|x.sqrt() + y.rsqrt()|x.sum().backward()
torch.autograd.grad(x.sum(), x)|y.add(x).mul(x).sum().backward()|x.mv(row).sum().backward()
x.expand(2, 4, 4).sum().backward()|x.t().sum().backward()|(x[0] * row).sum().backward()
F.mse_loss(F.relu(F.linear(x, y, row)), y).backward()
"""
_SEPARATOR_IN_CALL = ("mask | mask", "i | i")


def expressions() -> list[str]:
    """Returns what is written with operators of the language."""
    text = EXPRESSIONS
    for call in _SEPARATOR_IN_CALL:
        text = text.replace(call, call.replace(" | ", " \0 "))
    calls = [call for line in text.strip().splitlines() for call in line.split("|")]
    return [call.replace(" \0 ", " | ") for call in calls]


def offered() -> dict[str, list[str]]:
    """Returns the names that the host offers, read from its sources."""
    package = ROOT / "python"
    return {
        "torch": _exports(package / "mindtorch_v2" / "__init__.py"),
        "Tensor": _methods(package / "mindprof" / "_core.pyi"),
        "F": _exports(package / "mindtorch_v2" / "nn" / "functional.py"),
    }


def _exports(path: Path) -> list[str]:
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            names: list[str] = ast.literal_eval(node.value)
            return names
    raise AssertionError(f"{path} has no __all__")


def _methods(path: Path) -> list[str]:
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.ClassDef) and node.name == "Tensor":
            functions = [item for item in node.body if isinstance(item, ast.FunctionDef)]
            return sorted({item.name for item in functions if not item.name.startswith("_")})
    raise AssertionError(f"{path} has no class Tensor")


def calls_by_name() -> Iterator[tuple[str, list[str]]]:
    """Yields each name that is compared with its calls."""
    names = offered()
    methods = {name for name in names["Tensor"] if name not in FUNCTIONS_ONLY}
    for group, known in (names | {"Tensor": sorted(methods)}).items():
        for name in known:
            if name in LEFT_OUT[group] or (group == "torch" and name in methods):
                continue
            owner = {"torch": "torch", "F": "F", "Tensor": "w" if name.endswith("_") else "x"}
            yield f"{group}.{name}", list(_calls(f"{owner[group]}.{name}"))


def _calls(call: str) -> Iterator[str]:
    common = COMMON if call[:2] in ("x.", "w.") else COMMON_OF_FUNCTIONS
    if call == "x.T":
        yield call
        return
    for arguments in ARGUMENTS.get(call, common):
        yield arguments[1:-1] if arguments.startswith("{") else f"{call}({arguments})"


def inputs() -> dict[str, Any]:
    """Returns what calls may name: tensors of several shapes, the float ones tracked leaves."""

    def leaf(*sizes: int) -> Any:
        count = 1
        for size in sizes:
            count *= size
        values = [0.1 + (index * 7 % 11) / 12 for index in range(count)]
        return torch.tensor(values).reshape(sizes).requires_grad_()

    x = leaf(4, 4)
    integers = torch.tensor([index % 3 + 1 for index in range(16)]).reshape(4, 4)
    picks = torch.tensor([2, 0])
    return {
        "torch": torch,
        "F": torch.nn.functional,
        "x": x,
        "y": leaf(4, 4),
        "p": leaf(4, 4),
        "w": x.clone(),
        "row": leaf(4),
        "other_row": leaf(4),
        "column": leaf(4, 1),
        "number": leaf(1).detach()[0].clone().requires_grad_(),
        "batch": leaf(2, 4, 4),
        "other_batch": leaf(2, 4, 4),
        "heads": leaf(1, 2, 4, 8),
        "attention": leaf(4, 4).detach(),
        "tall": leaf(4, 2),
        "wide": leaf(2, 3),
        "weights": leaf(4).detach(),
        "image": leaf(2, 3, 4, 4),
        "kernel": leaf(2, 3, 3, 3),
        "kernel_bias": leaf(2),
        "weight": leaf(3),
        "bias": leaf(3),
        "mean": torch.zeros(3),
        "variance": torch.ones(3),
        "i": integers,
        "mask": integers > 1,
        "picks": picks,
        "labels": torch.tensor([0, 3, 1, 2]),
        "places": torch.tensor([[0, 1, 2, 3], [3, 2, 1, 0]]),
        "array": _array(),
    }


def _array() -> Any:
    try:
        import numpy
    except ImportError:
        return None
    return numpy.arange(4.0, dtype="float32")


def tracked(result: Any) -> list[Any]:
    """Returns the tensors of a result through which a gradient can go back."""
    parts = result if isinstance(result, (tuple, list)) else (result,)
    tensors = [part for part in parts if isinstance(part, torch.Tensor)]
    return [part for part in tensors if part.requires_grad and part.grad_fn is not None]


def record(call: str, folder: Path) -> list[str]:
    """Runs a call forward and backward, and returns its operators, indented, with shapes."""
    code = compile(call, "case", "eval")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        gradients = [
            torch.ones(tuple(part.shape), dtype=part.dtype)
            for part in tracked(eval(code, inputs()))
        ]
        names = inputs()
        with torch.profiler.profile(activities=[CPU], record_shapes=True) as profiler:
            roots = tracked(eval(code, names))
            if roots:
                torch.autograd.backward(roots, gradients)
    path = folder / "trace.json"
    profiler.export_chrome_trace(str(path))
    return lines(json.loads(path.read_text())["traceEvents"])


def lines(rows: list[dict[str, Any]]) -> list[str]:
    """Returns the operators of a trace in order, each below its parent."""
    rows = [row for row in rows if row.get("cat") == "cpu_op"]
    rows.sort(key=lambda row: (row["ts"], -row["dur"]))
    found: list[str] = []
    ends: list[float] = []
    for row in rows:
        while ends and row["ts"] >= ends[-1]:
            ends.pop()
        shapes = json.dumps(row["args"].get("Input Dims", []))
        found.append("  " * len(ends) + f"{row['name']} {shapes}")
        ends.append(row["ts"] + row["dur"])
    return found
