"""Floating-point operations of one prediction."""

from __future__ import annotations

from graftwork.config import Prices
from graftwork.core.meter import Cost, Meaning, Readings
from graftwork.registry import meters


@meters.register("predict_flops")
class PredictFlops:
    """Number of multiplications and additions for one example of median length."""

    needs: tuple[str, ...] = ()
    meaning = Meaning("FLOP per prediction")

    def begin(self) -> None:
        """Do nothing: no state is needed."""

    def end(self, mark: None, readings: Readings, costs: dict[str, Cost], prices: Prices) -> Cost:
        """Return the cost in floating-point operations."""
        return Cost(readings.predict_flops, "FLOP", readings.predict_flops_grade)
