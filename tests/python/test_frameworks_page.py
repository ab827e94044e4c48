"""Checks docs/frameworks.md: programs print what it shows, signatures match the code."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from mindprof import hosts

from tests.python.documents import ROOT, blocks, missing, run

PAGE = ROOT / "docs" / "frameworks.md"
PROGRAMS = list(blocks(PAGE))
CALL = re.compile(r"`([\w.]+)\((.*?)\)`")


@pytest.mark.parametrize("number", range(len(PROGRAMS) // 2))
def test_the_programs_of_the_page_print_what_it_shows(number: int, tmp_path: Path) -> None:
    (language, program), (shown_as, shown) = PROGRAMS[2 * number : 2 * number + 2]
    assert (language, shown_as) == ("python", "text")
    printed = run("python", program, tmp_path)
    assert missing(shown, printed) is None, printed


def rows(title: str) -> Iterator[list[str]]:
    """Yields the cells of the table whose first column has a title."""
    _, _, rest = PAGE.read_text().partition(f"\n| {title} |")
    for line in rest.split("\n\n")[0].splitlines()[2:]:
        yield [cell.strip() for cell in line.strip("|").split(" | ")]


def find(path: str) -> Any:
    """Returns the object with a dotted name, in the module or in one of its classes."""
    found: Any = hosts
    for name in path.split("."):
        found = getattr(found, name)
    return found


def parameters(call: Any) -> list[inspect.Parameter]:
    """Returns the parameters that a caller sees, without their types."""
    found = inspect.signature(call).parameters.values()
    empty = inspect.Parameter.empty
    return [one.replace(annotation=empty) for one in found if one.name != "self"]


def test_signatures_are_those_of_the_code() -> None:
    shown = [found for first, *_ in rows("call") for found in CALL.findall(first)]
    assert len(shown) > 10
    for path, arguments in shown:
        signature = inspect.Signature(parameters(find(path)))
        assert f"{path}({arguments})" == f"{path}{signature}"


def test_nothing_public_is_left_out() -> None:
    page = " ".join(first for first, *_ in rows("call"))
    named = set(re.findall(r"`([\w.]+)", page))
    # A handle that users only pass back, and classes that are listed by their members.
    public = set(hosts.__all__) - {"RangeHandle", "Framework", "Recording"}
    public |= {f"Framework.{name}" for name in vars(hosts.Framework) if name[0] != "_"}
    public |= {f"Recording.{name}" for name in vars(hosts.Recording) if name[0] != "_"}
    _, _, text = (inspect.getdoc(hosts.Recording) or "").partition("Attributes:")
    attributes = re.findall(r"^    (\w+): ", text, re.MULTILINE)
    assert "record_shapes" in attributes
    assert named == public | {f"Recording.{name}" for name in attributes}


def test_the_columns_of_device_events_are_those_of_the_code() -> None:
    shown = [(cells[0].strip("`"), cells[-1]) for cells in rows("argument")]
    assert shown == [
        (one.name, "required" if one.default is inspect.Parameter.empty else "0")
        for one in parameters(hosts.Recording.add_device_events)
    ]


def test_what_the_page_names_of_rust_is_there() -> None:
    section = PAGE.read_text().partition("## From Rust\n")[2].partition("\n## ")[0]
    source = (ROOT / "crates" / "mindprof" / "src" / "host.rs").read_text()
    exported = set(re.findall(r"\w+", " ".join(re.findall(r"(?s)^pub use (.*?);", source, re.M))))
    named = [name.split("::") for name in re.findall(r"`([\w:]+)`", section)]
    assert ["mindprof", "host"] in named
    for first, *_ in named:
        assert first in {*exported, "mindprof"}
