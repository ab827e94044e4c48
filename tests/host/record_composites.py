"""Records composites.json: what torch computes for each case of composites.py, with gradients.

Run at the root with a Python that has torch: `python -m tests.host.record_composites`. The test
`test_tensor_composites` compares the runtime with it.
"""

import importlib
import json
import warnings
from pathlib import Path
from typing import Any

from tests.host import composites


def main() -> None:
    """Records all cases."""
    torch: Any = importlib.import_module("torch")
    warnings.simplefilter("ignore")
    found = {
        name: {
            where: composites.run(torch, name, where, tracked=True) for where in composites.WHERE
        }
        for name in composites.CASES
    }
    text = json.dumps(found, separators=(",", ":")).replace('},"', '},\n"')
    Path(__file__).with_name("composites.json").write_text(text + "\n")


if __name__ == "__main__":
    main()
