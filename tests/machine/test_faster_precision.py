"""Which precision is the faster one: measured once, kept, and the same for whoever asks later."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from graftwork.errors import StorageError
from graftwork.machine import faster_precision as module
from graftwork.machine.faster_precision import MeasuredRates, faster_precision, place_of, stored_rates

FP32, BF16 = MeasuredRates("fp32", {"fp32": 2e9, "bf16": 1e9}), MeasuredRates("bf16", {"fp32": 1e9, "bf16": 2e9})
MACHINE = {"processor": "one of its own", "torch": "9.9"}


class Measuring:
    """Finds what it is told to find, and counts how often it is asked."""

    def __init__(self) -> None:
        self.finds, self.asked = FP32, 0

    def __call__(self) -> MeasuredRates:
        self.asked += 1
        return self.finds


@pytest.fixture
def measuring(monkeypatch: pytest.MonkeyPatch) -> Measuring:
    made = Measuring()
    monkeypatch.setattr(module, "measure_rates", made)
    return made


def another_process() -> None:
    module._read_or_measure.cache_clear()


@pytest.mark.parametrize(
    ("fp32", "bf16", "faster"),
    [(2.0, 1.0, "fp32"), (1.15, 1.0, "fp32"), (1.14, 1.0, "bf16"), (1.0, 1.0, "bf16"), (1.0, 2.0, "bf16")],
)
def test_fp32_must_be_clearly_faster(fp32: float, bf16: float, faster: str) -> None:
    assert MeasuredRates.of({"fp32": fp32, "bf16": bf16}).precision == faster


def test_it_is_measured_once_for_all_processes(measuring: Measuring) -> None:
    assert stored_rates(MACHINE) is None
    assert [faster_precision(MACHINE) for _ in range(2)] == ["fp32", "fp32"] and measuring.asked == 1
    another_process()
    measuring.finds = BF16  # a near tie, or a busy moment
    assert faster_precision(MACHINE) == "fp32" and measuring.asked == 1
    assert stored_rates(MACHINE) == FP32


def test_another_machine_is_measured_for_itself(measuring: Measuring) -> None:
    faster_precision(MACHINE)
    measuring.finds = BF16
    assert faster_precision(MACHINE | {"torch": "10.0"}) == "bf16" and measuring.asked == 2
    assert faster_precision(MACHINE) == "fp32"


def test_a_removed_file_is_measured_anew(measuring: Measuring) -> None:
    faster_precision(MACHINE)
    place = place_of(MACHINE)
    assert place is not None
    place.unlink()
    another_process()
    measuring.finds = BF16
    assert faster_precision(MACHINE) == "bf16"


@pytest.mark.parametrize(
    "content",
    [
        "",
        "[]",
        "{}",
        '{"precision": "fp16", "flop_per_second": {"fp32": 1, "bf16": 2}}',
        '{"precision": "bf16", "flop_per_second": {"fp32": "fast", "bf16": 2}}',
        '{"precision": ["bf16"], "flop_per_second": {"fp32": 1, "bf16": 2}}',
        '{"precision": "bf16", "flop_per_second": {"fp32": 1}}',
    ],
)
def test_what_is_not_ours_is_measured_anew_and_mended(measuring: Measuring, content: str) -> None:
    place = place_of(MACHINE)
    assert place is not None
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(content)
    assert stored_rates(MACHINE) is None
    assert faster_precision(MACHINE) == "fp32" and stored_rates(MACHINE) == FP32


def test_a_folder_that_cannot_be_written_is_no_matter(
    measuring: Measuring, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capfd: Any
) -> None:
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("GRAFTWORK_CACHE", str(tmp_path / "file"))
    assert [faster_precision(MACHINE) for _ in range(2)] == ["fp32", "fp32"] and measuring.asked == 1
    another_process()
    measuring.finds = BF16
    assert faster_precision(MACHINE) == "bf16" and measuring.asked == 2
    assert capfd.readouterr() == ("", "") and [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_disk_that_is_full_is_no_matter(measuring: Measuring, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> None:
        raise StorageError("the disk is full")

    monkeypatch.setattr(module, "write_json", full)
    assert faster_precision(MACHINE) == "fp32" and measuring.asked == 1 and stored_rates(MACHINE) is None


def test_a_user_without_a_folder_measures_every_time(measuring: Measuring, monkeypatch: pytest.MonkeyPatch) -> None:
    def nowhere() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(module, "cache_folder", nowhere)
    another_process()
    assert (faster_precision(MACHINE), stored_rates(MACHINE), measuring.asked) == ("fp32", None, 1)
    another_process()


def test_of_two_processes_at_once_the_second_takes_what_the_first_found(
    measuring: Measuring, monkeypatch: pytest.MonkeyPatch
) -> None:
    @contextlib.contextmanager
    def held(lock: Path) -> Iterator[bool]:
        place = place_of(MACHINE)
        assert place is not None and lock.parent == place.parent
        place.write_text(json.dumps(asdict(BF16)))  # by who held the lock until now
        yield True

    monkeypatch.setattr(module, "hold_lock", held)
    assert faster_precision(MACHINE) == "bf16" and measuring.asked == 0
