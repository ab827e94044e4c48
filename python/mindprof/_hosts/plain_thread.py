"""A thread of its own for what tries torch out.

Modes that a program has entered (fake tensors and other dispatch modes, vmap and its like,
inference, a default device) change what operators do, and torch keeps all of them by thread.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

Result = TypeVar("Result")


def on_plain_thread(run: Callable[[], Result]) -> Result:
    """Runs something where no mode is entered. Returns what it returns, or raises what it raises.

    Where there can be no thread, as at the end of an interpreter, it runs on the calling one.
    """
    results: list[Result] = []
    errors: list[BaseException] = []

    def run_there() -> None:
        try:
            results.append(run())
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=run_there, name="mindprof probe", daemon=True)
    try:
        thread.start()
    except RuntimeError:
        return run()
    thread.join()
    if errors:
        raise errors[0]
    return results[0]
