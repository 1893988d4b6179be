"""Energy of the run: the processor's counters (RAPL) where readable, else core-seconds times watts."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

from graftwork.config import Prices
from graftwork.core.meter import Cost, Meaning, Phase, Readings
from graftwork.registry import meters

POWERCAP = Path("/sys/class/powercap")
MOST_WATTS = 500  # upper bound on the power of a zone (a socket or its memory), so on how fast its counter wraps round

Mark = tuple[float, dict[Path, int]]  # seconds on the monotonic clock, microjoules per zone


@dataclass(frozen=True)
class EnergyDrawn:
    """The energy from `begin` to the end of the run's work, by the counters."""

    joules: float | None  # None: no counters, see `joules_since`


@meters.register("energy_joules")
class EnergyJoules:
    """Energy of all phases, plus that of shared work that the run alone would have had to do."""

    needs: tuple[str, ...] = ("total_seconds",)
    meaning = Meaning("energy", summed=True, shared=True)

    def begin(self) -> Mark:
        """Read the clock and the counters."""
        return time.monotonic(), read_zones()

    def stop(self, mark: Mark) -> EnergyDrawn:
        """Return the energy since `begin`; the measurement of prediction speed, which follows, is excluded."""
        return EnergyDrawn(joules_since(mark))

    def end(self, mark: Mark | EnergyDrawn, readings: Readings, costs: dict[str, Cost], prices: Prices) -> Cost:
        """Return the cost in joules. Its grade is "counter" if read from the counters, "model" if scaled up for earlier
        or charged work or divided among concurrent runs, and "guess" without counters.
        """
        spent = sum(phase.cpu_seconds for phase in readings.phases.values())
        charged = readings.charged.cpu_seconds + readings.charged_evaluate.cpu_seconds
        loaded = readings.phases.get("load", Phase()).cpu_seconds if readings.loaded_before else 0.0
        counted, measured = spent - loaded, mark.joules if isinstance(mark, EnergyDrawn) else joules_since(mark)
        if measured is not None and charged == loaded == 0 and readings.runs_at_once == 1:
            return Cost(measured, "J", "counter")
        if measured is not None and counted > 0:
            return Cost(measured / readings.runs_at_once * (spent + charged) / counted, "J", "model")
        idle = prices.idle_watts * (costs["total_seconds"].value or 0.0)
        return Cost(prices.watts_per_core * (spent + charged) + idle, "J", "guess")


def read_zones() -> dict[Path, int]:
    """Read the microjoules so far of every processor package and its memory; empty unless all are readable.

    Zones inside a package (core, uncore) and "psys", which includes all packages, would be counted twice.
    """
    counters = {}
    try:
        for zone in sorted(POWERCAP.glob("intel-rapl:*")):
            name = (zone / "name").read_text().strip()
            if name == "dram" or name.startswith("package"):
                counters[zone] = int((zone / "energy_uj").read_text())
    except (OSError, ValueError):
        return {}
    return counters


def joules_since(mark: Mark) -> float | None:
    """Return the joules since `mark`; None without counters, or when one may have wrapped round more than once."""
    began, before = mark
    after = read_zones()
    if not before or after.keys() != before.keys():
        return None
    microjoules = 0
    for zone, start in before.items():
        try:
            wraps_at = int((zone / "max_energy_range_uj").read_text())
        except (OSError, ValueError):
            return None
        if (time.monotonic() - began) * MOST_WATTS * 1e6 > wraps_at:
            return None
        rise = after[zone] - start
        microjoules += rise if rise >= 0 else rise + wraps_at
    return microjoules / 1e6
