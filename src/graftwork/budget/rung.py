"""A rung of a climb: one run, what was forecast of it, and what became of it."""

from __future__ import annotations

from dataclasses import dataclass

from graftwork.budget.forecast import Forecast
from graftwork.core.configured_methods import ConfiguredMethod
from graftwork.core.run import RunResult
from graftwork.run.score_interval import Evidence


@dataclass
class Rung:
    """A rung: one run, its forecast and its outcome."""

    method: ConfiguredMethod
    seed: int = 0
    operations: float = 0.0
    part: float = 1.0  # share of its recipe's steps; below 1 where the budget does not pay for all
    gain: float | None = None  # expected gain, a fraction; None for a run that is made in any case
    forecast: Forecast | None = None
    measuring_seconds: float = 0.0
    seconds: float | None = None  # measured seconds of the run
    result: RunResult | None = None
    reused: bool = False
    evidence: Evidence | None = None
    decision: str = ""  # "kept", "not better", "failed", "not affordable", "interrupted", "not worth it" or "not tried"
    reason: str = ""
