"""Wall-clock seconds of the whole run, and of shared work that it alone would have had to do."""

from __future__ import annotations

from graftwork.core.meter import Cost, Meaning, Readings, from_readings
from graftwork.registry import meters


@meters.register("total_seconds")
@from_readings(Meaning("total time", shared=True))
def cost(readings: Readings) -> Cost:
    """Return the cost in seconds."""
    spent = sum(phase.wall_seconds for phase in readings.phases.values())
    charged = readings.charged.wall_seconds + readings.charged_evaluate.wall_seconds
    return Cost(spent + charged, "s", "meter")
