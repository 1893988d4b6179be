"""Spread, intervals and verdicts: a paired bootstrap over seeds x examples (Sellam et al. 2022, arXiv:2106.16163).

A score has two sources of variation: the examples of the test split, and the seed. Both are resampled, with the same
draws for every row, so that differences are paired over examples. The raw bootstrap misestimates both sources: with S
seeds it captures only (S - 1) / S of their variance, and it counts the noise of seed x example more than once. So every
draw also yields the scores of all seeds, which decompose the variance, and the draws are scaled to the standard error

    se^2 = variance over examples of the mean over seeds + variance over seeds beyond what the examples explain

The second term is each row's own: seeds are not paired, because two rows' runs with one seed are not correlated; if
they are after all, the test is conservative. Intervals and p-values use Student's t with few degrees of freedom where
seeds dominate the spread, because 5 seeds estimate it poorly, and with those of the examples where seeds add nothing.
docs/explanation/statistics.md gives the reasons, benchmarks/honesty the measured error rates.
S seeds, N examples, K statistics of a metric, D draws.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import t as student

from graftwork.core.metric import BelowZero, Metric, OfSample, Score, drawn_scores, score_of

Floats = NDArray[np.float64]

LEVEL = 0.05  # two-sided
NEGLIGIBLE = 1e-12  # a score difference that is only rounding error
DECIMALS = 12  # to which means are rounded for comparison: summation order changes only later decimals
FEWEST_RUNS = 3  # with fewer, a row is never called better or worse
_NORMAL_QUANTILE = 1.96  # of the normal distribution at 97.5 %
_POWER_QUANTILE = 0.8416  # at 80 %
_TIE = 0.1  # standard errors; a draw in which two rows score the same remains a tie unless it is moved by more
_HELD_BACK = 0.5  # subtracted from the degrees of freedom of seeds: Satterthwaite takes estimated variances as true
_CHUNK_BYTES = 24_000_000  # bytes of one block of weights or means


@dataclass(frozen=True)
class RowSample:
    """The runs of one row, each as the per-example statistics of one metric."""

    name: str
    runs: tuple[NDArray[Any], ...]  # S arrays (N, K); the same N examples in the same order for every row


@dataclass(frozen=True)
class RowDifference:
    """Row `a` minus row `b`. Fractions, not points."""

    a: str
    b: str
    delta: float
    low: float  # 95 % interval, for this pair alone
    high: float
    p_a_better: float  # share of the interval's draws in which a is above b, ties count half
    p: float | None  # two-sided; None if a row has too few runs to know its spread over seeds
    p_holm: float | None  # corrected for all pairs of the table
    smallest_detectable: float | None  # for this pair alone, with 80 % power at the 5 % level; None if not known
    verdict: str  # "better" | "worse" | "cannot tell" for a, from p_holm


@dataclass(frozen=True)
class Spread:
    """A standard error and the degrees of freedom of its estimate."""

    error: float
    freedom: float
    known: bool = True  # False: fewer than 3 runs of a row, or a single example
    examples: int | None = None  # examples of the sign test that bounds p from below; None: no bound

    @property
    def quantile(self) -> float:
        """The 97.5 % quantile of Student's t."""
        return float(student.ppf(1 - LEVEL / 2, self.freedom))

    def p_value(self, delta: float) -> float | None:
        """Return the two-sided p-value of a difference of `delta`; None if the spread isn't known.

        p is never below that of a sign test in which all examples differ in the same direction, and equals it for a
        standard error of 0.
        """
        if not self.known:
            return None
        if self.error < NEGLIGIBLE:
            return 1.0 if abs(delta) < NEGLIGIBLE else _sign_test(self.freedom + 1)
        floor = 0.0 if self.examples is None else _sign_test(self.examples)
        return max(floor, float(2 * student.sf(abs(delta) / self.error, self.freedom)))


@dataclass(frozen=True)
class BoardRow:
    """The bootstrap of one row."""

    points: Floats  # (S,) score of each run on all examples
    by_seed: Floats  # (D, S) score of each run on each draw of examples
    drawn: Floats  # (D,) mean score over a draw of seeds, on the same draws of examples
    examples: int  # N
    least: float = 0.0  # lowest possible score


@dataclass(frozen=True)
class Bootstrap:
    """The bootstrap of all rows over shared draws; it gives scores of rows and differences of pairs by name."""

    rows: Mapping[str, BoardRow]
    fewest_runs: int = FEWEST_RUNS  # runs of a row that a verdict requires

    def score(self, name: str) -> Score:
        """Return the mean over seeds, sd over seeds, and the 95 % interval over seeds and examples of a row."""
        row = self.rows[name]
        spread = _spread(row)
        low, high = _interval(_widened(row.drawn, float(row.points.mean()), spread), float(row.points.mean()))
        sd = float(row.points.std(ddof=1)) if len(row.points) > 1 else 0.0
        # A stretched interval may exceed the metric's range: no metric exceeds 1, few go below 0.
        return Score(float(row.points.mean()), sd, max(low, row.least), min(high, 1.0))

    def difference(self, a: str, b: str) -> RowDifference:
        """Return row `a` minus row `b`, not yet corrected for multiple pairs."""
        one, two = self.rows[a], self.rows[b]
        delta = float(one.points.mean() - two.points.mean())
        spread = replace(_spread_of_difference(one, two), known=self._known(one) and self._known(two))
        drawn = one.drawn - two.drawn
        stretched = _widened(drawn, delta, spread)
        stretched[(np.abs(drawn) < NEGLIGIBLE) & (np.abs(stretched) < _TIE * spread.error)] = 0.0
        low, high = _interval(stretched, delta)
        widest = max(abs(delta), 1 - min(one.least, two.least))  # largest possible difference of the metric
        low, high = max(low, -widest), min(high, widest)
        share = float(np.mean(stretched > 0) + np.mean(stretched == 0) / 2)
        p = spread.p_value(delta)
        found = smallest_detectable(spread)
        return RowDifference(a, b, delta, low, high, share, p, p, found, _verdict(delta, p))

    def _known(self, row: BoardRow) -> bool:
        return row.examples > 1 and len(row.points) >= self.fewest_runs

    def differences(self) -> list[RowDifference]:
        """Return the difference of every pair of rows in order, a before b, with p corrected over all (Holm 1979)."""
        pairs = [self.difference(a, b) for a, b in itertools.combinations(self.rows, 2)]
        known = [pair.p for pair in pairs if pair.p is not None]
        corrected = iter(holm(known))
        result = []
        for pair in pairs:
            p = None if pair.p is None else next(corrected)
            result.append(replace(pair, p_holm=p, verdict=_verdict(pair.delta, p)))
        return result


def bootstrap(
    samples: Sequence[RowSample], metric: Metric, *, draws: int = 10_000, seed: int = 0, fewest_runs: int = FEWEST_RUNS
) -> Bootstrap:
    """Draw examples and seeds `draws` times with replacement, the same draws for every row.

    Rows with equal numbers of runs also share their draws of seeds (run 1 of one row is paired with run 1 of the
    other); rows with different numbers draw independently. Raises `ValueError` if rows differ in their examples.
    """
    counts = {len(run) for sample in samples for run in sample.runs}
    if len(counts) != 1 or not all(sample.runs for sample in samples):
        raise ValueError(f"every row needs runs over the same examples; got numbers of examples {sorted(counts)}")
    examples = counts.pop()
    by_seed = {sample.name: np.empty((draws, len(sample.runs))) for sample in samples}
    columns = max(sum(run.shape[1] for run in sample.runs) for sample in samples)
    chunk = max(1, _CHUNK_BYTES // (8 * max(examples, columns)))
    at = 0
    for weights in _weights(examples, draws, chunk, np.random.default_rng([seed, 0])):
        for sample in samples:
            by_seed[sample.name][at : at + len(weights)] = _scores(weights, sample, metric)
        at += len(weights)
    rows = {}
    for sample in samples:
        seeds = len(sample.runs)
        picks = np.random.default_rng([seed, seeds]).integers(0, seeds, (draws, seeds))  # (D, S): equal S, equal draws
        drawn = np.take_along_axis(by_seed[sample.name], picks, axis=1).mean(axis=1)
        points = np.array([score_of(metric, run) for run in sample.runs])
        least = _least(metric, min(float(points.min()), float(by_seed[sample.name].min())))
        rows[sample.name] = BoardRow(points, by_seed[sample.name], drawn, examples, least)
    return Bootstrap(rows, fewest_runs)


def holm(p_values: Sequence[float]) -> list[float]:
    """Return the p-values, in their order, with Holm's step-down correction for their number."""
    corrected = [0.0] * len(p_values)
    floor = 0.0
    for rank, at in enumerate(sorted(range(len(p_values)), key=lambda i: p_values[i])):
        floor = max(floor, min(1.0, (len(p_values) - rank) * p_values[at]))
        corrected[at] = floor
    return corrected


def smallest_detectable(spread: Spread) -> float | None:
    """Return (t(0.975) + 0.84) x se: the smallest true difference that such runs detect with 80 % power, for one pair.

    t(0.975) is 1.96 if the examples dominate the spread, and 2.78 if 5 seeds do. None if the spread is not known, if
    the error is 0, or if so few examples bound p that no difference is ever significant.
    """
    bounded = spread.examples is not None and _sign_test(spread.examples) >= LEVEL
    if not spread.known or spread.error < NEGLIGIBLE or bounded:
        return None
    return (spread.quantile + _POWER_QUANTILE) * spread.error


def _least(metric: Metric, seen: float) -> float:
    """Return the metric's lowest score: as declared, else 0, or -inf if a score below 0 was `seen`."""
    if isinstance(metric, BelowZero):
        return metric.least
    return 0.0 if seen >= 0 else -math.inf


def _sign_test(examples: float) -> float:
    """Return the two-sided p-value of a sign test in which all examples differ in the same direction."""
    return min(1.0, float(2 * 0.5**examples))


def _verdict(delta: float, p: float | None) -> str:
    if p is None or p >= LEVEL:
        return "cannot tell"
    return "better" if delta > 0 else "worse"


def _weights(examples: int, draws: int, chunk: int, rng: np.random.Generator) -> Iterator[Floats]:
    """Yield blocks (≤ chunk, N) of weights: how often each example was drawn, divided by N."""
    for start in range(0, draws, chunk):
        size = min(chunk, draws - start)
        picks = rng.integers(0, examples, (size, examples), dtype=np.int32).astype(np.int64)
        picks += np.arange(size)[:, None] * examples
        yield np.bincount(picks.ravel(), minlength=size * examples).reshape(size, examples) / examples


def _scores(weights: Floats, sample: RowSample, metric: Metric) -> Floats:
    """Compute scores: weights (draws, N) -> (draws, S)."""
    if isinstance(metric, OfSample):
        counts = np.rint(weights * weights.shape[1]).astype(np.int64)
        drawn = [np.repeat(np.arange(len(row)), row) for row in counts]
        return np.stack([drawn_scores(metric, run, drawn) for run in sample.runs], axis=1)
    stacked = np.concatenate(sample.runs, axis=1).astype(np.float64, copy=False)  # (N, S * K)
    means = (weights @ stacked).reshape(len(weights), len(sample.runs), -1)  # (draws, S, K)
    scores: Floats = metric.value(means)
    return scores


def _seed_variance(row: BoardRow) -> tuple[float, float, int]:
    """Return the observed variance of the mean over seeds, its part from the noise of seed x example, and S."""
    seeds = len(row.points)
    if seeds == 1:
        return 0.0, 0.0, 1
    between = float(row.points.var(ddof=1)) / seeds
    noise = float(row.by_seed.var(axis=1, ddof=1).mean()) / seeds - between
    return between, max(0.0, noise), seeds


def _combined(over_examples: float, over_seeds: Sequence[tuple[float, float, int]], examples: int) -> Spread:
    """Add the variances of examples and seeds, never below that over examples, and derive the degrees of freedom.

    `over_seeds` holds (between, noise, S) of each row. The degrees of freedom of the rows' seeds are combined by
    Satterthwaite's formula, and then with those of the examples by their shares of the variance: squared shares would
    give more degrees of freedom to seeds that happen to agree, whose error is already underestimated. If seeds add
    nothing, only the examples count.
    """
    between = sum(of_row for of_row, _, _ in over_seeds)
    total = over_examples + max(0.0, between - sum(noise for _, noise, _ in over_seeds))
    freedom = float(max(1, examples - 1))
    if total > over_examples:
        of_seeds = between**2 / sum(
            of_row**2 / (seeds - 1 - _HELD_BACK) for of_row, _, seeds in over_seeds if seeds > 1
        )
        share = min(1.0, between / total)
        freedom = max(1.0, 1 / (share / of_seeds + (1 - share) / freedom))
    return Spread(math.sqrt(total), freedom)


def _spread(row: BoardRow) -> Spread:
    return _combined(_over_examples(row.by_seed, row.examples), [_seed_variance(row)], row.examples)


def _spread_of_difference(a: BoardRow, b: BoardRow) -> Spread:
    drawn = a.by_seed.mean(axis=1, keepdims=True) - b.by_seed.mean(axis=1, keepdims=True)
    seeds = [_seed_variance(a), _seed_variance(b)]
    return replace(_combined(_over_examples(drawn, a.examples), seeds, a.examples), examples=a.examples)


def _over_examples(by_seed: Floats, examples: int) -> float:
    """Return the variance over draws of the mean of (D, S), corrected by N / (N - 1) for draws from N examples."""
    return float(by_seed.mean(axis=1).var()) * examples / max(1, examples - 1)


def _widened(drawn: Floats, point: float, spread: Spread) -> Floats:
    """Return the draws, centred on the point estimate, scaled to the standard error, and widened to Student's t."""
    sd = float(drawn.std())
    scale = spread.error * spread.quantile / _NORMAL_QUANTILE / sd if sd > 1e-12 else 0.0
    return np.asarray(point + (drawn - drawn.mean()) * scale, np.float64)


def _interval(stretched: Floats, point: float) -> tuple[float, float]:
    """Return the 95 % interval: the quantiles of the stretched draws, extended to contain the point estimate.

    Draws that are nearly all equal and above their own mean would exclude it.
    """
    low, high = np.quantile(stretched, [LEVEL / 2, 1 - LEVEL / 2])
    return min(float(low), point), max(float(high), point)
