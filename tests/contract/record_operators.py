"""Records goldens/operators.json: the operators of torch for each call of `operator_cases`.

Run at the root with a Python that has torch: `CONTRACT_HOST=torch python
tests/contract/record_operators.py`. Calls that torch refuses are left out. The test
`test_operators` compares torch and the host with it.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from operator_cases import GOLDEN, calls_by_name, expressions, record


def outcome(call: str, folder: Path) -> list[str] | str:
    """Returns torch's operators of a call, or the name of the error that it raises."""
    try:
        return record(call, folder)
    except Exception as error:
        return type(error).__name__


def main() -> None:
    """Records all calls."""
    calls = [call for _, calls in calls_by_name() for call in calls] + expressions()
    with tempfile.TemporaryDirectory() as folder:
        outcomes = {call: outcome(call, Path(folder)) for call in calls}
    found = {call: rows for call, rows in outcomes.items() if isinstance(rows, list)}
    refused = [f"{call}: {error}" for call, error in outcomes.items() if isinstance(error, str)]
    rows = [f"{json.dumps(call)}: {json.dumps(rows)}" for call, rows in found.items()]
    GOLDEN.write_text("{\n" + ",\n".join(rows) + "\n}\n")
    print(f"{len(found)} calls recorded; torch refuses {len(refused)}")
    print("\n".join(refused))


if __name__ == "__main__":
    main()
