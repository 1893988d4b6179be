"""Calibration: how far probabilities are from the share of right answers, and one temperature that corrects them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graftwork.core.kind import Kind, SharesProbability
from graftwork.core.method import Logits
from graftwork.core.ragged import Numbers, Ragged
from graftwork.errors import IncompatibleModule

BINS = 15
FOLDS = 5
FEWEST = 50  # minimum number of validation rows to fit a temperature
HOTTEST = 20.0  # a temperature is between 1 / HOTTEST and HOTTEST
CALIBRATION = "calibration"  # in module.json; absent: the temperature is 1
CURVE = "answered"  # in it: per threshold, the answered and the right rows of validation and of test
POINTS = 40  # thresholds of the curve at most


@dataclass(frozen=True)
class ReliabilityBin:
    """Answers of similar confidence: its bounds and mean, the share of right answers, and the number of rows."""

    low: float
    high: float
    confidence: float
    accuracy: float
    rows: int


def reliability(
    confidences: Sequence[float] | NDArray[Any], right: Sequence[bool] | NDArray[Any], bins: int = BINS
) -> list[ReliabilityBin]:
    """Divide answers by confidence into bins of equally many rows; equal confidences stay in one bin.

    `confidences` (N,) are the probabilities of the predictions, `right` (N,) whether they are right.
    """
    order = np.argsort(np.asarray(confidences, np.float64), kind="stable")
    values = np.asarray(confidences, np.float64)[order]
    hits = np.asarray(right, np.float64)[order]
    if not len(values):
        return []
    cuts = np.searchsorted(values, values[np.arange(1, bins) * len(values) // bins], side="left")
    edges = np.unique([0, *cuts, len(values)])
    return [
        ReliabilityBin(float(own[0]), float(own[-1]), float(own.mean()), float(hits[start:end].mean()), len(own))
        for start, end in itertools.pairwise(edges.tolist())
        for own in (values[start:end],)
    ]


def calibration_error(bins: Sequence[ReliabilityBin]) -> float:
    """Return the expected calibration error: mean over rows of |confidence - accuracy| of their bin (Guo et al. 2017).

    A fraction; 0.0 without bins.
    """
    rows = sum(one.rows for one in bins)
    return sum(one.rows * abs(one.confidence - one.accuracy) for one in bins) / rows if rows else 0.0


def calibration_of(
    kind: Kind, answered: Mapping[str, tuple[Logits, Numbers]], costs: object = None
) -> dict[str, Any] | None:
    """Return the temperature fitted on "validation", the calibration of each split, and its precision by coverage.

    `answered` has the logits and encoded targets of "validation" and "test". Each split has its figures "before" and
    "after" scaling; on validation those after are cross-fitted: each fifth of the rows has the temperature of the
    others. The temperature is 1, and "why" is the reason, if there are fewer than 50 validation rows or no wrong answer
    among them, or if the cross-fitted negative log-likelihood is not lower. None for a kind without a softmax, and for
    a task with `costs` of wrong labels: a temperature would change its predictions after they were scored.
    """
    if costs is not None or not isinstance(kind, SharesProbability):
        return None
    splits = {name: ClassRows.of(kind, *given) for name, given in answered.items()}
    held = splits["validation"]
    before, temperature, why = held.figures(1.0), 1.0, ""
    crossed: float | NDArray[np.float64] = 1.0
    if len(held.right) < FEWEST:
        why = f"fewer than {FEWEST} validation rows"
    elif held.hits.all():
        why = "no wrong answer on validation"
    else:
        crossed, temperature = _cross_fitted(held), _fitted(held)
        if held.figures(crossed)["nll"] >= before["nll"]:
            crossed, temperature, why = 1.0, 1.0, "a temperature does not lower the cross-fitted log-likelihood loss"
    told: dict[str, Any] = {"temperature": temperature, "why": why}
    for name, rows in splits.items():
        after = crossed if name == "validation" else temperature
        told[name] = {"rows": len(rows.right), "before": rows.figures(1.0), "after": rows.figures(after)}
    return told | {CURVE: _curve(held, splits["test"], temperature) if len(held.right) else []}


def at_temperature(logits: Logits, temperature: float) -> Logits:
    """Divide logits by a temperature; for 1 return them unchanged. No prediction changes."""
    if temperature == 1.0:
        return logits
    return replace(logits, flat=logits.flat / temperature) if isinstance(logits, Ragged) else logits / temperature


def temperature_of(description: Mapping[str, Any]) -> float:
    """Return the temperature that a module's description holds, 1.0 if none. Raises `IncompatibleModule`."""
    found = description.get(CALIBRATION, {}).get("temperature", 1.0)
    if type(found) not in (int, float) or not (math.isfinite(found) and found > 0):
        raise IncompatibleModule(
            "the temperature of the module is not a positive number",
            where="its description",
            got=repr(found),
            expected="a positive number",
            do="restore it from a copy, or train it again",
        )
    return float(found)


@dataclass(frozen=True)
class ClassRows:
    """Rows with one right class or choice."""

    logits: NDArray[np.float64]  # (N, C), -inf where a row has fewer than C choices
    right: NDArray[np.int64]  # (N,) the right class or choice

    @classmethod
    def of(cls, kind: SharesProbability, logits: Logits, targets: Numbers) -> ClassRows:
        """Build from logits and encoded targets."""
        if not isinstance(logits, Ragged):
            return cls(np.asarray(logits, np.float64), np.asarray(kind.right_class(targets), np.int64))
        wide = np.full((len(logits), int(logits.counts.max(initial=1))), -np.inf)
        for row, own in zip(wide, logits, strict=True):
            row[: len(own)] = own[:, 0]
        return cls(wide, np.asarray(kind.right_class(targets), np.int64))

    @property
    def hits(self) -> NDArray[np.bool_]:
        """(N,) whether the prediction is right."""
        return np.asarray(self.logits.argmax(axis=1) == self.right)

    def log_chances(self, temperature: float | NDArray[np.float64]) -> NDArray[np.float64]:
        """Return (N, C), the log-probabilities at a temperature, or at one per row (N,)."""
        from scipy.special import log_softmax

        return np.asarray(log_softmax(self.logits / np.reshape(temperature, (-1, 1)), axis=1))

    def loss(self, temperature: float | NDArray[np.float64]) -> float:
        """Return the mean negative log-likelihood, in nats."""
        return float(-self.log_chances(temperature)[np.arange(len(self.right)), self.right].mean())

    def figures(self, temperature: float | NDArray[np.float64]) -> dict[str, float]:
        """Return the expected calibration error in bins of equally many rows, and the negative log-likelihood."""
        bins = reliability(self.surest(temperature), self.hits)
        return {"ece": calibration_error(bins), "nll": self.loss(temperature)}

    def surest(self, temperature: float | NDArray[np.float64]) -> NDArray[np.float64]:
        """Return (N,), the probability of the predicted class or choice."""
        return np.asarray(np.exp(self.log_chances(temperature).max(axis=1)))


def _curve(held: ClassRows, test: ClassRows, temperature: float) -> list[list[float]]:
    """Return rows of threshold, answered and right rows of validation, and of test: at most 40.

    The thresholds are quantiles of the probabilities of answers on validation, rounded down to 6 decimals.
    """
    sure = [(rows.surest(temperature), rows.hits) for rows in (held, test)]
    ordered = np.sort(sure[0][0])
    thresholds = np.unique(np.floor(ordered[np.arange(POINTS) * len(ordered) // POINTS] * 1e6) / 1e6)
    return [
        [least, *(int(count.sum()) for values, right in sure for count in (values >= least, right[values >= least]))]
        for least in thresholds.tolist()
    ]


def _fitted(rows: ClassRows) -> float:
    """Return the temperature of least negative log-likelihood, which is convex in its inverse."""
    from scipy.optimize import minimize_scalar

    bounds = (1 / HOTTEST, HOTTEST)
    found = minimize_scalar(lambda inverse: rows.loss(1 / inverse), bounds=bounds, method="bounded")
    return 1 / float(found.x)


def _cross_fitted(rows: ClassRows) -> NDArray[np.float64]:
    """Return for each row (N,) the temperature fitted on the other folds."""
    folds = np.random.default_rng(0).permutation(len(rows.right)) % FOLDS
    others = (folds != fold for fold in range(FOLDS))
    return np.array([_fitted(ClassRows(rows.logits[some], rows.right[some])) for some in others])[folds]
