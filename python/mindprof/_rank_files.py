"""Finds the files of a job and reads them, on this machine or on an object store.

Object stores are read through `fsspec`, if it is installed.
"""

from __future__ import annotations

import os
from typing import Any

from mindprof import _core

_ENDINGS = (".json", ".db", ".ranks", ".part")
_COMPRESSIONS = (".gz", ".zst", ".zstd")


def found_files(source: str) -> list[str]:
    if "://" in source:
        found = _found_remotely(source)
    elif os.path.isdir(source):
        walked = (
            os.path.join(folder, name)
            for folder, _, names in os.walk(source)
            for name in names
            if not name.startswith(".")
        )
        found = sorted(path for path in walked if _is_named_like_a_trace(path))
    elif os.path.exists(source):
        found = [source]
    else:
        import glob

        found = sorted(glob.glob(source, recursive=True))
    if not found:
        raise FileNotFoundError(f"{source}: no traces found")
    return found


def _found_remotely(source: str) -> list[str]:
    files, path = file_system(source)
    if files.isdir(path):
        found = [name for name in files.find(path) if _is_named_like_a_trace(name)]
    elif "*" in path:
        found = files.glob(path)
    else:
        found = [path]
    return sorted(files.unstrip_protocol(name) for name in found)


def file_system(url: str) -> tuple[Any, str]:
    try:
        from fsspec.core import url_to_fs
    except ImportError as error:
        raise ImportError(f"{url}: install fsspec to read from URLs") from error
    files, path = url_to_fs(url)
    return files, path


def _is_named_like_a_trace(path: str) -> bool:
    name = os.path.basename(path).lower()
    for ending in _COMPRESSIONS:
        name = name.removesuffix(ending)
    return name.endswith(_ENDINGS)


def summarized_bytes(source: str) -> bytes:
    if "://" not in source:
        return _core.summarize_rank(source)
    files, path = file_system(source)
    return _core.summarize_rank_bytes(files.cat_file(path), source)
