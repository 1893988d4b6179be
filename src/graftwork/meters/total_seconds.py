"""Wall-clock seconds of the whole run, from loading to saving."""

from __future__ import annotations

from graftwork.core.meter import Cost, FromReadings, Meaning, Readings
from graftwork.registry import meters


@meters.register("total_seconds")
class TotalSeconds(FromReadings):
    """Seconds of all phases, plus those of shared work that the run alone would have had to do."""

    meaning = Meaning("total time", shared=True)

    def cost(self, readings: Readings) -> Cost:
        """Return the cost in seconds."""
        spent = sum(phase.wall_seconds for phase in readings.phases.values())
        charged = readings.charged.wall_seconds + readings.charged_evaluate.wall_seconds
        return Cost(spent + charged, "s", "meter")
