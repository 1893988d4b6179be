"""The contract of a meter: its prerequisites, and the unit, grade and value of its cost."""

from __future__ import annotations

import math
from dataclasses import asdict

from graftwork.config import Prices
from graftwork.core.meter import GRADES, Cost, Phase, Readings, Stops
from graftwork.registry import meters
from graftwork.testing.require import require

UNITS = ("s", "parameters", "bytes", "FLOP", "J", "g", "per second")


def check_meter(name: str) -> None:
    """Check what every meter must do, on a run and a run that failed at once, with and without a price list.

    Raises `AssertionError`.
    """
    meter = meters.get(name)()
    missing = [need for need in meter.needs if need not in meters.names()]
    require(not missing and name not in meter.needs, f"needs {missing or name}, which nothing before it measures")
    listed = Prices(currency="EUR", per_hour=1.0, grams_per_kwh=300.0)
    phases = {phase: Phase(2.0, 3.0) for phase in ("load", "fit", "evaluate", "save")}
    run = Readings(phases, Phase(1.0, 1.0), 10, 12, 480, 1e9, "counter", 1e7, 1e6, "counter", 0.01, 90.0)
    for readings in (run, Readings()):
        for prices in (listed, Prices()):
            before = asdict(readings)
            costs = {need: Cost(1.0, "s", "meter") for need in meter.needs}
            mark = meter.begin()
            for given in (mark, meter.stop(mark)) if isinstance(meter, Stops) else (mark,):
                _check_cost(meter.end(given, readings, costs, prices), prices)
            require(asdict(readings) == before, "the meter changed the readings")


def _check_cost(cost: Cost, prices: Prices) -> None:
    require(cost.grade in GRADES, f"grade {cost.grade!r} is none of {', '.join(GRADES)}")
    require(cost.unit in (*UNITS, prices.currency), f"unit {cost.unit!r} is none of {', '.join(UNITS)}")
    if cost.value is not None:
        require(bool(cost.unit), "a cost has a value and no unit")
        require(math.isfinite(cost.value) and cost.value >= 0, f"the cost is {cost.value}")
