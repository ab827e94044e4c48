"""The loggers that speak for the profiler.

What torch says too goes to torch's own, because users set its level; what only we have to say goes
to `mindprof`, which torch, that silences all of its own, leaves alone.
"""

from __future__ import annotations

import os
import sys
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import logging

# Asks for what we say on stderr, without a line of code: `info`.
VARIABLE = "MINDPROF_LOG"


@cache
def logger() -> logging.Logger:
    """Returns torch's logger. Its module is a large part of an import, and seldom needed.

    Looked up once: to look it up takes a lock of the whole process, which a handler of a signal
    that raises can leave locked for good.
    """
    import logging

    return logging.getLogger("torch.autograd.profiler")


def inform(text: str, *arguments: object) -> None:
    """Says what is shown to those only who ask for it: by a level, or by the environment."""
    # Without the module nobody has set a level.
    if "logging" in sys.modules or _is_asked_for():
        _own_logger().info(text, *arguments)


@cache
def _own_logger() -> logging.Logger:
    """Returns our logger, once for the reason above."""
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
    """Returns whether the program itself shows what we say, where it would be seen twice."""
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
