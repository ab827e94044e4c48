"""What a recording is asked for, in one object that goes to the engine as it is."""

from __future__ import annotations

from dataclasses import dataclass

DEFAULT_BUDGET_BYTES = 256 << 20


@dataclass(frozen=True)
class SessionOptions:
    """The options of one recording. The engine reads the attributes that it knows.

    Args:
        record_shapes: Keep the shapes of what operators are given.
        profile_memory: Record what memory operators take and give back.
        with_stack: Record Python calls. Without effect so far.
        with_flops: Estimate floating-point operations, from shapes.
        with_modules: Without effect, as in torch without TorchScript.
        budget_bytes: How much memory the recording may take.
    """

    record_shapes: bool = False
    profile_memory: bool = False
    with_stack: bool = False
    with_flops: bool = False
    with_modules: bool = False
    budget_bytes: int = DEFAULT_BUDGET_BYTES
