"""Cost of the run in money by the user's dated price list: machine-hours or electricity."""

from __future__ import annotations

from graftwork.config import JOULES_PER_KWH, Prices
from graftwork.core.meter import GRADES, Cost, Meaning, Readings
from graftwork.registry import meters

SECONDS_PER_HOUR = 3600


@meters.register("money")
class Money:
    """Hours x price of the machine, or kWh x PUE x tariff; blank without a price list."""

    needs: tuple[str, ...] = ("total_seconds", "energy_joules")
    meaning = Meaning(shared=True, of_prices=True)

    def begin(self) -> None:
        """Do nothing: no state is needed."""

    def end(self, mark: None, readings: Readings, costs: dict[str, Cost], prices: Prices) -> Cost:
        """Return the cost in the price list's currency, of grade "model", or that of its time or energy if lower."""
        if prices.per_hour is not None:
            source, per_unit = costs["total_seconds"], prices.per_hour / SECONDS_PER_HOUR
        elif prices.per_kwh is not None:
            source, per_unit = costs["energy_joules"], prices.per_kwh * prices.pue / JOULES_PER_KWH
        else:
            return Cost(None, prices.currency, "model")
        grade = max("model", source.grade, key=GRADES.index)
        return Cost(None if source.value is None else source.value * per_unit, prices.currency, grade)
