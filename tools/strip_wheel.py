"""Moves the symbols of a wheel's native module into a separate debug file.

Reads a wheel whose module was built with symbols, and writes into a folder the wheel without them
and, under `debug/PLATFORM`, the debug file. The module has a debug link to that file, so that a
debugger finds it if both are in one folder. A wheel above the size limit is an error.

    python tools/strip_wheel.py target/wheel/full/mindprof-0.1.0-....whl dist
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import os
import subprocess
import sys
import tempfile
import zipfile
import zlib
from pathlib import Path

try:
    from zopfli.zlib import compress as compress_well  # type: ignore[import-not-found]
except ImportError:
    # Tests run without it: the wheel is a few percent larger.
    def compress_well(content: bytes) -> bytes:
        """Compresses as well as the standard library can."""
        return zlib.compress(content, 9)


LIMIT = 7_000_000
"""The largest wheel in bytes, so that `pip install` stays quick."""


def object_copier() -> list[str]:
    """Returns the command of Rust's `objcopy`, which supports every processor."""
    asked = ["rustc", "--print", "sysroot", "--print", "target-libdir"]
    said = subprocess.run(asked, check=True, capture_output=True, text=True).stdout.split("\n")
    sysroot, libraries = Path(said[0]), Path(said[1])
    # It links to the compiler's shared libraries but has no search path for them.
    return [
        "env",
        f"LD_LIBRARY_PATH={sysroot / 'lib'}",
        str(libraries.parent / "bin" / "rust-objcopy"),
    ]


def split(module: bytes, debug: Path) -> bytes:
    """Writes the symbols of a module to the file `debug`, and returns the module without them."""
    debug.parent.mkdir(parents=True, exist_ok=True)
    copy = object_copier()
    with tempfile.TemporaryDirectory() as folder:
        whole, stripped = Path(folder, "whole"), Path(folder, "stripped")
        whole.write_bytes(module)
        subprocess.run([*copy, "--only-keep-debug", whole, debug], check=True)
        link = f"--add-gnu-debuglink={debug}"
        subprocess.run([*copy, "--strip-all", link, whole, stripped], check=True)
        return stripped.read_bytes()


def record_line(name: str, content: bytes) -> str:
    """Returns the line of a file in a wheel's RECORD: name, hash and size."""
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
    return f"{name},sha256={digest},{len(content)}"


def write(target: zipfile.ZipFile, entry: zipfile.ZipInfo, content: bytes) -> None:
    """Adds a file to an archive, compressed as well as possible.

    The standard library stores the compressed bytes as they are. The header in front of them and
    the directory are then corrected.
    """
    # Without the header and the checksum of a stream.
    packed = compress_well(content)[2:-4]
    target.writestr(entry, packed, zipfile.ZIP_STORED)
    entry.compress_type = zipfile.ZIP_DEFLATED
    entry.CRC, entry.file_size = zlib.crc32(content), len(content)
    assert target.fp is not None
    end = target.fp.tell()
    target.fp.seek(entry.header_offset)
    target.fp.write(entry.FileHeader(zip64=False))
    target.fp.seek(end)


def strip(wheel: Path, folder: Path) -> Path:
    """Writes a wheel without symbols into a folder, and returns its path."""
    platform = wheel.stem.split("-")[-1].split(".")[0]
    written = folder / wheel.name
    folder.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(wheel) as source, zipfile.ZipFile(written, "w") as target:
        (name,) = (name for name in source.namelist() if name.endswith(".so"))
        debug = folder / "debug" / platform / f"{Path(name).name}.debug"
        stripped = split(source.read(name), debug)
        for entry in source.infolist():
            content = source.read(entry)
            if entry.filename == name:
                content = stripped
            elif entry.filename.endswith(".dist-info/RECORD"):
                lines = content.decode().splitlines()
                lines = [
                    record_line(name, stripped) if line.startswith(f"{name},") else line
                    for line in lines
                ]
                content = ("\n".join(lines) + "\n").encode()
            write(target, entry, content)
    return written


def main() -> None:
    """Strips the given wheels and prints their sizes."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("wheels", nargs="+", type=Path)
    parser.add_argument("folder", type=Path)
    arguments = parser.parse_args()
    too_large = False
    for wheel in arguments.wheels:
        written = strip(wheel, arguments.folder)
        size = os.path.getsize(written)
        print(f"{written}: {size / 1e6:.2f} MB")
        too_large |= size > LIMIT
    if too_large:
        sys.exit(
            f"a wheel is larger than {LIMIT / 1e6:.0f} MB: drop a dependency, or build it for size "
            "in the release profile of Cargo.toml"
        )


if __name__ == "__main__":
    main()
