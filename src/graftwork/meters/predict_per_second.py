"""Examples predicted per second."""

from __future__ import annotations

from graftwork.config import Prices
from graftwork.core.meter import Cost, Meaning, Readings
from graftwork.registry import meters


@meters.register("predict_per_second")
class PredictPerSecond:
    """Throughput over whole batches, after warm-up: the only line of a price tag that is not a price."""

    needs: tuple[str, ...] = ()
    meaning = Meaning("predictions per second", more_is_better=True)

    def begin(self) -> None:
        """Do nothing: no state is needed."""

    def end(self, mark: None, readings: Readings, costs: dict[str, Cost], prices: Prices) -> Cost:
        """Return the throughput in examples per second."""
        return Cost(readings.predict_per_second, "per second", "meter")
