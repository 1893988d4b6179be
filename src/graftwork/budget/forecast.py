"""The forecast time of a run, part by part, for all of its steps or for a share of them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol

from graftwork.core.configured_methods import ConfiguredMethod

LEAST_PART, PARTS = 4, 20  # a shortened run keeps at least 4 twentieths of its steps


@dataclass(frozen=True)
class Forecast:
    """The forecast seconds of a run, part by part."""

    parts: Mapping[str, float] = field(default_factory=dict)  # part of the run, such as "steps" -> seconds
    step: tuple[float, float] | None = None  # seconds of a step are [0] + [1] x padded tokens
    epochs: int = 0  # epochs of the whole run; 0: it does not train in epochs
    part: float = 1.0  # share of the run's steps that is forecast

    @property
    def seconds(self) -> float:
        """The sum of all parts."""
        return sum(self.parts.values())

    def within(self, seconds: float) -> Forecast:
        """Return the forecast of the longest part of the run that fits into `seconds`; `self` if none does."""
        if self.seconds <= seconds or not self.epochs:
            return self
        shorter = (self._of(twentieths / PARTS) for twentieths in range(PARTS - 1, LEAST_PART - 1, -1))
        return next((one for one in shorter if one.seconds <= seconds), self)

    def _of(self, part: float) -> Forecast:
        """Return the forecast for a share of the steps. Validation runs before the first epoch and after each."""
        shares = {"steps": part, "validation": (math.ceil(part * self.epochs) + 1) / (self.epochs + 1)}
        parts = {name: shares.get(name, 1.0) * seconds for name, seconds in self.parts.items()}
        return replace(self, parts=parts, part=part)


class Forecasts(Protocol):
    """A source of forecasts of run times, such as `Forecaster`."""

    def operations(self, method: ConfiguredMethod) -> float:
        """Estimate the FLOPs of the method's fit."""

    def forecast(self, method: ConfiguredMethod) -> Forecast:
        """Forecast the seconds of a run of the method, measured on a sample."""
