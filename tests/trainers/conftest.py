"""What is tested with trainers: `make test-trainers` runs it, elsewhere it is left out."""

from __future__ import annotations

from importlib.util import find_spec

HAS_TRAINERS = all(find_spec(name) for name in ("torch", "transformers", "lightning"))

collect_ignore_glob = ["scripts/*"] if HAS_TRAINERS else ["scripts/*", "test_*.py"]
