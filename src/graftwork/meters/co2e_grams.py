"""Greenhouse gas emissions of the run's electricity, by the user's figure for the country and year."""

from __future__ import annotations

from graftwork.config import JOULES_PER_KWH, Prices
from graftwork.core.meter import GRADES, Cost, Meaning, Readings
from graftwork.registry import meters


@meters.register("co2e_grams")
class Co2eGrams:
    """kWh x PUE x grams per kWh; blank when the price list has no figure for the grid."""

    needs: tuple[str, ...] = ("energy_joules",)
    meaning = Meaning("CO2e", shared=True, of_prices=True)

    def begin(self) -> None:
        """Do nothing: no state is needed."""

    def end(self, mark: None, readings: Readings, costs: dict[str, Cost], prices: Prices) -> Cost:
        """Return the cost in grams of CO2 equivalent; its grade is "model", or that of the energy if lower."""
        energy = costs["energy_joules"]
        grade = max("model", energy.grade, key=GRADES.index)
        if energy.value is None or prices.grams_per_kwh is None:
            return Cost(None, "g", grade)
        return Cost(energy.value / JOULES_PER_KWH * prices.pue * prices.grams_per_kwh, "g", grade)
