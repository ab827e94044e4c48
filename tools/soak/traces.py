"""The output formats: how to write each, and how to check that a file is complete."""

from __future__ import annotations

import gzip
import json
import struct
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import mindprof
from mindprof import profile


def check_json(path: Path) -> None:
    """Checks that a file is JSON."""
    json.loads(path.read_text())


def check_compressed(path: Path) -> None:
    """Checks that a file is JSON in gzip, whose checksum is at its end."""
    json.loads(gzip.decompress(path.read_bytes()))


def check_trace(path: Path) -> None:
    """Checks that a Chrome trace loads without repairs."""
    (check_compressed if path.suffix == ".gz" else check_json)(path)
    loaded = mindprof.load(path)
    assert loaded.repairs == (), f"{path}: {loaded.repairs}"
    len(loaded.events())


def check_packets(path: Path) -> None:
    """Checks the packets of a Perfetto trace: field 1, a length, and as many bytes."""
    data, place = path.read_bytes(), 0
    assert data, f"{path} is empty"
    while place < len(data):
        assert data[place] == 0x0A, f"{path}: no packet at byte {place}"
        length, shift, byte = 0, 0, 0x80
        while byte & 0x80:
            place += 1
            byte = data[place]
            length |= (byte & 0x7F) << shift
            shift += 7
        place += 1 + length
    assert place == len(data), f"{path}: the last packet ends at {place} of {len(data)} bytes"


def check_picture(path: Path) -> None:
    """Checks that a file is an SVG picture."""
    assert ElementTree.parse(path).getroot().tag.endswith("svg")


def check_lines(path: Path) -> None:
    """Checks that each line has a stack and a number."""
    text = path.read_text()
    assert not text or text.endswith("\n"), f"{path}: no end of the last line"
    assert all(line.rsplit(" ", 1)[1].isdigit() for line in text.splitlines())


def check_page(path: Path) -> None:
    """Checks that an HTML page is complete."""
    assert path.read_text().rstrip().endswith("</html>")


def check_columns(path: Path) -> None:
    """Checks that a Parquet file has its footer."""
    data = path.read_bytes()
    assert data[:4] == data[-4:] == b"PAR1", f"{path} has no footer"
    (length,) = struct.unpack("<I", data[-8:-4])
    assert length + 12 <= len(data)


def write_memory(prof: profile, path: Path) -> None:
    """Writes the memory timeline and suppresses its warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        prof.export_memory_timeline(str(path))


def write_events(prof: profile, path: Path) -> None:
    """Writes the list of events as a trace."""
    prof.events().export_chrome_trace(path)


@dataclass(frozen=True)
class Format:
    """An output format: the function that writes it and the one that checks a file."""

    ending: str
    write: Callable[[profile, Path], Any]
    check: Callable[[Path], None]
    flags: tuple[str, ...] = ()
    """The flags that a recording must have."""


FORMATS = [
    Format("trace.json", profile.export_chrome_trace, check_trace),
    Format("trace.json.gz", profile.export_chrome_trace, check_trace),
    Format("trace.pftrace", profile.export_chrome_trace, check_packets),
    Format("events.json", write_events, check_json),
    Format("events.parquet", lambda prof, path: prof.events().export_parquet(path), check_columns),
    Format("flame.svg", lambda prof, path: prof.export_flamegraph(str(path)), check_picture),
    Format("scopes.json", lambda prof, path: prof.export_speedscope(str(path)), check_json),
    Format(
        "stacks.txt",
        lambda prof, path: prof.export_stacks(str(path)),
        check_lines,
        ("with_stack",),
    ),
    *(
        Format(ending, write_memory, check, ("record_shapes", "profile_memory", "with_stack"))
        for ending, check in [
            ("memory.json", check_json),
            ("memory.json.gz", check_compressed),
            ("memory.html", check_page),
            ("memory.raw.json.gz", check_compressed),
        ]
    ),
]


def formats_of(prof: profile) -> list[Format]:
    """Returns the formats in which a recording can be written."""
    return [each for each in FORMATS if all(getattr(prof, flag) for flag in each.flags)]


def parts_in(folder: Path) -> list[str]:
    """Returns the names of partial files that writers left."""
    return sorted(path.name for path in folder.rglob(".*"))
