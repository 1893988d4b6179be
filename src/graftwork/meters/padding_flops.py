"""Floating-point operations of training spent on padding: the part of `train_flops` at positions without a token."""

from __future__ import annotations

from graftwork.core.meter import Cost, Meaning, Readings, from_readings
from graftwork.registry import meters


@meters.register("padding_flops")
@from_readings(Meaning("train FLOP on padding"))
def cost(readings: Readings) -> Cost:
    """Return the cost in floating-point operations."""
    return Cost(readings.padding_flops, "FLOP", readings.train_flops_grade)
