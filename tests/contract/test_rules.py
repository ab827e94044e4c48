"""Every rule of the contract has a test with its number, every difference is listed."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest
from host import IS_TORCH, torch

FOLDER = Path(__file__).parent
COMPAT = FOLDER.parents[1] / "docs" / "compat.md"

P_RULES = [
    *range(1, 53),
    *range(60, 66),
    *range(70, 73),
    *range(80, 85),
    *range(90, 107),
    *range(110, 114),
]
RULES = [f"P-{number}" for number in P_RULES]
RULES += [f"R-{number}" for number in range(1, 13)] + [f"M-{number}" for number in range(1, 5)]
RULES += [f"E-{number}" for number in range(1, 12)] + [f"T-{number}" for number in range(1, 6)]
RULES += [f"K-{number}" for number in range(1, 6)]
RULES += [f"B-{number}" for number in (*range(1, 5), *range(10, 19))]

MODULES = [
    "mindtorch_v2.profiler",
    "mindtorch_v2.autograd.profiler",
    "mindtorch_v2.autograd.profiler_util",
]


@cache
def functions() -> list[ast.FunctionDef]:
    """Returns the tests of the contract."""
    return [
        node
        for file in sorted(FOLDER.glob("test_*.py"))
        for node in ast.parse(file.read_text()).body
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    ]


def rules_of(test: str) -> list[str]:
    """Returns the rules that a test names."""
    return [
        f"{group.upper()}-{number}" for group, number in re.findall(r"_([prmetkb])_(\d+)", test)
    ]


def differences() -> dict[str, str]:
    """Returns the tests of what we do otherwise, with the reason of each."""
    found = {}
    for test in functions():
        for mark in test.decorator_list:
            if isinstance(mark, ast.Call) and ast.unparse(mark.func) == "pytest.mark.differs":
                found[test.name] = ast.literal_eval(mark.args[0])
    return found


def table_of_names() -> dict[str, set[str]]:
    """Reads the table of names in docs/compat.md: by module, the names."""
    rows: dict[str, set[str]] = {module: set() for module in MODULES}
    for line in COMPAT.read_text().splitlines():
        if match := re.match(r"\| `(mindtorch_v2[\w.]*)\.(\w+)` \| (same|better|accepted)", line):
            rows[match[1]].add(match[2])
    return rows


@pytest.mark.parametrize("rule", RULES)
def test_each_rule_has_a_test(rule: str) -> None:
    assert any(rule in rules_of(test.name) for test in functions())


@pytest.mark.parametrize("test", differences())
def test_each_difference_is_listed(test: str) -> None:
    assert f"`{test}`" in COMPAT.read_text()


def test_nothing_is_listed_that_is_not_tested() -> None:
    listed = re.findall(r"`(test_\w+)`", COMPAT.read_text())
    assert sorted(set(listed)) == sorted(differences())


@pytest.mark.skipif(IS_TORCH, reason="the table is about mindtorch_v2")
@pytest.mark.parametrize("module", MODULES)
def test_the_table_of_names_is_that_of_the_modules(module: str) -> None:
    found = torch
    for part in module.split(".")[1:]:
        found = getattr(found, part)
    assert table_of_names()[module] == set(found.__all__)
