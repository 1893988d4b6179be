"""Size of the task module on disk, in bytes."""

from __future__ import annotations

from graftwork.config import Prices
from graftwork.core.meter import Cost, Meaning, Readings
from graftwork.registry import meters


@meters.register("stored_bytes")
class StoredBytes:
    """Size of the files that one more task adds to a bank."""

    needs: tuple[str, ...] = ()
    meaning = Meaning("stored size", summed=True)

    def begin(self) -> None:
        """Do nothing: no state is needed."""

    def end(self, mark: None, readings: Readings, costs: dict[str, Cost], prices: Prices) -> Cost:
        """Return the cost in bytes."""
        return Cost(readings.stored_bytes, "bytes", "counter")
