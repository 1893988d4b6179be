"""Energy: counters where they can be read and believed, else core-seconds times watts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from graftwork.config import Prices
from graftwork.core.meter import Cost, Phase, Readings
from graftwork.meters import energy_joules
from graftwork.registry import meters

RANGE = 262_143_000_000  # microjoules at which a counter starts again
SPENT = Readings(phases={"load": Phase(1, 1), "fit": Phase(4, 7)})  # 8 core-seconds
CHARGED = Readings(phases=SPENT.phases, charged=Phase(2, 4))
TOTAL = {"total_seconds": Cost(5.0, "s", "meter")}


@pytest.fixture
def powercap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The counters of a machine with one package: its cores and its memory, and the platform that holds all."""
    monkeypatch.setattr(energy_joules, "POWERCAP", tmp_path)
    zones = (("0", "package-0"), ("0:0", "core"), ("0:1", "dram"), ("1", "psys"))
    for number, name in zones:
        zone = tmp_path / f"intel-rapl:{number}"
        zone.mkdir()
        (zone / "name").write_text(name + "\n")
        (zone / "max_energy_range_uj").write_text(f"{RANGE}\n")
        count(tmp_path, number, 1_000_000)
    return tmp_path


def count(powercap: Path, number: str, microjoules: int) -> None:
    (powercap / f"intel-rapl:{number}" / "energy_uj").write_text(f"{microjoules}\n")


def spend(powercap: Path) -> None:
    """40 J in the package, 30 of them in its cores, and 2 J in memory."""
    for number, joules in (("0", 40), ("0:0", 30), ("0:1", 2), ("1", 60)):
        count(powercap, number, 1_000_000 + joules * 1_000_000)


def read(
    mark: energy_joules.Mark | energy_joules.EnergyDrawn, readings: Readings = SPENT, prices: Prices | None = None
) -> Cost:
    return meters.get("energy_joules")().end(mark, readings, TOTAL, prices or Prices())


def test_packages_and_memory_are_added_and_nothing_twice(powercap: Path) -> None:
    mark = meters.get("energy_joules")().begin()
    spend(powercap)
    assert read(mark) == Cost(42.0, "J", "counter")


def test_what_is_drawn_after_the_work_has_ended_is_not_counted(powercap: Path) -> None:
    meter = meters.get("energy_joules")()
    mark = meter.begin()
    spend(powercap)
    ended = meter.stop(mark)
    count(powercap, "0", 900_000_000)
    assert read(ended) == Cost(42.0, "J", "counter") and read(ended, CHARGED) == Cost(63.0, "J", "model")
    assert read(meter.stop(mark)) == Cost(901.0, "J", "counter"), "the last stop counts"
    (powercap / "intel-rapl:0" / "energy_uj").unlink()
    assert read(ended).grade == "counter" and read(meter.stop(mark)).grade == "guess"


def test_charged_work_is_scaled_in_by_core_seconds(powercap: Path) -> None:
    mark = meters.get("energy_joules")().begin()
    spend(powercap)
    assert read(mark, CHARGED) == Cost(63.0, "J", "model")  # 42 x 12 / 8


def test_a_test_pass_of_an_earlier_run_is_scaled_in_and_not_taken_as_measured(powercap: Path) -> None:
    mark = meters.get("energy_joules")().begin()
    spend(powercap)
    assert read(mark, replace(SPENT, charged_evaluate=Phase(2, 4))) == Cost(63.0, "J", "model")  # 42 x 12 / 8
    assert read(mark, replace(CHARGED, charged_evaluate=Phase(1, 4))) == Cost(84.0, "J", "model")  # 42 x 16 / 8


def test_what_was_loaded_before_the_counters_were_read_is_scaled_in(powercap: Path) -> None:
    mark = meters.get("energy_joules")().begin()
    spend(powercap)
    assert read(mark, replace(SPENT, loaded_before=True)) == Cost(48.0, "J", "model")  # 42 x 8 / 7
    assert read(mark, replace(CHARGED, loaded_before=True)) == Cost(72.0, "J", "model")  # 42 x 12 / 7
    fit = Readings(phases={"fit": Phase(4, 7)}, loaded_before=True)
    assert read(mark, fit) == Cost(42.0, "J", "counter")


def test_of_what_runs_side_by_side_drew_each_bears_its_part(powercap: Path) -> None:
    mark = meters.get("energy_joules")().begin()
    spend(powercap)
    assert read(mark, replace(SPENT, runs_at_once=2)) == Cost(21.0, "J", "model")
    assert read(mark, replace(CHARGED, runs_at_once=2)) == Cost(31.5, "J", "model")  # 21 x 12 / 8


def test_a_counter_that_starts_again(powercap: Path) -> None:
    count(powercap, "0", RANGE - 3_000_000)
    mark = meters.get("energy_joules")().begin()
    count(powercap, "0", 5_000_000)
    assert read(mark) == Cost(8.0, "J", "counter")


def test_a_window_in_which_a_counter_may_have_started_twice_is_not_believed(powercap: Path) -> None:
    began, zones = meters.get("energy_joules")().begin()
    spend(powercap)
    longest = RANGE / 1e6 / energy_joules.MOST_WATTS
    assert read((began - 0.9 * longest, zones)).grade == "counter"
    assert read((began - longest, zones)).grade == "guess"


@pytest.mark.parametrize("missing", ["energy_uj", "name", "max_energy_range_uj"])
def test_counters_that_cannot_all_be_read_are_not_used(powercap: Path, missing: str) -> None:
    (powercap / "intel-rapl:0:1" / missing).unlink()
    assert read(meters.get("energy_joules")().begin()).grade == "guess"


def test_without_counters_core_seconds_times_watts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(energy_joules, "POWERCAP", tmp_path)
    mark = meters.get("energy_joules")().begin()
    assert read(mark) == Cost(80.0, "J", "guess")  # 10 W x 8 core-seconds
    assert read(mark, CHARGED) == Cost(120.0, "J", "guess")
    assert read(mark, SPENT, Prices(watts_per_core=5, idle_watts=3)) == Cost(55.0, "J", "guess")  # 5 x 8 + 3 x 5
