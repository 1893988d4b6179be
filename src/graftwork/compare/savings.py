"""The labels that transfer saves: the number that a method without transfer needs for the same score.

The mean curve of the other method is read from left to right: the result lies between the first size that reaches the
score and the size before, interpolated on a logarithmic axis of rows. Its uncertainty comes from a bootstrap over the
draws of the curve (1,000 resamples, with replacement, the same draws for both methods).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graftwork.compare.majority_floor import MAJORITY

Floats = NDArray[np.float64]

RESAMPLES, FEWEST_DRAWS = 1_000, 3
INTERVAL = (2.5, 97.5)  # percentiles


@dataclass(frozen=True)
class MethodCurve:
    """The learning curve of one method."""

    method: str
    sizes: Sequence[str]  # K sizes as text
    rows: Floats  # (K,) training rows at each size, ascending
    scores: Floats  # (K, D) score of each draw at each size

    @property
    def mean(self) -> Floats:
        """(K,) mean score at each size."""
        return np.asarray(self.scores.mean(axis=1))


@dataclass(frozen=True)
class Saving:
    """A saving in labels: `reference` needs `needed` rows for the score that `method` reaches with `rows`."""

    method: str
    reference: str
    size: str
    rows: float
    score: float  # a fraction
    needed: float | None  # None: not reached
    at_most: bool  # the smallest size of the reference reaches it already
    times: float | None  # needed / rows
    low: float | None  # 95 % interval of `needed`; None: not reached, or unknown
    high: float | None
    reached: float | None  # share of the resamples in which it is reached; None with fewer than 3 draws
    most: float  # rows of the reference's largest size


def labels_needed(rows: Sequence[float] | Floats, scores: Sequence[float] | Floats, wanted: float) -> float:
    """Return the rows at which a curve through (rows, scores) first reaches `wanted`; infinity if it does not."""
    for at, score in enumerate(scores):
        if score >= wanted:
            if at == 0:
                return float(rows[0])
            low, high = math.log(rows[at - 1]), math.log(rows[at])
            share = (wanted - scores[at - 1]) / (score - scores[at - 1])
            return math.exp(low + share * (high - low))
    return math.inf


def saving(line: MethodCurve, at: int, reference: MethodCurve) -> Saving:
    """Compute the rows that `reference` needs for the score of `line` at the size with index `at`."""
    wanted, rows = float(line.mean[at]), float(line.rows[at])
    needed = labels_needed(reference.rows, reference.mean, wanted)
    draws = line.scores.shape[1]
    low, high, reached = math.nan, math.nan, None
    if draws == reference.scores.shape[1] and draws >= FEWEST_DRAWS:
        picks = np.random.default_rng(0).integers(0, draws, (RESAMPLES, draws))
        found = np.array([
            labels_needed(
                reference.rows, reference.scores[:, pick].mean(axis=1), float(line.scores[at, pick].mean())
            )
            for pick in picks
        ])  # fmt: skip
        low, high = np.quantile(found, np.array(INTERVAL) / 100, method="nearest")
        reached = float(np.isfinite(found).mean())
    return Saving(
        line.method, reference.method, line.sizes[at], rows, wanted,
        needed=_known(needed), at_most=bool(wanted <= reference.mean[0]), times=_known(needed / rows),
        low=_known(low), high=_known(high), reached=reached, most=float(reference.rows[-1]),
    )  # fmt: skip


def savings(
    points: Sequence[Mapping[str, Any]], methods: Sequence[Mapping[str, Any]], metric: str
) -> list[dict[str, Any]]:
    """Return, as JSON, the savings of every method that transfers against each other method except the majority class.

    `points` and `methods` are those of a `curve.json`, points from few rows to many. Methods with a failed run are left
    out, and so are sizes with as many rows as the reference's largest, or more.
    """
    lines = [line for one in methods if (line := _line(one["method"], points, metric))]
    transfer = {one["method"] for one in methods if one["transfers"]}
    references = [line for line in lines if line.method not in transfer | {MAJORITY}]
    return [
        asdict(saving(line, at, reference))
        for reference in references
        for line in lines
        if line.method in transfer
        for at, rows in enumerate(line.rows)
        if rows < reference.rows[-1]
    ]


def _line(method: str, points: Sequence[Mapping[str, Any]], metric: str) -> MethodCurve | None:
    """Return the curve of a method; None if it has a failed run or no run."""
    own = [point for point in points if point["method"] == method]
    if not own or any(point["n_failed"] or not point["n_draws"] for point in own):
        return None
    scores = [[draw[metric] for draw in point["by_draw"].values()] for point in own]
    return MethodCurve(
        method,
        [point["size"] for point in own],
        np.array([point["rows"] for point in own], dtype=np.float64),
        np.array(scores, dtype=np.float64),
    )


def sentence(one: Mapping[str, Any], metric: str) -> str:
    """Return `linear_probe with 48 rows (8/class) reaches accuracy 59.8; tfidf_svm needs 410 for that, 8.5 times as
    many`."""
    start = (
        f"{one['method']} with {one['rows']:,.0f} rows ({one['size']}) reaches {metric} {100 * one['score']:.1f}; "
        f"{one['reference']} "
    )
    if one["needed"] is None:
        return f"{start}does not reach that with the largest size, {one['most']:,.0f}{_sure(one)}"
    if one["at_most"]:
        return f"{start}reaches that with its smallest size, {one['needed']:,.0f}{_sure(one)}"
    return f"{start}needs {one['needed']:,.0f} for that, {one['times']:.1f} times as many{_sure(one)}"


def _sure(one: Mapping[str, Any]) -> str:
    if one["reached"] is None:
        return ""
    if one["reached"] == 0:
        return " (nor in any resample of the draws)"
    if one["at_most"] and one["high"] == one["needed"]:
        return " (at most)"  # smaller sizes were not tried, so draws give no lower bound
    if one["low"] is None:
        return f" (it does in {100 * one['reached']:.1f} % of the resamples of the draws)"
    high = "not reached" if one["high"] is None else f"{one['high']:,.0f}"
    least = "at most " if one["at_most"] else ""
    return f" (95 % interval over draws: {least}{one['low']:,.0f} to {high})"


def _known(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
