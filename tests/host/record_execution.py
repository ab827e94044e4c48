"""Records torch's execution trace of the small model: `mlp.execution.json.gz`.

Run where torch is installed: `python -m tests.host.record_execution`.
"""

from __future__ import annotations

from pathlib import Path

from tests.host.execution import write_trace


def main() -> None:
    """Writes the file."""
    import torch  # type: ignore[import-not-found]  # what is installed here is the host

    torch.set_num_threads(1)
    write_trace(torch, str(Path(__file__).with_name("mlp.execution.json.gz")))


if __name__ == "__main__":
    main()
