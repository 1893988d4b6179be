"""Floating-point operations of training."""

from __future__ import annotations

from graftwork.core.meter import Cost, FromReadings, Meaning, Readings
from graftwork.registry import meters


@meters.register("train_flops")
class TrainFlops(FromReadings):
    """Number of multiplications and additions executed for training, padding included: 2 per multiply-add."""

    meaning = Meaning("train FLOP", summed=True, shared=True)

    def cost(self, readings: Readings) -> Cost:
        """Return the cost in floating-point operations."""
        return Cost(readings.train_flops, "FLOP", readings.train_flops_grade)
