"""The logger that speaks for the profiler, under torch's name, because users set its level."""

from __future__ import annotations

import sys
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import logging


@cache
def logger() -> logging.Logger:
    """Returns the logger. Its module is a large part of an import, and seldom needed.

    Looked up once: to look it up takes a lock of the whole process, which a handler of a signal
    that raises can leave locked for good.
    """
    import logging

    return logging.getLogger("torch.autograd.profiler")


def inform(text: str, *arguments: object) -> None:
    """Says what is shown to those only who have set the level; without the module nobody has."""
    if "logging" in sys.modules:
        logger().info(text, *arguments)
