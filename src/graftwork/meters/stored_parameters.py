"""Parameters stored in the task module."""

from __future__ import annotations

from graftwork.core.meter import Cost, FromReadings, Readings
from graftwork.registry import meters


@meters.register("stored_parameters")
class StoredParameters(FromReadings):
    """Parameters that one more task adds to a bank, without the shared backbone."""

    def cost(self, readings: Readings) -> Cost:
        """Return the cost in parameters."""
        return Cost(readings.stored_parameters, "parameters", "counter")
