"""Switches of the whole process that torch's native side has, for what traces hold."""

from __future__ import annotations

from mindprof import _core

_forward_arrows = True


def _set_record_concrete_inputs_enabled_val(value: bool) -> None:
    """Says whether the values of lists are recorded with the shapes from now on."""
    _core.set_list_values_recorded(bool(value))


def _set_fwd_bwd_enabled_val(value: bool) -> None:
    """Says whether traces have arrows from forward operators to their backward nodes."""
    global _forward_arrows
    _forward_arrows = bool(value)


def forward_arrows() -> bool:
    """Returns whether traces have arrows from forward operators to their backward nodes."""
    return _forward_arrows
