"""Entry point of the supervisor and, with `worker`, of the process that runs the rounds."""

from __future__ import annotations

import sys

from soak.activities import ACTIVITIES
from soak.arguments import parse
from soak.supervisor import supervise
from soak.worker import work

if __name__ == "__main__":
    words = sys.argv[1:]
    is_worker = words[:1] == ["worker"]
    arguments = parse(words[is_worker:], sorted(ACTIVITIES))
    sys.exit(work(arguments) if is_worker else supervise(arguments))
