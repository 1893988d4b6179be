"""Examples predicted per second in whole batches, after warm-up: the only line of a price tag that is not a price."""

from __future__ import annotations

from graftwork.core.meter import Cost, Meaning, Readings, from_readings
from graftwork.registry import meters


@meters.register("predict_per_second")
@from_readings(Meaning("predictions per second", more_is_better=True))
def cost(readings: Readings) -> Cost:
    """Return the throughput in examples per second."""
    return Cost(readings.predict_per_second, "per second", "meter")
