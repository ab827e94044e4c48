"""Reads the user's own source files, so that results can name functions and show lines."""

from __future__ import annotations

import ast
import os
import sys
import tokenize
from collections.abc import Iterable, Iterator

#: A file as the engine takes it: its name in frames, its functions (first line, last line, name
#: with the classes and functions around it), and its lines.
Source = tuple[str, list[tuple[int, int, str]], list[str]]

#: The largest number of files to read, and the largest file: reading must not delay the end.
_FILES = 200
_BYTES = 2_000_000

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def read_sources(names: Iterable[str], since: float) -> tuple[list[Source], set[str]]:
    """Reads the files that frames refer to by these names, as far as they can be found.

    Args:
        names: Names as in frames: absolute, or relative to a folder that modules come from.
        since: The time at which the program began. A file that changed since then has other lines
            than those that ran.

    Returns:
        The files, and the names of those that changed.
    """
    found, changed = [], set()
    for name in list(names)[:_FILES]:
        path = _path_of(name)
        if path is not None and _is_changed(path, since):
            changed.add(name)
            continue
        source = None if path is None else _read(name, path)
        if source is not None:
            found.append(source)
    return found, changed


def _is_changed(path: str, since: float) -> bool:
    try:
        return os.path.getmtime(path) > since
    except OSError:
        return False


def _path_of(name: str) -> str | None:
    for folder in ("", *sys.path):
        path = os.path.join(folder, name)
        if os.path.isfile(path):
            return path
    return None


def _read(name: str, path: str) -> Source | None:
    try:
        if os.path.getsize(path) > _BYTES:
            return None
        with tokenize.open(path) as file:
            text = file.read()
        tree = ast.parse(text)
    except (OSError, SyntaxError, ValueError, RecursionError):
        return None
    return name, list(_functions(tree, "")), text.splitlines()


def _functions(node: ast.AST, around: str) -> Iterator[tuple[int, int, str]]:
    for child in ast.iter_child_nodes(node):
        inner = around
        if isinstance(child, (*_FUNCTIONS, ast.ClassDef)):
            inner = f"{around}{child.name}."
        if isinstance(child, _FUNCTIONS):
            first = min([child.lineno, *(one.lineno for one in child.decorator_list)])
            yield first, child.end_lineno or child.lineno, f"{around}{child.name}"
        yield from _functions(child, inner)
