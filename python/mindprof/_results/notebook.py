"""HTML tables by which notebooks show events, rows, differences and profiles.

A click on a heading sorts a table if the notebook allows JavaScript. All text is escaped, because
names come from the profiled program.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from typing import Any

MOST_ROWS = 100
"""The maximum number of rows; a note below the table counts the rest."""

Column = tuple[str, Callable[[Any], Any], Callable[[Any], str]]
"""A heading, a function from an item to its sort key, and one from that to its text."""

# The click handler of a heading: sorts its table, numbers in descending order first.
_SORT = (
    "const h=this,t=h.closest('table'),i=h.cellIndex,b=t.tBodies[0],d=h.dataset.down!=='1';"
    "for(const o of h.parentNode.cells)delete o.dataset.down;if(d)h.dataset.down='1';"
    "const v=r=>r.cells[i].dataset.value,n=x=>x!==''&&!isNaN(x);"
    "const c=(x,y)=>n(x)&&n(y)?y-x:x.localeCompare(y);"
    "[...b.rows].sort((x,y)=>(d?1:-1)*c(v(x),v(y))).forEach(r=>b.append(r))"
)


def table(columns: Sequence[Column], items: Iterable[Any], count: int, caption: str = "") -> str:
    """Returns items as an HTML table.

    Args:
        columns: The columns of the table.
        items: The items; the first `MOST_ROWS` of them are shown.
        count: The number of items.
        caption: A text above the table.
    """
    heads = "".join(
        f'<th style="cursor:pointer;text-align:{_side(index)}" onclick="{_escaped(_SORT)}">'
        f"{_escaped(name)}</th>"
        for index, (name, _, _) in enumerate(columns)
    )
    rows = "".join(f"<tr>{_cells(columns, item)}</tr>" for item in islice(items, MOST_ROWS))
    more = count - MOST_ROWS
    rest = f"<p>and {more} more</p>" if more > 0 else ""
    head = f"<caption>{_escaped(caption)}</caption>" if caption else ""
    return f"<table>{head}<thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>{rest}"


def paragraphs(texts: Iterable[str]) -> str:
    """Returns texts as HTML, one paragraph each."""
    return "".join(f"<p>{_escaped(text)}</p>" for text in texts)


def pairs(values: Iterable[tuple[str, Any]]) -> str:
    """Returns names and values as an HTML table with two columns."""
    rows = "".join(
        f'<tr><th style="text-align:left">{_escaped(name)}</th>'
        f'<td style="text-align:left">{_escaped(_text(value))}</td></tr>'
        for name, value in values
    )
    return f"<table><tbody>{rows}</tbody></table>"


def _cells(columns: Sequence[Column], item: Any) -> str:
    found = []
    for index, (_, sort_by, show) in enumerate(columns):
        value = sort_by(item)
        sorts = "" if value is None else str(value)
        text = "" if value is None else show(value)
        found.append(
            f'<td style="text-align:{_side(index)}" data-value="{_escaped(sorts)}">'
            f"{_escaped(text)}</td>"
        )
    return "".join(found)


def _side(index: int) -> str:
    return "right" if index else "left"


def _text(value: Any) -> str:
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return "; ".join(value)
    return "" if value is None else str(value)


def _escaped(text: str) -> str:
    for letter, name in (("&", "amp"), ("<", "lt"), (">", "gt"), ('"', "quot"), ("'", "#x27")):
        text = text.replace(letter, f"&{name};")
    return text
