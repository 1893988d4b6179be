"""Size of the task module on disk, in bytes."""

from __future__ import annotations

from graftwork.core.meter import Cost, FromReadings, Meaning, Readings
from graftwork.registry import meters


@meters.register("stored_bytes")
class StoredBytes(FromReadings):
    """Size of the files that one more task adds to a bank."""

    meaning = Meaning("stored size", summed=True)

    def cost(self, readings: Readings) -> Cost:
        """Return the cost in bytes."""
        return Cost(readings.stored_bytes, "bytes", "counter")
