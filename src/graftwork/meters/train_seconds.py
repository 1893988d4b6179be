"""Wall-clock seconds of training."""

from __future__ import annotations

from graftwork.config import Prices
from graftwork.core.meter import Cost, Meaning, Phase, Readings
from graftwork.registry import meters


@meters.register("train_seconds")
class TrainSeconds:
    """Seconds in the phase `fit`, plus those of shared work that the run alone would have had to do."""

    needs: tuple[str, ...] = ()
    meaning = Meaning("train time", summed=True)

    def begin(self) -> None:
        """Do nothing: no state is needed."""

    def end(self, mark: None, readings: Readings, costs: dict[str, Cost], prices: Prices) -> Cost:
        """Return the cost in seconds."""
        fit = readings.phases.get("fit", Phase())
        return Cost(fit.wall_seconds + readings.charged.wall_seconds, "s", "meter")
