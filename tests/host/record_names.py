"""Records what torch computes for the everyday cases: `names.json`.

Run where torch is installed: `python -m tests.host.record_names`.
"""

from __future__ import annotations

import json
from pathlib import Path

from tests.host.names import CASES, LAYERS, run_case, run_layer


def main() -> None:
    """Writes the file."""
    import torch  # type: ignore[import-not-found]  # what is installed here is the host

    torch.set_num_threads(1)
    found = {
        "cases": {name: run_case(torch, name) for name in CASES},
        "layers": {name: run_layer(torch, name) for name in LAYERS},
    }
    Path(__file__).with_name("names.json").write_text(json.dumps(found) + "\n")


if __name__ == "__main__":
    main()
