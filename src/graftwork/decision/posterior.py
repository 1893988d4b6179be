"""What is known of methods once some of their runs have been scored on validation.

Of every method two numbers are unknown: its score, by which it is judged (over fresh examples and seeds), and its luck
with these validation rows. A run shows their sum and the luck of its seed. All are normal: the scores as the prior
says, the luck with the rows as a bootstrap over them says (pulled a little towards what is typical, for few rows say
little of it), the luck of seeds by the spread of the runs together with the typical one. So the posterior is one linear
step.
M methods, R runs, D draws.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from graftwork.decision.prior import Belief, Sizes
from graftwork.decision.traits import TUNED, Arm

Floats = NDArray[np.float64]
TYPICAL_ROWS = 10.0  # as many rows' worth of what is typical are joined with the bootstrap's covariance
TYPICAL_SEEDS = 4.0  # as many degrees of freedom of the typical spread over seeds are joined with the runs' own
SHARED_KEPT = 0.98  # of the luck that all methods share, which no difference feels, so much is left out
DRAWS = 4_000
NOTHING = 1e-9  # of a score
TAIL = 0.05  # beyond each end of a 90 % interval


@dataclass(frozen=True)
class Look:
    """What one run showed on validation."""

    arm: Arm
    score: float  # a fraction
    draws: Floats  # (D,) the score on resampled rows, the same rows in the same draw of every run


@dataclass(frozen=True)
class Posterior:
    """A normal distribution over the methods' scores, then their luck with the validation rows."""

    arms: tuple[Arm, ...]
    mean: Floats  # (2 M,)
    covariance: Floats  # (2 M, 2 M)
    seed_variance: Floats  # (M,) of one more run of each
    ran: frozenset[Arm]

    @property
    def scores(self) -> Belief:
        """The methods' scores alone."""
        count = len(self.arms)
        return Belief(self.arms, self.mean[:count], self.covariance[:count, :count])

    @cached_property
    def draws(self) -> Floats:
        """(DRAWS, M) scores; the level, which all share, is left as it is."""
        values, vectors = np.linalg.eigh(self.scores.covariance)
        root = vectors * np.sqrt(np.maximum(values, 0.0))
        normal = np.random.default_rng(0).standard_normal((DRAWS, len(self.arms)))
        return np.asarray(self.scores.mean + normal @ root.T)

    @cached_property
    def losses(self) -> Floats:
        """(DRAWS, M) what the best method of a draw scores above each."""
        return np.asarray(self.draws.max(axis=1, keepdims=True) - self.draws)

    def shortfall(self, arm: Arm) -> tuple[float, float, float]:
        """What choosing this method is expected to cost, and a 90 % interval of it: fractions, 0 or above.

        Where the method may well be the best, so that the interval begins at nothing, no tail is left out below.
        """
        losses = self.losses[:, self.arms.index(arm)]
        low, high = np.quantile(losses, [TAIL, 1 - TAIL])
        if low < NOTHING:
            low, high = 0.0, np.quantile(losses, 1 - 2 * TAIL)
        return float(losses.mean()), float(low), max(float(losses.mean()), float(high))

    def gain(self, better: Arm, worse: Arm) -> tuple[float, float, float]:
        """What `better` scores above `worse`: expected, and a 90 % interval."""
        gains = self.draws[:, self.arms.index(better)] - self.draws[:, self.arms.index(worse)]
        low, high = np.quantile(gains, [TAIL, 1 - TAIL])
        a, b = self.arms.index(better), self.arms.index(worse)
        return float(self.mean[a] - self.mean[b]), float(low), float(high)


def posterior(belief: Belief, looks: Sequence[Look], rows: int, spread: float, sizes: Sizes) -> Posterior:
    """`belief`, and what the runs showed on so many validation `rows`; `spread` is the task's (`prior.spread_of`)."""
    count = len(belief.arms)
    luck = luck_covariance(belief.arms, looks, rows, spread, sizes)
    mean = np.concatenate([belief.mean, np.zeros(count)])
    covariance = np.zeros((2 * count, 2 * count))
    covariance[:count, :count], covariance[count:, count:] = belief.covariance, luck
    seeds = _seed_variance(belief.arms, looks, spread, sizes)
    if looks:
        places = np.array([belief.arms.index(look.arm) for look in looks])
        shown = np.zeros((len(looks), 2 * count))  # (R, 2 M)
        shown[np.arange(len(looks)), places] = shown[np.arange(len(looks)), count + places] = 1.0
        noise = shown @ covariance @ shown.T + np.diag(seeds[places])
        weights = np.linalg.solve(noise, shown @ covariance)  # (R, 2 M)
        mean = mean + weights.T @ (np.array([look.score for look in looks]) - shown @ mean)
        covariance = covariance - weights.T @ (shown @ covariance)
    ran = frozenset(look.arm for look in looks)
    return Posterior(belief.arms, mean, (covariance + covariance.T) / 2, seeds, ran)


def luck_covariance(arms: Sequence[Arm], looks: Sequence[Look], rows: int, spread: float, sizes: Sizes) -> Floats:
    """(M, M) covariance of the methods' luck with the validation rows, without most of what all of them share."""
    typical = spread**2 / max(1, rows)
    luck = np.eye(len(arms)) * typical * (1 - sizes.paired)
    ran = [place for place, arm in enumerate(arms) if any(look.arm == arm for look in looks)]
    if not ran:
        return luck
    means = [np.mean([look.draws for look in looks if look.arm == arms[place]], axis=0) for place in ran]  # (D,) each
    seen = np.atleast_2d(np.cov(np.stack(means)))
    expected = typical * (sizes.paired + (1 - sizes.paired) * np.eye(len(ran)))
    mixed = (rows * seen + TYPICAL_ROWS * expected) / (rows + TYPICAL_ROWS)
    shared = SHARED_KEPT / np.linalg.solve(mixed, np.ones(len(ran))).sum()  # so much can go, and it stays a covariance
    luck[np.ix_(ran, ran)] = mixed - shared
    return luck


def _seed_variance(arms: Sequence[Arm], looks: Sequence[Look], spread: float, sizes: Sizes) -> Floats:
    """(M,) variance over seeds of one run of each method: a typical one joined with that of its own runs."""
    found = []
    for arm in arms:
        typical = (spread * (sizes.seed_tuned if arm.sort == TUNED else sizes.seed_other)) ** 2
        scores = np.array([look.score for look in looks if look.arm == arm])
        squares, freedom = (float(((scores - scores.mean()) ** 2).sum()), len(scores) - 1) if len(scores) else (0.0, 0)
        found.append((TYPICAL_SEEDS * typical + squares) / (TYPICAL_SEEDS + freedom))
    return np.array(found)
