"""Bytes that the task module takes on disk."""

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
        """Nothing to mark."""

    def end(self, mark: None, readings: Readings, costs: dict[str, Cost], prices: Prices) -> Cost:
        """The cost in bytes."""
        return Cost(readings.stored_bytes, "bytes", "counter")
