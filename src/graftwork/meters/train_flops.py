"""Floating-point operations of training."""

from __future__ import annotations

from graftwork.config import Prices
from graftwork.core.meter import Cost, Meaning, Readings
from graftwork.registry import meters


@meters.register("train_flops")
class TrainFlops:
    """Number of multiplications and additions executed for training, padding included: 2 per multiply-add."""

    needs: tuple[str, ...] = ()
    meaning = Meaning("train FLOP", summed=True, shared=True)

    def begin(self) -> None:
        """Do nothing: no state is needed."""

    def end(self, mark: None, readings: Readings, costs: dict[str, Cost], prices: Prices) -> Cost:
        """Return the cost in floating-point operations."""
        return Cost(readings.train_flops, "FLOP", readings.train_flops_grade)
