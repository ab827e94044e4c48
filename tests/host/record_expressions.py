"""Records expressions.json: what torch prints for each line of expressions.txt, or raises.

Run at the root with a Python that has torch: `python -m tests.host.record_expressions`. The test
`test_tensor_expressions` compares the runtime with it.
"""

import importlib
import json
import warnings
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent


def names(torch: Any) -> dict[str, Any]:
    """Returns what the expressions may name."""
    x = torch.arange(12.0).reshape(3, 4)
    return {
        "torch": torch,
        "x": x,
        "i": torch.arange(12).reshape(3, 4),
        "b": torch.tensor([True, False]),
        "row": torch.arange(4.0),
        "cube": torch.arange(24.0).reshape(2, 3, 4),
    }


def outcome(expression: str, known: dict[str, Any]) -> list[str]:
    """Evaluates an expression and returns its text, or the exception's type and message."""
    try:
        return [repr(eval(expression, dict(known)))]
    except Exception as error:
        return [type(error).__name__, str(error)]


def main() -> None:
    """Records all expressions."""
    torch: Any = importlib.import_module("torch")
    warnings.simplefilter("ignore")
    lines = (HERE / "expressions.txt").read_text().splitlines()
    found = {line: outcome(line, names(torch)) for line in lines}
    (HERE / "expressions.json").write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
