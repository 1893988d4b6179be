"""Parameters that the task module keeps."""

from __future__ import annotations

from graftwork.config import Prices
from graftwork.core.meter import Cost, Readings
from graftwork.registry import meters


@meters.register("stored_parameters")
class StoredParameters:
    """Numbers that one more task adds to a bank; the shared backbone is not among them."""

    needs: tuple[str, ...] = ()

    def begin(self) -> None:
        """Nothing to mark."""

    def end(self, mark: None, readings: Readings, costs: dict[str, Cost], prices: Prices) -> Cost:
        """The cost in parameters."""
        return Cost(readings.stored_parameters, "parameters", "counter")
