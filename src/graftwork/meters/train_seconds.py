"""Wall-clock seconds of training."""

from __future__ import annotations

from graftwork.core.meter import Cost, FromReadings, Meaning, Phase, Readings
from graftwork.registry import meters


@meters.register("train_seconds")
class TrainSeconds(FromReadings):
    """Seconds in the phase `fit`, plus those of shared work that the run alone would have had to do."""

    meaning = Meaning("train time", summed=True)

    def cost(self, readings: Readings) -> Cost:
        """Return the cost in seconds."""
        fit = readings.phases.get("fit", Phase())
        return Cost(fit.wall_seconds + readings.charged.wall_seconds, "s", "meter")
