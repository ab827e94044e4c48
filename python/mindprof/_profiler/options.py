"""What a recording is asked for, in one object that goes to the engine as it is."""

from __future__ import annotations

from dataclasses import dataclass

DEFAULT_BUDGET_BYTES = 256 << 20
DEFAULT_STACK_DEPTH = 1000


@dataclass(frozen=True)
class SessionOptions:
    """The options of one recording. The engine reads the attributes that it knows.

    Args:
        record_shapes: Keep the shapes of what operators are given.
        profile_memory: Record what memory operators take and give back.
        with_stack: Record Python calls, and by whom operators are called.
        results: Keep what operators return, for execution traces.
        with_flops: Estimate floating-point operations, from shapes.
        with_modules: Record calls of modules; `with_stack` does so too.
        budget_bytes: How much memory the recording may take.
        stack_depth: How many calls deep Python is followed.
        source_roots: What the names of source files are shortened by.
    """

    record_shapes: bool = False
    profile_memory: bool = False
    with_stack: bool = False
    with_flops: bool = False
    results: bool = False
    with_modules: bool = False
    budget_bytes: int = DEFAULT_BUDGET_BYTES
    stack_depth: int = DEFAULT_STACK_DEPTH
    source_roots: tuple[str, ...] = ()
