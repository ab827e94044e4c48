"""What is tested with the real torch: `make test-pytorch` runs it, elsewhere it is left out."""

from __future__ import annotations

from importlib.util import find_spec

collect_ignore_glob = [] if find_spec("torch") else ["test_*.py"]
