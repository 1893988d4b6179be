"""Latency of one prediction, in seconds."""

from __future__ import annotations

from graftwork.config import Prices
from graftwork.core.meter import Cost, Meaning, Readings
from graftwork.registry import meters


@meters.register("predict_latency_seconds")
class PredictLatencySeconds:
    """Median seconds for one example in a batch of one, after warm-up."""

    needs: tuple[str, ...] = ()
    meaning = Meaning("latency")

    def begin(self) -> None:
        """Do nothing: no state is needed."""

    def end(self, mark: None, readings: Readings, costs: dict[str, Cost], prices: Prices) -> Cost:
        """Return the cost in seconds."""
        return Cost(readings.predict_latency_seconds, "s", "meter")
