"""Processor seconds of training, summed over cores."""

from __future__ import annotations

from graftwork.config import Prices
from graftwork.core.meter import Cost, Meaning, Phase, Readings
from graftwork.registry import meters


@meters.register("train_cpu_seconds")
class TrainCpuSeconds:
    """Core-seconds in the phase `fit`, plus those of shared work that the run alone would have had to do."""

    needs: tuple[str, ...] = ()
    meaning = Meaning("train processor time")

    def begin(self) -> None:
        """Do nothing: no state is needed."""

    def end(self, mark: None, readings: Readings, costs: dict[str, Cost], prices: Prices) -> Cost:
        """Return the cost in core-seconds."""
        fit = readings.phases.get("fit", Phase())
        return Cost(fit.cpu_seconds + readings.charged.cpu_seconds, "s", "counter")
