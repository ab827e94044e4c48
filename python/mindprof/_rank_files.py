"""Finds the files of a job and reads them, on this machine or on an object store.

Object stores are read through `fsspec`, if it is installed.
"""

from __future__ import annotations

import os
from typing import Any

from mindprof import _core


def found_files(source: str) -> list[str]:
    if "://" in source:
        found = _found_remotely(source)
    elif os.path.isdir(source):
        found = [os.fspath(path) for path in _core.list_rank_files(source)]
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
        # Folders above the source may be hidden.
        inner = {name[len(path) :].strip("/"): name for name in files.find(path)}
        found = [inner[os.fspath(part)] for part in _core.choose_rank_files([*inner])]
    elif "*" in path:
        # As in a shell, a star at the beginning of a name matches no hidden file.
        hidden = os.path.basename(path).startswith(".")
        found = [
            name
            for name in files.glob(path)
            if hidden or not os.path.basename(name).startswith(".")
        ]
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


def summarized_bytes(source: str) -> bytes:
    if "://" not in source:
        return _core.summarize_rank(source)
    files, path = file_system(source)
    return _core.summarize_rank_bytes(files.cat_file(path), source)
