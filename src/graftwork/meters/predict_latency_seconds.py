"""Latency of one prediction: median seconds for one example in a batch of one, after warm-up."""

from __future__ import annotations

from graftwork.core.meter import Cost, Meaning, Readings, from_readings
from graftwork.registry import meters


@meters.register("predict_latency_seconds")
@from_readings(Meaning("latency"))
def cost(readings: Readings) -> Cost:
    """Return the cost in seconds."""
    return Cost(readings.predict_latency_seconds, "s", "meter")
