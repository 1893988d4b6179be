"""The posterior of the methods' scores, given the validation scores of some of their runs.

Each method has two unknowns: its score over fresh examples and seeds, by which it is judged, and its luck, the error of
that score on these validation rows. A run observes their sum plus the effect of its seed. All three are normal. A run
that kept its best epoch on these rows observes more than that, as the best of several scores is a lucky one (Cawley &
Talbot 2010, JMLR 11); what that adds is measured in standard errors, nearly the same for all data sets and methods. The
scores have the prior's covariance. The luck has a bootstrap covariance over the rows, shrunk slightly towards a prior
one, because few rows estimate it poorly. The seed effect has the variance over the runs, pooled with a prior one. So
the posterior is one linear step.
M methods, R runs, D draws.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

from graftwork.decision.prior import Belief, Sizes
from graftwork.decision.traits import FLOOR, TUNED, Arm

Floats = NDArray[np.float64]
TYPICAL_ROWS = 10.0  # weight, in rows, of the prior covariance that is pooled with the bootstrap's
TYPICAL_SEEDS = 4.0  # weight, in degrees of freedom, of the prior seed variance that is pooled with the runs' own
SHARED_REMOVED = 0.98  # share of the luck common to all methods that is removed: it affects no difference
DRAWS = 4_000
FLATTERED = 0.8  # standard errors that keeping the best epoch on validation adds to a score (docs/log.md)
NOTHING = 1e-9  # a score difference that counts as 0
TAIL = 0.05  # probability beyond each end of a 90 % interval
TOP = 1.0  # the highest score of every metric


@dataclass(frozen=True)
class RunScore:
    """The validation score of one run."""

    arm: Arm
    score: float  # a fraction
    draws: Floats  # (D,) the score on resampled rows; a draw has the same rows for every run
    kept_best_epoch: bool  # on these rows


@dataclass(frozen=True)
class Posterior:
    """A joint normal distribution of the methods' scores (first M) and their luck with the validation rows (last M)."""

    arms: tuple[Arm, ...]
    mean: Floats  # (2 M,)
    covariance: Floats  # (2 M, 2 M)
    seed_variance: Floats  # (M,) variance over seeds of a single run of each method
    ran: frozenset[Arm]

    @property
    def scores(self) -> Belief:
        """The marginal distribution of the methods' scores."""
        count = len(self.arms)
        return Belief(self.arms, self.mean[:count], self.covariance[:count, :count])

    @cached_property
    def draws(self) -> Floats:
        """(DRAWS, M) sampled scores, at most `TOP`, including the level that all methods share."""
        values, vectors = np.linalg.eigh(self.scores.covariance)
        root = vectors * np.sqrt(np.maximum(values, 0.0))
        normal = np.random.default_rng(0).standard_normal((DRAWS, len(self.arms)))
        return np.asarray(np.minimum(self.scores.mean + normal @ root.T, TOP))

    @cached_property
    def losses(self) -> Floats:
        """(DRAWS, M) score of a draw's best method minus that of each method."""
        return np.asarray(self.draws.max(axis=1, keepdims=True) - self.draws)

    def shortfall(self, arm: Arm) -> tuple[float, float, float]:
        """Return the expected shortfall of this method to the best, and its 90 % interval: fractions, 0 or above.

        If the interval starts at 0 (the method may be the best), the whole excluded tail is at the upper end.
        """
        losses = self.losses[:, self.arms.index(arm)]
        low, high = np.quantile(losses, [TAIL, 1 - TAIL])
        if low < NOTHING:
            low, high = 0.0, np.quantile(losses, 1 - 2 * TAIL)
        return float(losses.mean()), float(low), max(float(losses.mean()), float(high))

    def gain(self, better: Arm, worse: Arm) -> tuple[float, float, float]:
        """Return the expected score of `better` minus that of `worse`, and its 90 % interval."""
        gains = self.draws[:, self.arms.index(better)] - self.draws[:, self.arms.index(worse)]
        low, high = np.quantile(gains, [TAIL, 1 - TAIL])
        return float(gains.mean()), float(low), float(high)


def expected(mean: Floats, deviation: Floats) -> Floats:
    """Return the expected values of normal scores that are cut off at `TOP`: values above it count as `TOP`."""
    room = (TOP - mean) / np.maximum(deviation, 1e-12)
    return np.asarray(TOP - deviation * (room * norm.cdf(room) + norm.pdf(room)))


def posterior(belief: Belief, runs: Sequence[RunScore], rows: int, spread: float, sizes: Sizes) -> Posterior:
    """Condition `belief` on the runs' scores on `rows` validation rows; `spread` is the task's (`prior.spread_of`)."""
    count = len(belief.arms)
    luck = luck_covariance(belief.arms, runs, rows, spread, sizes)
    mean = np.concatenate([belief.mean, np.zeros(count)])
    covariance = np.zeros((2 * count, 2 * count))
    covariance[:count, :count], covariance[count:, count:] = belief.covariance, luck
    seeds = _seed_variance(belief.arms, runs, spread, sizes)
    if runs:
        places = np.array([belief.arms.index(one.arm) for one in runs])
        shown = np.zeros((len(runs), 2 * count))  # (R, 2 M)
        shown[np.arange(len(runs)), places] = shown[np.arange(len(runs)), count + places] = 1.0
        noise = shown @ covariance @ shown.T + np.diag(seeds[places])
        weights = np.linalg.solve(noise, shown @ covariance)  # (R, 2 M)
        mean = mean + weights.T @ (unflattered(runs) - shown @ mean)
        covariance = covariance - weights.T @ (shown @ covariance)
    ran = frozenset(one.arm for one in runs)
    return Posterior(belief.arms, mean, (covariance + covariance.T) / 2, seeds, ran)


def unflattered(runs: Sequence[RunScore]) -> Floats:
    """Return the runs' scores (R,) less what is expected of keeping the best epoch on the rows of the score.

    The standard error is one for all runs, so that luck does not tell them apart.
    """
    variances = [float(one.draws.var()) for one in runs if one.arm.sort != FLOOR]
    added = FLATTERED * np.sqrt(np.mean(variances)) if variances else 0.0
    return np.array([one.score - added * one.kept_best_epoch for one in runs])


def luck_covariance(arms: Sequence[Arm], runs: Sequence[RunScore], rows: int, spread: float, sizes: Sizes) -> Floats:
    """Return the covariance (M, M) of the methods' luck with the validation rows, without most of its shared part."""
    typical = spread**2 / max(1, rows)
    luck = np.eye(len(arms)) * typical * (1 - sizes.paired)
    ran = [place for place, arm in enumerate(arms) if any(one.arm == arm for one in runs)]
    if not ran:
        return luck
    means = [np.mean([one.draws for one in runs if one.arm == arms[place]], axis=0) for place in ran]  # (D,) each
    seen = np.atleast_2d(np.cov(np.stack(means)))
    expected = typical * (sizes.paired + (1 - sizes.paired) * np.eye(len(ran)))
    mixed = (rows * seen + TYPICAL_ROWS * expected) / (rows + TYPICAL_ROWS)
    shared = SHARED_REMOVED / np.linalg.solve(mixed, np.ones(len(ran))).sum()  # removable without losing definiteness
    luck[np.ix_(ran, ran)] = mixed - shared
    return luck


def _seed_variance(arms: Sequence[Arm], runs: Sequence[RunScore], spread: float, sizes: Sizes) -> Floats:
    """Return the variance (M,) over seeds of a single run of each method: its runs' own, pooled with a prior one."""
    found = []
    for arm in arms:
        typical = (spread * (sizes.seed_tuned if arm.sort == TUNED else sizes.seed_other)) ** 2
        scores = np.array([one.score for one in runs if one.arm == arm])
        squares, freedom = (float(((scores - scores.mean()) ** 2).sum()), len(scores) - 1) if len(scores) else (0.0, 0)
        found.append((TYPICAL_SEEDS * typical + squares) / (TYPICAL_SEEDS + freedom))
    return np.array(found)
