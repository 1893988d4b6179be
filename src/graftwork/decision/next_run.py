"""What one more run is worth: by how much the best choice is expected to be better once it is known.

The knowledge gradient (Frazier, Powell & Dayanik 2009) of a normal posterior: a run's result is itself normal, and
moves every method's mean by a known multiple of how far it comes out above what was expected.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from types import MappingProxyType

import numpy as np
from scipy.stats import norm

from graftwork.decision.posterior import Posterior
from graftwork.decision.traits import Arm

LEAST_GAIN = 1e-4  # a hundredth of a point: less is not worth a run, whatever it costs
STEPS = 256  # of the result's distribution
_RESULTS = norm.ppf((np.arange(STEPS) + 0.5) / STEPS)  # (STEPS,) equally likely, in standard deviations


def expected_gain(posterior: Posterior, run: Arm, open_to: Collection[Arm]) -> float:
    """A fraction, 0 or above: the expected score of the best choice after one more run of a method, less that before.

    `open_to` are the methods that can be chosen now; the one that runs can be afterwards.
    """
    means, moves = _moved(posterior, run)
    now = [place for place, arm in enumerate(posterior.arms) if arm in open_to]
    then = [place for place, arm in enumerate(posterior.arms) if arm in open_to or arm == run]
    if not now:
        return float("inf")
    best_then = (means[then] + _RESULTS[:, None] * moves[then]).max(axis=1).mean()
    return max(0.0, float(best_then - means[now].max()))


def assumed(posterior: Posterior, run: Arm) -> Posterior:
    """The posterior once a run that is on its way has come out as expected: means stay, variances shrink."""
    place, count = posterior.arms.index(run), len(posterior.arms)
    shown = np.zeros(2 * count)
    shown[place] = shown[count + place] = 1.0
    towards = posterior.covariance @ shown
    variance = float(shown @ towards) + float(posterior.seed_variance[place])
    covariance = posterior.covariance - np.outer(towards, towards) / variance
    return Posterior(posterior.arms, posterior.mean, covariance, posterior.seed_variance, posterior.ran | {run})


def _moved(posterior: Posterior, run: Arm) -> tuple[np.ndarray, np.ndarray]:
    """(M,) the scores' means, and what a result one standard deviation above expectation adds to each."""
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
) -> tuple[Arm, float] | None:
    """The run that gains most for its time, and its expected gain; None where none gains more than it costs.

    `seconds` that one more run of each method takes (a method that is not named can't run), `runs` that each has made
    or begun, `most` that it may make; a second costs `price`, a fraction of the metric. Where the seconds that are
    `left` don't pay for this run and for the one that gains most, it is the latter. Of a run with a part of its steps,
    `kept` is the share of a whole run's gain that is left to it.
    """
    open_to = [arm for arm in posterior.arms if arm in posterior.ran]
    wanted = {}
    for arm, needed in seconds.items():
        if runs.get(arm, 0) < most and needed <= left:
            gain = kept.get(arm, 1.0) * expected_gain(posterior, arm, open_to)
            if gain > max(LEAST_GAIN, price * needed):
                wanted[arm] = gain
    if not wanted:
        return None
    arm = max(wanted, key=lambda one: wanted[one] / max(seconds[one], 1e-9))
    largest = max(wanted, key=lambda one: wanted[one])
    if seconds[arm] + seconds[largest] > left:
        arm = largest
    return arm, wanted[arm]
