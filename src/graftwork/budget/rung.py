"""A rung, one run of `climb` with its forecast and its outcome; and a possible run, which is not decided on yet."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from graftwork.budget.forecast import Forecast
from graftwork.core.configured_methods import ConfiguredMethod
from graftwork.core.run import RunResult
from graftwork.decision.traits import Arm
from graftwork.run.receipt import NOTHING_TRIED, SearchRecord
from graftwork.run.score_interval import Evidence

DIMINISHING = 3  # a part of a run's steps loses (1 - part) ** DIMINISHING of its expected gain (docs/log.md)


@dataclass
class Rung:
    """A rung: one run, its forecast and its outcome."""

    method: ConfiguredMethod
    seed: int = 0
    averages: ConfiguredMethod | None = None  # of an average: the method whose runs, from this seed on, it averages
    operations: float = 0.0  # estimated FLOPs of the fit
    part: float = 1.0  # share of its recipe's steps; below 1 if the budget does not pay for all of them
    gain: float | None = None  # expected gain, a fraction; None for a run that is made in any case
    forecast: Forecast | None = None
    measuring_seconds: float = 0.0
    seconds: float | None = None  # measured seconds of the run
    result: RunResult | None = None
    reused: bool = False
    evidence: Evidence | None = None
    # "kept" (at the end the chosen run alone), "best so far", "not better", "failed", "not affordable", "interrupted",
    # "not worth it" or "not tried".
    decision: str = ""
    reason: str = ""

    @property
    def arm(self) -> Arm:
        """The arm of the run's method; for an average, the arm of the method whose runs are averaged."""
        return Arm.of(self.averages or self.method)


@dataclass(frozen=True)
class PossibleRun:
    """The next possible run of a method: its expected seconds, and the share of the gain that it keeps."""

    seconds: float
    kept: float = 1.0  # share of a whole run's expected gain


def kept_gain(part: float) -> float:
    """Return the share of a run's expected gain that remains with this part of its steps."""
    return float(1 - (1 - part) ** DIMINISHING)


def search_record(
    rung: Rung, rungs: Sequence[Rung], rate_of: Callable[[ConfiguredMethod], float | None]
) -> SearchRecord:
    """Return the receipt's record of the learning rates tried before; `NOTHING_TRIED` if the rate was not searched."""
    method = rung.averages or rung.method
    name, rate = method.config["name"], rate_of(method)
    before = [other for other in rungs if other.result and other.method.config["name"] == name]
    others = [other for other in before if rate_of(other.method) != rate]
    if rate is None or "learning_rate" not in method.given or not others:
        return NOTHING_TRIED
    rates = dict.fromkeys([*(rate_of(other.method) for other in others), rate])
    return SearchRecord({"learning_rate": list(rates)}, tuple(other.result.id for other in others if other.result))
