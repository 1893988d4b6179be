"""The value of one more run: the expected improvement of the best choice once its result is known.

The knowledge gradient (Frazier, Powell & Dayanik 2009) of a normal posterior: a run's result is itself normal, and
moves every method's mean by a known multiple of its deviation from the expected result.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from types import MappingProxyType

import numpy as np
from scipy.stats import norm

from graftwork.decision.posterior import Posterior, expected
from graftwork.decision.traits import Arm

LEAST_GAIN = 1e-4  # a hundredth of a point: a smaller gain is not worth a run at any cost
STEPS = 256  # quantiles that approximate the distribution of a run's result
_RESULTS = norm.ppf((np.arange(STEPS) + 0.5) / STEPS)  # (STEPS,) equally likely, in standard deviations


def expected_gain(posterior: Posterior, run: Arm, open_to: Collection[Arm]) -> float:
    """Return the expected score of the best choice after one more run of a method minus that before: a fraction >= 0.

    `open_to` are the methods that can be chosen now; `run` can also be chosen afterwards. Infinite without `open_to`.
    """
    means, moves = _moves_of_scores(posterior, run)
    variances = np.diag(posterior.covariance)[: len(means)]
    rest = np.sqrt(np.maximum(variances - moves**2, 0.0))  # standard deviations that remain after the result
    now = [place for place, arm in enumerate(posterior.arms) if arm in open_to]
    then = [place for place, arm in enumerate(posterior.arms) if arm in open_to or arm == run]
    if not now:
        return float("inf")
    best_then = expected(means[then] + _RESULTS[:, None] * moves[then], rest[then]).max(axis=1).mean()
    best_now = expected(means[now], np.sqrt(variances[now])).max()
    return max(0.0, float(best_then - best_now))


def as_if_finished(posterior: Posterior, run: Arm) -> Posterior:
    """Return the posterior after a pending run whose result is as expected: means stay, variances shrink."""
    place, count = posterior.arms.index(run), len(posterior.arms)
    shown = np.zeros(2 * count)
    shown[place] = shown[count + place] = 1.0
    towards = posterior.covariance @ shown
    variance = float(shown @ towards) + float(posterior.seed_variance[place])
    covariance = posterior.covariance - np.outer(towards, towards) / variance
    return Posterior(posterior.arms, posterior.mean, covariance, posterior.seed_variance, posterior.ran | {run})


def _moves_of_scores(posterior: Posterior, run: Arm) -> tuple[np.ndarray, np.ndarray]:
    """Return the scores' means (M,), and how far a result one standard deviation above expectation moves each (M,)."""
    place, count = posterior.arms.index(run), len(posterior.arms)
    towards = posterior.covariance[:, place] + posterior.covariance[:, count + place]  # (2 M,)
    variance = float(towards[place] + towards[count + place]) + float(posterior.seed_variance[place])
    return posterior.mean[:count], towards[:count] / np.sqrt(max(variance, 1e-18))


def best_next(
    posterior: Posterior,
    seconds: Mapping[Arm, float],
    runs: Mapping[Arm, int],
    most: int,
    price: float,
    left: float = math.inf,
    kept: Mapping[Arm, float] = MappingProxyType({}),
    again: Mapping[Arm, float] = MappingProxyType({}),
    least: float = LEAST_GAIN,
) -> tuple[Arm, float] | None:
    """Return the run with the largest gain per second and its expected gain; None if none gains more than it costs.

    The run with the largest gain is returned instead if the remaining seconds `left` don't pay for both, or if the
    other is expected to gain less, once the largest has run, than its time would by another run of that method.

    `seconds`: time of one more run of each method (methods not listed can't run); `runs`: runs that each has finished
    or begun; `most`: runs allowed per method; `price`: cost of a second, a fraction of the metric. `kept`: share of a
    whole run's gain that a run with a part of its steps keeps. `again`: gain per second of another run of a method for
    its weight average, 0 if missing. `least`: a gain below it is worth no run.
    """
    open_to = [arm for arm in posterior.arms if arm in posterior.ran]
    wanted = {}
    for arm, needed in seconds.items():
        if runs.get(arm, 0) < most and needed <= left:
            gain = kept.get(arm, 1.0) * expected_gain(posterior, arm, open_to)
            if gain > max(least, price * needed):
                wanted[arm] = gain
    if not wanted:
        return None
    arm = max(wanted, key=lambda one: wanted[one] / max(seconds[one], 1e-9))
    largest = max(wanted, key=lambda one: wanted[one])
    if arm != largest:
        after = kept.get(arm, 1.0) * expected_gain(as_if_finished(posterior, largest), arm, [*open_to, largest])
        if seconds[arm] + seconds[largest] > left or after < again.get(largest, 0.0) * seconds[arm]:
            arm = largest
    return arm, wanted[arm]
