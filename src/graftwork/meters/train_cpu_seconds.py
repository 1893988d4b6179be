"""Processor seconds of training, summed over cores, and of shared work that the run alone would have had to do."""

from __future__ import annotations

from graftwork.core.meter import Cost, Meaning, Phase, Readings, from_readings
from graftwork.registry import meters


@meters.register("train_cpu_seconds")
@from_readings(Meaning("train processor time"))
def cost(readings: Readings) -> Cost:
    """Return the cost in core-seconds."""
    return Cost(readings.phases.get("fit", Phase()).cpu_seconds + readings.charged.cpu_seconds, "s", "counter")
