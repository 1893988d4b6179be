"""Almost stochastic order of two rows' runs (del Barrio et al. 2018, arXiv:1705.01788; Dror et al. 2019, P19-1266).

One row is stochastically better if each of its quantiles is higher. For real methods this rarely holds for every
quantile; the degree to which it fails is the violation

    epsilon = integral of (A^-1 - B^-1)^2 over the t where A^-1(t) < B^-1(t) / integral of (A^-1 - B^-1)^2 over all t

with A^-1 and B^-1 the quantile functions of the scores. 0: A dominates, 1: B dominates, 0.5: neither does more.
It considers only seeds, on these test examples: a second opinion beside the bootstrap, never the verdict.
n and m runs, R resamples.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

Floats = NDArray[np.float64]

RESAMPLES = 1_000
CLEAR = 0.2  # epsilon_min below which Ulmer et al. (2022, arXiv:2204.06815) advise to call a row better
_SAME = 1e-24  # squared distance below which two quantile functions differ only by rounding


@dataclass(frozen=True)
class Dominance:
    """The degree to which a row's runs dominate another's."""

    epsilon: float  # of the runs themselves, 0 … 1
    epsilon_min: float  # upper confidence bound; below 0.5 the row is almost stochastically better
    confidence: float  # of that bound, one-sided


def almost_stochastic_order(
    a: Sequence[float] | Floats, b: Sequence[float] | Floats, *, confidence: float = 0.95, seed: int = 0
) -> Dominance:
    """Measure the almost stochastic order of `a` (n scores, higher is better) over `b` (m scores).

    `epsilon_min` = epsilon + z(confidence) x the bootstrap's standard deviation of epsilon, clipped to 0 … 1. For
    several pairs use a confidence of 1 - 0.05 / pairs (Bonferroni). Raises `ValueError` for no scores.
    """
    one, two = np.sort(np.asarray(a, np.float64)), np.sort(np.asarray(b, np.float64))
    if not (len(one) and len(two)):
        raise ValueError("both rows need scores")
    epsilon = float(_violations(one[None], two[None])[0])
    random = np.random.default_rng(seed)
    drawn = [np.sort(runs[random.integers(0, len(runs), (RESAMPLES, len(runs)))], axis=1) for runs in (one, two)]
    spread = float(_violations(*drawn).std())
    bound = min(1.0, max(0.0, epsilon + float(norm.ppf(confidence)) * spread))
    return Dominance(epsilon, bound, confidence)


def _violations(a: Floats, b: Floats) -> Floats:
    """Compute epsilon: sorted scores (R, n) and (R, m) -> (R,). Exact, because quantile functions are step functions;
    0.5 if they are equal."""
    n, m = a.shape[1], b.shape[1]
    ends = np.union1d(m * np.arange(1, n + 1), n * np.arange(1, m + 1))  # of common steps, in units of 1 / (n m)
    apart = a[:, (ends - 1) // m] - b[:, (ends - 1) // n]  # (R, steps)
    squares = apart**2 * np.diff(ends, prepend=0) / (n * m)
    whole = squares.sum(axis=1)
    against = np.where(apart < 0, squares, 0.0).sum(axis=1)
    return np.asarray(np.where(whole > _SAME, against / np.maximum(whole, _SAME), 0.5), np.float64)
