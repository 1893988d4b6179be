"""Floating-point operations of training spent on padding."""

from __future__ import annotations

from graftwork.config import Prices
from graftwork.core.meter import Cost, Meaning, Readings
from graftwork.registry import meters


@meters.register("padding_flops")
class PaddingFlops:
    """The part of `train_flops` spent on positions without a token."""

    needs: tuple[str, ...] = ()
    meaning = Meaning("train FLOP on padding")

    def begin(self) -> None:
        """Do nothing: no state is needed."""

    def end(self, mark: None, readings: Readings, costs: dict[str, Cost], prices: Prices) -> Cost:
        """Return the cost in floating-point operations."""
        return Cost(readings.padding_flops, "FLOP", readings.train_flops_grade)
