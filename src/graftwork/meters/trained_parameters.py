"""Parameters that training may change: given to the optimiser, or fitted, including the head."""

from __future__ import annotations

from graftwork.core.meter import Cost, Meaning, Readings, from_readings
from graftwork.registry import meters


@meters.register("trained_parameters")
@from_readings(Meaning(summed=True))
def cost(readings: Readings) -> Cost:
    """Return the cost in parameters."""
    return Cost(readings.trained_parameters, "parameters", "counter")
