"""What would settle which of two methods to use: so many validation rows, or so many runs of each."""

from __future__ import annotations

import math
from dataclasses import dataclass

from scipy.stats import norm

from graftwork.decision.choice import SETTLED
from graftwork.decision.posterior import luck_covariance
from graftwork.decision.standing import Standing
from graftwork.decision.traits import Arm

MOST_TIMES = 20  # as many rows or runs as there are; more than that settles nothing in practice


@dataclass(frozen=True)
class Settling:
    """How many more rows, or runs, would settle it, each by itself; None where no number in reach does."""

    rows: int | None  # validation rows, beside those that there are
    runs: int | None  # of each of the two, beside those that there are


def settling(standing: Standing, chosen: Arm, rival: Arm, worth: float) -> Settling:
    """How many more should bring the chance that `rival` is better by more than `worth` below `SETTLED`, or near 1.

    The difference is as now, only better known: its variance is that of a normal prior and a normal look, whose parts
    shrink with the rows and with the runs.
    """
    a, b = standing.arms.index(chosen), standing.arms.index(rival)
    gain = standing.posterior.gain(chosen, rival)[0]
    aim = (abs(gain + worth) / float(norm.isf(SETTLED))) ** 2  # the variance that it must come down to
    before = standing.before.difference(a, b)[1] ** 2
    if aim <= 0:
        return Settling(None, None)
    if aim >= before:
        return Settling(0, 0)
    look = 1 / (1 / aim - 1 / before)  # the variance that rows and runs may have together
    luck = luck_covariance(standing.arms, standing.looks, standing.rows, standing.spread, standing.prior.sizes)
    of_rows = float(luck[a, a] + luck[b, b] - 2 * luck[a, b])
    runs = [max(1, standing.runs(arm)) for arm in (chosen, rival)]
    seeds = standing.posterior.seed_variance
    of_runs = float(seeds[a] / runs[0] + seeds[b] / runs[1])
    return Settling(
        rows=_more(standing.rows, of_rows, look - of_runs, standing.rows),
        runs=_more(min(runs), of_runs, look - of_rows, min(runs)),
    )


def _more(there: int, variance: float, allowed: float, least: int) -> int | None:
    """How many more bring `variance` down to what is `allowed`."""
    if allowed <= 0:
        return None
    wanted = math.ceil(there * variance / allowed)
    return max(1, wanted - there) if wanted <= MOST_TIMES * max(least, 1) else None
