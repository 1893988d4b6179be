"""Wall-clock seconds of training, and of shared work that the run alone would have had to do."""

from __future__ import annotations

from graftwork.core.meter import Cost, Meaning, Phase, Readings, from_readings
from graftwork.registry import meters


@meters.register("train_seconds")
@from_readings(Meaning("train time", summed=True))
def cost(readings: Readings) -> Cost:
    """Return the cost in seconds."""
    return Cost(readings.phases.get("fit", Phase()).wall_seconds + readings.charged.wall_seconds, "s", "meter")
