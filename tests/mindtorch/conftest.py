"""What is tested with a checkout of MindTorch v2: `make test-mindtorch` runs it."""

from __future__ import annotations

import os

collect_ignore_glob = [] if os.environ.get("MINDTORCH_SRC") else ["test_*.py"]
