"""Examples answered per second."""

from __future__ import annotations

from graftwork.config import Prices
from graftwork.core.meter import Cost, Readings
from graftwork.registry import meters


@meters.register("predict_per_second")
class PredictPerSecond:
    """Throughput over whole batches, after warming up. The one cost of which more is better."""

    needs: tuple[str, ...] = ()

    def begin(self) -> None:
        """Nothing to mark."""

    def end(self, mark: None, readings: Readings, costs: dict[str, Cost], prices: Prices) -> Cost:
        """The cost in examples per second."""
        return Cost(readings.predict_per_second, "per second", "meter")
