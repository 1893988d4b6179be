"""Seconds from one example to its answer."""

from __future__ import annotations

from graftwork.config import Prices
from graftwork.core.meter import Cost, Meaning, Readings
from graftwork.registry import meters


@meters.register("predict_latency_seconds")
class PredictLatencySeconds:
    """Median seconds for one example in a batch of one, after warming up."""

    needs: tuple[str, ...] = ()
    meaning = Meaning("latency")

    def begin(self) -> None:
        """Nothing to mark."""

    def end(self, mark: None, readings: Readings, costs: dict[str, Cost], prices: Prices) -> Cost:
        """The cost in seconds."""
        return Cost(readings.predict_latency_seconds, "s", "meter")
