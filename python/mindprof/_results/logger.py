"""The logger that speaks for the profiler, under torch's name, because users set its level."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import logging


def logger() -> logging.Logger:
    """Returns the logger. Its module is a large part of an import, and seldom needed."""
    import logging

    return logging.getLogger("torch.autograd.profiler")


def inform(text: str, *arguments: object) -> None:
    """Says what is shown to those only who have set the level; without the module nobody has."""
    if "logging" in sys.modules:
        logger().info(text, *arguments)
