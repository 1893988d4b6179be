"""Floating-point operations of training, padding included: 2 per multiply-add."""

from __future__ import annotations

from graftwork.core.meter import Cost, Meaning, Readings, from_readings
from graftwork.registry import meters


@meters.register("train_flops")
@from_readings(Meaning("train FLOP", summed=True, shared=True))
def cost(readings: Readings) -> Cost:
    """Return the cost in floating-point operations."""
    return Cost(readings.train_flops, "FLOP", readings.train_flops_grade)
