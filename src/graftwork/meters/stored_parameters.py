"""Parameters stored in the task module: what one more task adds to a bank, without the shared backbone."""

from __future__ import annotations

from graftwork.core.meter import Cost, Readings, from_readings
from graftwork.registry import meters


@meters.register("stored_parameters")
@from_readings()
def cost(readings: Readings) -> Cost:
    """Return the cost in parameters."""
    return Cost(readings.stored_parameters, "parameters", "counter")
