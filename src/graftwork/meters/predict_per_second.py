"""Examples answered per second."""

from __future__ import annotations

from graftwork.config import Prices
from graftwork.core.meter import Cost, Meaning, Readings
from graftwork.registry import meters


@meters.register("predict_per_second")
class PredictPerSecond:
    """Throughput over whole batches, after warming up: the one line of a price tag that is not a price."""

    needs: tuple[str, ...] = ()
    meaning = Meaning("predictions per second", more_is_better=True)

    def begin(self) -> None:
        """Nothing to mark."""

    def end(self, mark: None, readings: Readings, costs: dict[str, Cost], prices: Prices) -> Cost:
        """The cost in examples per second."""
        return Cost(readings.predict_per_second, "per second", "meter")
