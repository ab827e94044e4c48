"""Checks that traces tell the properties of the devices that were recorded."""

from __future__ import annotations

import json
import sys
from types import SimpleNamespace

import pytest
from mindprof._profiler.metadata import device_properties


def stand_in(is_initialized: bool) -> SimpleNamespace:
    """Returns what stands for torch with one device."""
    properties = SimpleNamespace(
        name="NVIDIA H200", major=9, minor=0, total_memory=150109880320, multi_processor_count=132
    )
    return SimpleNamespace(
        cuda=SimpleNamespace(
            is_initialized=lambda: is_initialized,
            device_count=lambda: 1,
            get_device_properties=lambda _: properties,
        )
    )


def test_devices_are_described_with_torchs_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", stand_in(is_initialized=True))
    found = json.loads(device_properties() or "")
    assert found == [
        {
            "id": 0,
            "name": "NVIDIA H200",
            "totalGlobalMem": 150109880320,
            "computeMajor": 9,
            "computeMinor": 0,
            "numSms": 132,
        }
    ]


def test_a_program_without_cuda_is_not_made_to_initialize_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "torch", stand_in(is_initialized=False))
    assert device_properties() is None
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace())
    assert device_properties() is None
    monkeypatch.delitem(sys.modules, "torch")
    assert device_properties() is None
