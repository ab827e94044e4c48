"""Compares the shares of a program's functions in `mindprof run` with those of other profilers.

`run_cost.py --shares` uses it. A share is the time in which a function of the program is the
innermost one of the program's file, of all time outside of imports. Each profiler reports its own
time in its own file: samples of py-spy and pyinstrument, sampled and traced calls of mindprof.
mindprof charges backward work to the function that ran the forward operator, the others to the one
that calls `backward()`, so it is moved there for the comparison.
"""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

#: The number of functions that are shown.
_MOST = 5

_IMPORT = "importlib"

#: A frame of py-spy: function, file and line.
_FRAME = re.compile(r"(?P<name>.*) \((?P<file>[^()]*):(?P<line>\d+)\)$")

#: Functions inside of functions belong to these, as in mindprof: comprehensions and lambdas.
_INNER = re.compile(r"\.<locals>\.<(listcomp|genexpr|dictcomp|setcomp)>$|^<(listcomp|genexpr)>$")


def of_mindprof(trace: Path, program: Path) -> Counter[str]:
    """Returns the time of functions in a trace of `mindprof run`.

    Args:
        trace: The trace.
        program: The program.
    """
    command = [sys.executable, "-m", "mindprof", "functions", str(trace), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found: Counter[str] = Counter()
    backward = 0
    for row in json.loads(done.stdout)["functions"]:
        if Path(row["file"]).name == program.name:
            own = row["own"]
            found[row["function"]] += round(own["cpu_us"] - own["backward_us"])
            backward += round(own["backward_us"])
    if backward:
        found[_caller_of_backward(program)] += backward
    return found


def _caller_of_backward(program: Path) -> str:
    """Returns the name of the function of a program that calls `backward()`."""
    for function in ast.walk(ast.parse(program.read_text())):
        if isinstance(function, ast.FunctionDef):
            for node in ast.walk(function):
                if isinstance(node, ast.Attribute) and node.attr == "backward":
                    return function.name
    return "<module>"


def of_py_spy(lines: Iterable[str], program: Path) -> Counter[str]:
    """Returns the samples of functions in the raw output of py-spy.

    Args:
        lines: Stacks, outermost frame first, each with its number of samples.
        program: The program.
    """
    found: Counter[str] = Counter()
    for line in lines:
        stack, _, count = line.rpartition(" ")
        names = []
        for frame in stack.split(";"):
            parts = _FRAME.match(frame)
            if parts and Path(parts["file"]).name == program.name:
                names.append(parts["name"])
        if names and _IMPORT not in stack:
            found[_outer(names)] += int(count)
    return found


def of_pyinstrument(text: str, program: Path) -> Counter[str]:
    """Returns the time of functions in the JSON of pyinstrument.

    Args:
        text: The JSON.
        program: The program.
    """
    found: Counter[str] = Counter()

    def add(frame: dict[str, Any], names: list[str]) -> None:
        file = frame.get("file_path") or ""
        is_own = Path(file).name == program.name
        # The code of a module that the program imports; pyinstrument hides the import itself.
        is_import = frame["function"] == "<module>" and not is_own and bool(names)
        if _IMPORT in file or is_import:
            return
        if is_own:
            names = [*names, frame["function"]]
        children = frame.get("children", [])
        if names:
            inside = sum(child["time"] for child in children)
            found[_outer(names)] += frame["time"] - inside
        for child in children:
            add(child, names)

    add(json.loads(text)["root_frame"], [])
    return found


def print_shares(program: str, shares: dict[str, Counter[str]]) -> None:
    """Prints the shares of the functions that take the most time by the first profiler.

    Args:
        program: The name of the program.
        shares: The time of functions by profiler.
    """
    first = next(iter(shares.values()))
    print(f"{program}: shares in percent, and the largest difference from the first column")
    print(f"  {'':24}" + "".join(f"{tool:>28}" for tool in shares))
    differences = dict.fromkeys(shares, 0.0)
    for name, _ in first.most_common(_MOST):
        cells = []
        for tool, found in shares.items():
            share = 100 * found[name] / max(sum(found.values()), 1e-9)
            difference = abs(share - 100 * first[name] / max(sum(first.values()), 1e-9))
            differences[tool] = max(differences[tool], difference)
            cells.append(f"{share:28.1f}")
        print(f"  {name:24}" + "".join(cells))
    largest = "".join(f"{differences[tool]:28.1f}" for tool in shares)
    print(f"  {'largest difference':24}{largest}", flush=True)


def _outer(names: list[str]) -> str:
    """Returns the innermost function that is no comprehension."""
    named = [name for name in names if not _INNER.search(name)]
    name = named[-1] if named else names[-1]
    return name.rpartition(".")[2] if "<locals>" in name else name
