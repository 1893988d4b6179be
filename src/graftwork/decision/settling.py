"""The number of further validation rows, or of further runs, that would settle the choice between two methods."""

from __future__ import annotations

import math
from dataclasses import dataclass

from scipy.stats import norm

from graftwork.decision.choice import SETTLED
from graftwork.decision.posterior import luck_covariance
from graftwork.decision.standing import Standing
from graftwork.decision.traits import Arm

MOST_TIMES = 20  # largest multiple of the present rows or runs that is still proposed


@dataclass(frozen=True)
class Settling:
    """The further rows, or further runs, that would settle a choice, each alone; None if no feasible number does."""

    rows: int | None  # further validation rows
    runs: int | None  # further runs of each of the two methods


def settling(standing: Standing, chosen: Arm, rival: Arm, worth: float) -> Settling:
    """Estimate the rows or runs after which the probability that `rival` is better by more than `worth` is below
    `SETTLED` or above 1 - `SETTLED`.

    The mean difference is assumed to stay. Its variance is that of a normal prior and a normal observation; one part of
    the observation's variance shrinks with the rows, the other with the runs.
    """
    a, b = standing.arms.index(chosen), standing.arms.index(rival)
    gain = standing.posterior.gain(chosen, rival)[0]
    aim = (abs(gain + worth) / float(norm.isf(SETTLED))) ** 2  # variance that the difference must reach
    before = standing.before.difference(a, b)[1] ** 2
    if aim <= 0:
        return Settling(None, None)
    if aim >= before:
        return Settling(0, 0)
    look = 1 / (1 / aim - 1 / before)  # variance allowed for rows and runs together
    luck = luck_covariance(standing.arms, standing.run_scores, standing.rows, standing.spread, standing.prior.sizes)
    of_rows = float(luck[a, a] + luck[b, b] - 2 * luck[a, b])
    runs = [max(1, standing.runs(arm)) for arm in (chosen, rival)]
    seeds = standing.posterior.seed_variance
    of_runs = float(seeds[a] / runs[0] + seeds[b] / runs[1])
    return Settling(
        rows=_more(standing.rows, of_rows, look - of_runs, standing.rows),
        runs=_more(min(runs), of_runs, look - of_rows, min(runs)),
    )


def _more(there: int, variance: float, allowed: float, least: int) -> int | None:
    """Return how many more observations reduce `variance` to `allowed`; None if too many."""
    if allowed <= 0:
        return None
    wanted = math.ceil(there * variance / allowed)
    return max(1, wanted - there) if wanted <= MOST_TIMES * max(least, 1) else None
