"""Parameters that training may change."""

from __future__ import annotations

from graftwork.config import Prices
from graftwork.core.meter import Cost, Meaning, Readings
from graftwork.registry import meters


@meters.register("trained_parameters")
class TrainedParameters:
    """Parameters given to the optimiser, or fitted, including the head."""

    needs: tuple[str, ...] = ()
    meaning = Meaning(summed=True)

    def begin(self) -> None:
        """Do nothing: no state is needed."""

    def end(self, mark: None, readings: Readings, costs: dict[str, Cost], prices: Prices) -> Cost:
        """Return the cost in parameters."""
        return Cost(readings.trained_parameters, "parameters", "counter")
