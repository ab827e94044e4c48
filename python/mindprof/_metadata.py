"""What users say about a trace: checked when it is said, JSON when it is written."""

from __future__ import annotations

import json
from typing import Any

from mindprof._profiler_config import refuse


def quoted(value: Any) -> str:
    """Returns a text as JSON.

    Raises:
        AttributeError: `value` is no text.
        TypeError: `value` is bytes.
    """
    # Changes nothing, but fails for whatever torch fails for, with the same error.
    text: str = value.replace('"', '"')
    return json.dumps(text, ensure_ascii=False)


def check(key: Any, value: Any) -> None:
    """Refuses what is neither text nor bytes.

    Raises:
        TypeError: `key` or `value` is neither.
    """
    if not (isinstance(key, (str, bytes)) and isinstance(value, (str, bytes))):
        raise refuse("_add_metadata_json", "(arg0: str, arg1: str) -> None", f"{key!r}, {value!r}")


def pairs(entries: dict[Any, Any]) -> list[tuple[str, str]]:
    """Returns entries as texts; the writer makes a JSON string of each value that is not JSON."""
    return [(_text(key), _text(value)) for key, value in entries.items()]


def _text(value: Any) -> str:
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    return value if isinstance(value, str) else repr(value)
