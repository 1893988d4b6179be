"""Latency of one prediction, in seconds."""

from __future__ import annotations

from graftwork.core.meter import Cost, FromReadings, Meaning, Readings
from graftwork.registry import meters


@meters.register("predict_latency_seconds")
class PredictLatencySeconds(FromReadings):
    """Median seconds for one example in a batch of one, after warm-up."""

    meaning = Meaning("latency")

    def cost(self, readings: Readings) -> Cost:
        """Return the cost in seconds."""
        return Cost(readings.predict_latency_seconds, "s", "meter")
