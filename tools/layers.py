"""Checks the direction of the workspace: which crate may know which, and who may use what.

Reads `cargo metadata`, so that the check is about what is built and not about what a document
says. Prints nothing and exits 0 when all holds; names each wrong edge and exits 1 otherwise.
ARCHITECTURE.md has the same table in words.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

# A crate may depend on these crates of the workspace.
EDGES: dict[str, set[str]] = {
    "mindprof-allocator": set(),
    "mindprof-model": set(),
    "mindprof-record": {"mindprof-model"},
    "mindprof-analyze": {"mindprof-model"},
    "mindprof-trace": {"mindprof-model", "mindprof-analyze"},
    "mindprof-answers": {"mindprof-model", "mindprof-analyze"},
    "mindprof-ranks": {"mindprof-model", "mindprof-analyze", "mindprof-answers"},
    "mindprof-formats": {
        "mindprof-model",
        "mindprof-analyze",
        "mindprof-answers",
        "mindprof-ranks",
        "mindprof-trace",
    },
    "mindprof-report": {
        "mindprof-model",
        "mindprof-analyze",
        "mindprof-answers",
        "mindprof-trace",
        "mindprof-formats",
        "mindprof-ranks",
    },
    "mindprof-frames": set(),
    "mindprof-pytorch": {"mindprof-model", "mindprof-record", "mindprof-frames"},
    "mindprof-python-support": {"mindprof-model"},
    "mindtorch-tensor": {"mindprof-model", "mindprof-record"},
    "mindtorch-python": {
        "mindprof-model",
        "mindprof-record",
        "mindprof-python-support",
        "mindtorch-tensor",
    },
    "mindprof-python": {
        "mindprof-model",
        "mindprof-record",
        "mindprof-analyze",
        "mindprof-answers",
        "mindprof-ranks",
        "mindprof-trace",
        "mindprof-formats",
        "mindprof-report",
        "mindprof-allocator",
        "mindprof-cli",
        "mindprof-pytorch",
        "mindprof-frames",
        "mindprof-python-support",
        "mindtorch-python",
    },
    "mindprof-cli": {
        "mindprof-model",
        "mindprof-analyze",
        "mindprof-answers",
        "mindprof-ranks",
        "mindprof-trace",
        "mindprof-formats",
        "mindprof-report",
        "mindprof-allocator",
    },
    "mindprof": {
        "mindprof-model",
        "mindprof-record",
        "mindprof-analyze",
        "mindprof-answers",
        "mindprof-trace",
        "mindprof-formats",
        "mindprof-report",
    },
}

# A crate may depend on these crates only under a feature: the embedded runtime is a guest.
OPTIONAL: dict[str, set[str]] = {"mindprof-python": {"mindtorch-python"}}

# These libraries may be used by these crates only.
OWNED: dict[str, set[str]] = {
    "pyo3": {"mindprof-python", "mindprof-python-support", "mindtorch-python"},
    "clap": {"mindprof-cli"},
    "clap_complete": {"mindprof-cli"},
    "clap_mangen": {"mindprof-cli"},
    "anyhow": {"mindprof-cli"},
    "indicatif": {"mindprof-cli"},
    "inferno": {"mindprof-report"},
    "rusqlite": {"mindprof-trace"},
}

# Within these folders, these crates are not imported: readers of traces know no analysis.
APART: dict[str, str] = {
    "crates/trace/src/ascend": "mindprof_analyze",
    "crates/trace/src/scan": "mindprof_analyze",
    "crates/trace/src/chrome/collect": "mindprof_analyze",
    "crates/trace/src/chrome/read": "mindprof_analyze",
    "crates/trace/src/chrome/event_scanner": "mindprof_analyze",
    "crates/trace/src/read.rs": "mindprof_analyze",
    "crates/trace/src/readers.rs": "mindprof_analyze",
    "crates/trace/src/reading.rs": "mindprof_analyze",
}

# The model is plain data: what it may use beyond the standard library.
MODEL_MAY_USE = {"hashbrown", "rustc-hash", "thiserror"}


def wrong_edges(packages: list[dict[str, Any]]) -> list[str]:
    """Returns one line per edge that is not allowed."""
    wrong = []
    for package in packages:
        name = package["name"]
        if name not in EDGES:
            wrong.append(f"{name}: not in the table of layers")
            continue
        # Tests may look further than the code they test.
        used = {entry["name"] for entry in package["dependencies"] if entry["kind"] != "dev"}
        wrong += [
            f"{name} -> {other}: this direction is not allowed"
            for other in sorted((used & EDGES.keys()) - EDGES[name])
        ]
        wrong += [
            f"{name} -> {other}: only {', '.join(sorted(OWNED[other]))} may use it"
            for other in sorted(used & OWNED.keys())
            if name not in OWNED[other]
        ]
        wrong += [
            f"{name} -> {entry['name']}: allowed only as an optional dependency"
            for entry in package["dependencies"]
            if entry["name"] in OPTIONAL.get(name, set()) and not entry["optional"]
        ]
        if name == "mindprof-model":
            wrong += [
                f"{name} -> {other}: the model stays plain data"
                for other in sorted(used - MODEL_MAY_USE)
            ]
    return wrong


def wrong_imports(root: Path) -> list[str]:
    """Returns one line per file that imports a crate it must not know."""
    wrong = []
    for place, crate in APART.items():
        stem = root / place.removesuffix(".rs")
        files = [stem.with_suffix(".rs"), *sorted(stem.rglob("*.rs"))]
        wrong += [
            f"{path.relative_to(root)} -> {crate}: readers know no analysis"
            for path in files
            if path.exists() and crate in path.read_text(encoding="utf-8")
        ]
    return wrong


def main() -> int:
    """Runs the check over the workspace in the current folder."""
    command = ["cargo", "metadata", "--format-version=1", "--no-deps"]
    metadata = subprocess.run(command, capture_output=True, check=True).stdout
    wrong = wrong_edges(json.loads(metadata)["packages"]) + wrong_imports(Path.cwd())
    for line in wrong:
        print(f"error: {line}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
