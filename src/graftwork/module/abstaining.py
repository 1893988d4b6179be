"""Abstaining: an answer with a probability below a threshold is withheld, and its prediction becomes the best guess.

The threshold is given, or chosen on the validation rows of a module for a target precision of the remaining answers.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graftwork.core.kind import SharesProbability
from graftwork.errors import ConfigError
from graftwork.module.calibration import CALIBRATION, CURVE
from graftwork.module.confidence import confidence_of
from graftwork.registry import kinds
from graftwork.units import percent

SURE = 0.9  # level of the one-sided lower bound on a precision
BEST_GUESS = "best_guess"


@dataclass(frozen=True)
class Abstaining:
    """The rule for withheld answers: a probability below `below`, or below the threshold that reaches `precision`.

    Raises `ConfigError` if both are given, or one that is not from 0 to 1.
    """

    below: float | None = None
    precision: float | None = None

    def __post_init__(self) -> None:
        if self.below is not None and self.precision is not None:
            raise ConfigError(
                "a threshold and a target precision are two ways of saying when to abstain",
                got=f"{self.below:g} and {self.precision:g}",
                do="give one of them",
            )
        for name, value in (("the threshold", self.below), ("the target precision", self.precision)):
            if value is not None and not 0 <= value <= 1:
                tell = f"write {value / 100:g} for {value:g} %" if 1 < value <= 100 else ""
                raise ConfigError(f"{name} is not a probability", got=f"{value:g}", expected="0 to 1", do=tell)

    def threshold(self, description: Mapping[str, Any]) -> Threshold | None:
        """Return the threshold for the module with this description; None to answer all. Raises `ConfigError`."""
        if self.precision is not None:
            return _lowest_threshold(self.precision, description)
        return None if self.below is None else Threshold(self.below)


ANSWER_ALL = Abstaining()


@dataclass(frozen=True)
class Threshold:
    """The least probability of an answer that is not withheld, and the results of the module at this threshold."""

    least: float
    precision: float | None = None  # the target precision
    splits: Mapping[str, tuple[int, int, int]] | None = None  # split -> rows, answered rows, right rows of these

    def withheld(self, answer: Mapping[str, Any], task: str) -> dict[str, Any]:
        """Return a task's answer with `probability` and `best_guess`; if it is unsure, its prediction is None.

        An answer without spans has no probability and is kept. Raises `ConfigError` for any other without one.
        """
        chance = confidence_of(answer)
        if chance is None and answer.get("spans") != []:
            raise ConfigError(
                f"answers of task {task!r} have no probability to abstain by", do="ask without a threshold"
            )
        name, guess = next(iter(answer.items()))
        told = dict(answer) | {BEST_GUESS: guess, "probability": chance}
        if chance is not None and chance < self.least:
            told[name] = None
            told |= {"index": None} if "index" in told else {}
        return told

    def sentence(self) -> str:
        """Describe the threshold, and for a chosen one how it was chosen and its result on test."""
        if self.splits is None or self.precision is None:
            return f"below a probability of {self.least:g}"
        rows, answered, right = self.splits["validation"]
        tested, of_test, right_of_test = self.splits["test"]
        gave = f", {percent(right_of_test / of_test)} % of them right" if of_test else ""
        return (
            f"below a probability of {self.least:g}, the lowest at which at least {percent(self.precision)} % of "
            f"answers are right by a one-sided {percent(SURE, 0)} % bound on validation ({right:,} of {answered:,} "
            f"right, {percent(answered / rows)} % answered); on test it answered {percent(of_test / tested)} %{gave}"
        )


def unsure(answer: Mapping[str, Any]) -> bool:
    """Return whether an answer of `Threshold.withheld` was withheld."""
    return BEST_GUESS in answer and next(iter(answer.values())) is None


def lower_bound(right: int, answered: int) -> float:
    """Return the one-sided 90 % lower bound on a precision (Clopper & Pearson 1934); 0.0 without answers."""
    from scipy.stats import beta

    return float(beta.ppf(1 - SURE, right, answered - right + 1)) if right else 0.0


def area_under_risk(confidences: NDArray[np.float64], right: NDArray[np.bool_]) -> float:
    """Return the area under the risk-coverage curve: the mean share of wrong answers (Geifman et al. 2019).

    It is a mean over all coverages, the most confident answers first; equal confidences are covered together.
    """
    order = np.argsort(-confidences, kind="stable")
    values, wrong = confidences[order], np.cumsum(~right[order])
    ends = np.searchsorted(-values, -values, side="right")  # rows answered at this confidence
    return float((wrong[ends - 1] / ends).mean())


def _lowest_threshold(precision: float, description: Mapping[str, Any]) -> Threshold:
    """Return the lowest threshold whose precision on validation is at least this, by its lower bound."""
    task = description["task"]
    if not isinstance(kinds.get(task["kind"]), SharesProbability):
        raise ConfigError(
            f"a target precision is for tasks with one right class or choice, not for kind {task['kind']}",
            do="give a threshold: a probability to abstain below",
        )
    known = description.get(CALIBRATION, {})
    rows = known.get(CURVE)
    if not rows:
        raise ConfigError(
            f"the module of task {task['name']!r} has no validation figures to choose a threshold by",
            do="it has costs, by which it answers: give a threshold to abstain below"
            if task.get("costs")
            else "it was imported or is older than these: train it again, or give a threshold to abstain below",
        )
    bounds = [lower_bound(right, answered) for _, answered, right, _, _ in rows]
    held, tested = known["validation"]["rows"], known["test"]["rows"]
    reached = [row for row, bound in zip(rows, bounds, strict=True) if bound >= precision]
    if not reached:
        best = int(np.argmax(bounds))
        least, answered, right = rows[best][:3]
        highest = math.floor(bounds[best] * 1e3) / 1e3
        raise ConfigError(
            f"no threshold reaches this precision on the {held:,} validation rows",
            got=f"{precision:g}",
            expected=f"at most {highest:g}, where {percent(answered / held)} % of rows are answered: {right:,} of "
            f"{answered:,} right, counted by a one-sided {percent(SURE, 0)} % bound",
            do=f"ask for {highest:g}, abstain below {least:g}, or train with more validation rows",
        )
    least, answered, right, of_test, right_of_test = min(reached)
    splits = {"validation": (held, answered, right), "test": (tested, of_test, right_of_test)}
    return Threshold(least, precision, splits)
