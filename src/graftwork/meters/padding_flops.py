"""Floating-point operations of training spent on padding."""

from __future__ import annotations

from graftwork.core.meter import Cost, FromReadings, Meaning, Readings
from graftwork.registry import meters


@meters.register("padding_flops")
class PaddingFlops(FromReadings):
    """The part of `train_flops` spent on positions without a token."""

    meaning = Meaning("train FLOP on padding")

    def cost(self, readings: Readings) -> Cost:
        """Return the cost in floating-point operations."""
        return Cost(readings.padding_flops, "FLOP", readings.train_flops_grade)
