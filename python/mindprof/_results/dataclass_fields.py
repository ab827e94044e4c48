"""Events and rows as what looks like a dataclass, which pandas and polars take by column.

They look for `__dataclass_fields__` alone.
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
    """Has the objects of a class taken for those of a dataclass.

    Args:
        shown: The class.
        kinds: The names of attributes that are its fields, and what they hold.
    """
    fields = Fields({name: _TYPES[kind] for name, kind in kinds.items()})
    shown.__dataclass_fields__ = fields
    # polars goes by these.
    shown.__annotations__ = {name: _TYPES[kind] for name, kind in kinds.items()}
