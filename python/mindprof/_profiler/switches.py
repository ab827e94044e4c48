"""torch's process-wide switches for the contents of traces."""

from __future__ import annotations

from mindprof import _core

_forward_arrows = True


def _set_record_concrete_inputs_enabled_val(value: bool) -> None:
    """Sets whether the values of list inputs are recorded along with shapes."""
    _core.set_list_values_recorded(bool(value))


def _set_fwd_bwd_enabled_val(value: bool) -> None:
    """Sets whether traces have flow events from forward operators to their backward nodes."""
    global _forward_arrows
    _forward_arrows = bool(value)


def forward_arrows() -> bool:
    """Returns whether traces have flow events from forward operators to their backward nodes."""
    return _forward_arrows
