"""Parameters that training may change."""

from __future__ import annotations

from graftwork.core.meter import Cost, FromReadings, Meaning, Readings
from graftwork.registry import meters


@meters.register("trained_parameters")
class TrainedParameters(FromReadings):
    """Parameters given to the optimiser, or fitted, including the head."""

    meaning = Meaning(summed=True)

    def cost(self, readings: Readings) -> Cost:
        """Return the cost in parameters."""
        return Cost(readings.trained_parameters, "parameters", "counter")
