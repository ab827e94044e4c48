"""Every operator of the host, forward and backward: name, parent, order and shapes are torch's.

`goldens/operators.json` is torch's own account, which torch itself has to repeat. Where the host
differs, docs/compat.md lists the call; one that no longer differs has to leave the list.
"""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path

import pytest
from host import IS_TORCH
from operator_cases import GOLDEN, ROOT, calls_by_name
from record_operators import outcome

KNOWN: dict[str, list[str]] = json.loads(GOLDEN.read_text())
SOURCES = ROOT / "runtime" / "tensor" / "src"


@cache
def listed() -> dict[str, str]:
    """Returns the calls that docs/compat.md lists as different, with what is different."""
    page = (ROOT / "docs" / "compat.md").read_text()
    section = page.split("### Operators that differ\n")[1].split("\n#")[0]
    return dict(re.findall(r"^\| `(.+?)` \| (.+) \|$", section.replace("\\|", "|"), re.MULTILINE))


@pytest.mark.parametrize("call", KNOWN)
def test_operators_are_torchs(call: str, tmp_path: Path) -> None:
    found = outcome(call, tmp_path)
    if IS_TORCH or call not in listed():
        assert found == KNOWN[call]
    else:
        assert found != KNOWN[call], f"{call} no longer differs: take it off docs/compat.md"


@pytest.mark.parametrize("call", listed())
def test_only_calls_that_are_compared_are_listed(call: str) -> None:
    assert call in KNOWN


@pytest.mark.parametrize(("name", "calls"), list(calls_by_name()))
def test_every_name_is_compared(name: str, calls: list[str]) -> None:
    assert set(calls) & set(KNOWN), f"record torch's operators of {name}: record_operators.py"


def test_every_operator_of_the_runtime_is_compared() -> None:
    sources = "".join(path.read_text() for path in sorted(SOURCES.rglob("*.rs")))
    ours = set(re.findall(r'Site::operator\(\s*"(aten::\w+)"', sources))
    assert len(ours) > 100
    seen = {line.split()[0] for rows in KNOWN.values() for line in rows}
    assert ours - seen == set()
