"""Peak memory: allocations made and freed during the run are seen, earlier ones are not."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from graftwork.config import Prices
from graftwork.core.meter import Cost, Readings
from graftwork.meters import peak_memory_bytes
from graftwork.registry import meters

MEGABYTES_64 = 64_000_000


def read(mark: bool) -> Cost:
    return meters.get("peak_memory_bytes")().end(mark, Readings(), {}, Prices())


def begin() -> bool:
    mark: bool = meters.get("peak_memory_bytes")().begin()
    if not mark:
        pytest.skip("this system does not let a process reset its high-water mark")
    return mark


def touch(size: int) -> None:
    """Hold `size` bytes for a moment; a page counts once it has been written."""
    np.ones(size, dtype=np.uint8).sum()


def test_a_passing_allocation_is_seen() -> None:
    mark = begin()
    before = read(mark).value
    touch(MEGABYTES_64)
    after = read(mark)
    assert before is not None and after.value is not None
    assert after.value - before == pytest.approx(MEGABYTES_64, rel=0.04)
    assert (after.unit, after.grade) == ("bytes", "counter")


def test_an_allocation_before_the_run_is_not() -> None:
    begin()
    touch(MEGABYTES_64)
    peak = read(True).value
    after = read(begin()).value
    assert peak is not None and after is not None
    assert peak - after > 0.9 * MEGABYTES_64


def test_what_comes_after_the_last_phase_is_not() -> None:
    meter = meters.get("peak_memory_bytes")()
    stopped = meter.stop(begin())
    touch(MEGABYTES_64)
    assert meter.end(stopped, Readings(), {}, Prices()) == stopped and stopped.grade == "counter"


def test_without_a_reset_the_life_of_the_process_counts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(peak_memory_bytes, "RESET", tmp_path / "no" / "clear_refs")
    meter = meters.get("peak_memory_bytes")()
    mark = meter.begin()
    assert mark is False
    cost = meter.end(mark, Readings(), {}, Prices())
    assert cost.grade == "model" and cost.value is not None
    assert 10e6 < cost.value < 100e9  # bytes, not kibibytes


def test_without_proc_the_peak_is_graded_model(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(peak_memory_bytes, "STATUS", tmp_path / "status")
    assert read(True).grade == "model"


def test_kibibytes_of_the_kernel_become_bytes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    status = tmp_path / "status"
    status.write_text("Name:\tpython\nVmPeak:\t  9000 kB\nVmHWM:\t    2000 kB\nVmRSS:\t 1000 kB\n")
    monkeypatch.setattr(peak_memory_bytes, "STATUS", status)
    assert read(True) == Cost(2_048_000, "bytes", "counter")
