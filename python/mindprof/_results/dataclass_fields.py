"""Makes events and rows look like dataclasses, so that pandas and polars read them by column.

Both libraries check for `__dataclass_fields__` only.
"""

from __future__ import annotations

from typing import Any

from mindprof._dataclass import Fields

_TYPES = {
    "text": "str",
    "int": "int",
    "float": "float",
    "bool": "bool",
    "shapes": "list[list[int]]",
    "texts": "list[str]",
    "any": "object",
}


def show_as_dataclass(shown: Any, kinds: dict[str, str]) -> None:
    """Makes a class look like a dataclass.

    Args:
        shown: The class.
        kinds: The attributes that become its fields, and the kind of each.
    """
    fields = Fields({name: _TYPES[kind] for name, kind in kinds.items()})
    shown.__dataclass_fields__ = fields
    # polars reads the types from here.
    shown.__annotations__ = {name: _TYPES[kind] for name, kind in kinds.items()}
