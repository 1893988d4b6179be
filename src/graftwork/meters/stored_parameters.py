"""Parameters stored in the task module."""

from __future__ import annotations

from graftwork.config import Prices
from graftwork.core.meter import Cost, Readings
from graftwork.registry import meters


@meters.register("stored_parameters")
class StoredParameters:
    """Parameters that one more task adds to a bank, without the shared backbone."""

    needs: tuple[str, ...] = ()

    def begin(self) -> None:
        """Do nothing: no state is needed."""

    def end(self, mark: None, readings: Readings, costs: dict[str, Cost], prices: Prices) -> Cost:
        """Return the cost in parameters."""
        return Cost(readings.stored_parameters, "parameters", "counter")
