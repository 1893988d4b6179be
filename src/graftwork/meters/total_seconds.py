"""Wall-clock seconds of the whole run, from loading to saving."""

from __future__ import annotations

from graftwork.config import Prices
from graftwork.core.meter import Cost, Meaning, Readings
from graftwork.registry import meters


@meters.register("total_seconds")
class TotalSeconds:
    """Seconds of all phases, plus those of shared work that the run alone would have had to do."""

    needs: tuple[str, ...] = ()
    meaning = Meaning("total time", shared=True)

    def begin(self) -> None:
        """Do nothing: no state is needed."""

    def end(self, mark: None, readings: Readings, costs: dict[str, Cost], prices: Prices) -> Cost:
        """Return the cost in seconds."""
        spent = sum(phase.wall_seconds for phase in readings.phases.values())
        charged = readings.charged.wall_seconds + readings.charged_evaluate.wall_seconds
        return Cost(spent + charged, "s", "meter")
