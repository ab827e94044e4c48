"""The loggers of the profiler.

Messages that torch logs too go to torch's logger, because users set its level. Our own messages go
to the logger `mindprof`, which stays on when torch silences its loggers.
"""

from __future__ import annotations

import os
import sys
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import logging

# The environment variable that shows our messages on stderr if it is set to `info`.
VARIABLE = "MINDPROF_LOG"


@cache
def logger() -> logging.Logger:
    """Returns torch's logger, importing `logging` only if a message is logged.

    The result is cached, because the lookup takes a process-wide lock that an exception from a
    signal handler can leave locked for good.
    """
    import logging

    return logging.getLogger("torch.autograd.profiler")


def inform(text: str, *arguments: object) -> None:
    """Logs a message at level INFO, shown if the user set a level or the environment variable."""
    # If `logging` has not been imported, nobody has set a level.
    if "logging" in sys.modules or _is_asked_for():
        _own_logger().info(text, *arguments)


@cache
def _own_logger() -> logging.Logger:
    """Returns our logger, cached for the same reason as torch's."""
    import logging

    own = logging.getLogger("mindprof")
    if _is_asked_for():
        handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter("mindprof: %(message)s"))
        handler.addFilter(lambda _: not _is_shown_by_others(own, handler))
        own.addHandler(handler)
        own.setLevel(logging.INFO)
    return own


def _is_shown_by_others(own: logging.Logger, handler: logging.Handler) -> bool:
    """Returns whether a handler of the program prints our messages already."""
    import logging

    found: logging.Logger | None = own
    while found is not None:
        for other in found.handlers:
            if isinstance(other, logging.StreamHandler) and other is not handler:
                is_seen = other.stream in (sys.stderr, sys.stdout)
                if is_seen and other.level <= logging.INFO:
                    return True
        found = found.parent if found.propagate else None
    return False


def _is_asked_for() -> bool:
    return os.environ.get(VARIABLE, "").lower() == "info"
