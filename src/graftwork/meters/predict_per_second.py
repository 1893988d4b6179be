"""Examples predicted per second."""

from __future__ import annotations

from graftwork.core.meter import Cost, FromReadings, Meaning, Readings
from graftwork.registry import meters


@meters.register("predict_per_second")
class PredictPerSecond(FromReadings):
    """Throughput over whole batches, after warm-up: the only line of a price tag that is not a price."""

    meaning = Meaning("predictions per second", more_is_better=True)

    def cost(self, readings: Readings) -> Cost:
        """Return the throughput in examples per second."""
        return Cost(readings.predict_per_second, "per second", "meter")
