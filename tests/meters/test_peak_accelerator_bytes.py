"""Peak memory of the GPU: unknown where none is used, and what torch's allocator says where one is."""

from __future__ import annotations

import pytest
import torch

from graftwork.config import Prices
from graftwork.core.meter import Cost, Readings
from graftwork.registry import meters


def measured() -> Cost:
    meter = meters.get("peak_accelerator_bytes")()
    return meter.end(meter.begin(), Readings(), {}, Prices())


def test_no_gpu_in_use_is_unknown_and_starts_none(monkeypatch: pytest.MonkeyPatch) -> None:
    def start(*words: object) -> None:
        raise AssertionError("CUDA was asked")

    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: False)
    for name in ("reset_peak_memory_stats", "max_memory_allocated", "_lazy_init"):
        monkeypatch.setattr(torch.cuda, name, start)
    assert measured() == Cost(None, "bytes", "counter")


def test_the_mark_is_brought_down_when_the_run_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    peak = [5_000]
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.cuda, "reset_peak_memory_stats", lambda: peak.__setitem__(0, 70))
    monkeypatch.setattr(torch.cuda, "max_memory_allocated", lambda: peak[0])
    assert measured() == Cost(70, "bytes", "counter")
    meter = meters.get("peak_accelerator_bytes")()
    stopped = meter.stop(meter.begin())
    peak[0] = 5_000  # by what comes after the last phase
    assert meter.end(stopped, Readings(), {}, Prices()) == Cost(70, "bytes", "counter")
