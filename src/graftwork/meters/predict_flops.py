"""Floating-point operations of one prediction."""

from __future__ import annotations

from graftwork.core.meter import Cost, FromReadings, Meaning, Readings
from graftwork.registry import meters


@meters.register("predict_flops")
class PredictFlops(FromReadings):
    """Number of multiplications and additions for one example of median length."""

    meaning = Meaning("FLOP per prediction")

    def cost(self, readings: Readings) -> Cost:
        """Return the cost in floating-point operations."""
        return Cost(readings.predict_flops, "FLOP", readings.predict_flops_grade)
