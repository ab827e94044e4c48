"""Writes what docs/compat.md says of the operators: those that were compared, and what differs.

Run at the root: `python tests/contract/list_operators.py`. The test `test_operators` checks it.
"""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from pathlib import Path

from operator_cases import GOLDEN, ROOT, calls_by_name
from record_operators import outcome

PAGE = ROOT / "docs" / "compat.md"
HEADING = "### Operators that differ\n"
MOST_NAMES = 4


def difference(torchs: list[str], ours: list[str]) -> str:
    """Says in a few words how two accounts of one call differ."""
    counts = [Counter(line.split()[0] for line in lines) for lines in (torchs, ours)]
    parts = []
    for word, missing in (
        ("not here", counts[0] - counts[1]),
        ("only here", counts[1] - counts[0]),
    ):
        names = [name for name in missing if not name.startswith("autograd::engine")]
        if names:
            more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
            shown = ", ".join(f"`{name}`" for name in names[:MOST_NAMES])
            parts.append(f"{word}: {shown}{more}")
    if parts:
        return "; ".join(parts)
    same = sorted(line.strip() for line in torchs) == sorted(line.strip() for line in ours)
    return "another order or nesting" if same else "other inputs"


def section() -> str:
    """Returns the text below the heading."""
    known: dict[str, list[str]] = json.loads(GOLDEN.read_text())
    operators = sorted({line.split()[0] for lines in known.values() for line in lines})
    operators = [name.removeprefix("aten::") for name in operators if name.startswith("aten::")]
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for call, torchs in known.items():
            ours = outcome(call, Path(folder))
            if ours != torchs:
                if isinstance(ours, str):
                    text = f"not here: it raises `{ours}`"
                else:
                    text = difference(torchs, ours)
                rows.append(f"| `{call.replace('|', chr(92) + '|')}` | {text} |")
    names = sum(1 for _ in calls_by_name())
    return (
        f"""
Every function, method and `nn.functional` of the runtime is held against torch, both ways:
{names} names by {len(known)} calls, with name, parent, order and shapes of each operator
(`tests/contract`, `goldens/operators.json`). In {len(known) - len(rows)} calls they are torch's;
{len(rows)} differ and are listed. Operators that were compared:
{wrapped(operators)}

| call | difference |
|---|---|
"""
        + "\n".join(rows)
        + "\n"
    )


def wrapped(names: list[str]) -> str:
    """Returns names, in lines that fit the page."""
    lines = [""]
    for name in names:
        if len(lines[-1]) + len(name) > 120:
            lines.append("")
        lines[-1] += f"`{name}` "
    return "\n".join(line.strip() for line in lines)


def main() -> None:
    """Replaces the section."""
    before, rest = PAGE.read_text().split(HEADING)
    after = rest.split("\n## ", 1)
    tail = "\n## " + after[1] if len(after) > 1 else ""
    PAGE.write_text(before + HEADING + section() + tail)


if __name__ == "__main__":
    main()
