"""Writes the schemas of the operators that the embedded runtime records, as torch registers them.

Run it under a Python that has torch; it writes `crates/formats/src/execution_trace/schemas.txt`,
which execution traces take their `op_schema` from. Overloads with named dimensions are omitted,
because the runtime has none.
"""

from __future__ import annotations

import re
from pathlib import Path

import torch  # type: ignore[import-not-found]  # only in the environment that runs this

ROOT = Path(__file__).parents[1]
SOURCES = ROOT / "runtime/tensor/src"
TARGET = ROOT / "crates/formats/src/execution_trace/schemas.txt"


def operator_names() -> set[str]:
    """Returns the names of operators in the sources of the runtime."""
    names: set[str] = set()
    for source in SOURCES.rglob("*.rs"):
        names |= set(re.findall(r'"(aten::[a-z_0-9]+)"', source.read_text()))
    return names


def signatures(name: str) -> list[str]:
    """Returns the schemas of the overloads of an operator."""
    packet = getattr(torch.ops.aten, name.removeprefix("aten::"), None)
    if packet is None:
        return []
    schemas = [str(getattr(packet, overload)._schema) for overload in packet.overloads()]
    return [schema for schema in schemas if "Dimname" not in schema]


def main() -> None:
    """Writes the list."""
    lines = [line for name in sorted(operator_names()) for line in signatures(name)]
    TARGET.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
