"""Size of the task module on disk, in bytes: of the files that one more task adds to a bank."""

from __future__ import annotations

from graftwork.core.meter import Cost, Meaning, Readings, from_readings
from graftwork.registry import meters


@meters.register("stored_bytes")
@from_readings(Meaning("stored size", summed=True))
def cost(readings: Readings) -> Cost:
    """Return the cost in bytes."""
    return Cost(readings.stored_bytes, "bytes", "counter")
