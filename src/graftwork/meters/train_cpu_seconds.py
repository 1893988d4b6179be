"""Processor seconds of training, summed over cores."""

from __future__ import annotations

from graftwork.core.meter import Cost, FromReadings, Meaning, Phase, Readings
from graftwork.registry import meters


@meters.register("train_cpu_seconds")
class TrainCpuSeconds(FromReadings):
    """Core-seconds in the phase `fit`, plus those of shared work that the run alone would have had to do."""

    meaning = Meaning("train processor time")

    def cost(self, readings: Readings) -> Cost:
        """Return the cost in core-seconds."""
        fit = readings.phases.get("fit", Phase())
        return Cost(fit.cpu_seconds + readings.charged.cpu_seconds, "s", "counter")
