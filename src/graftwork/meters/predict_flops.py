"""Floating-point operations of one prediction: multiplications and additions for one example of median length."""

from __future__ import annotations

from graftwork.core.meter import Cost, Meaning, Readings, from_readings
from graftwork.registry import meters


@meters.register("predict_flops")
@from_readings(Meaning("FLOP per prediction"))
def cost(readings: Readings) -> Cost:
    """Return the cost in floating-point operations."""
    return Cost(readings.predict_flops, "FLOP", readings.predict_flops_grade)
