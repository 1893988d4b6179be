"""Weight averages of a method's runs in `climb`: which averages are worth their time, and which run is kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from statistics import fmean

import numpy as np

from graftwork.budget.forecast import Forecast
from graftwork.budget.rung import Rung
from graftwork.core.configured_methods import configured
from graftwork.decision.next_run import LEAST_GAIN
from graftwork.decision.standing import Standing
from graftwork.decision.traits import Arm
from graftwork.run.earlier_training import are_successive
from graftwork.run.score_interval import Evidence

MOST_GAINED = 0.02  # score gain from averaging the weights of many runs over one run, in spreads (docs/log.md)
GAIN_VARIES = 1.0  # standard deviation of that gain between tasks, as a multiple of its mean (docs/log.md)


def gain_of_average(runs: int) -> float:
    """Return the expected score gain, in spreads, of the average of `runs` runs' weights over a single run."""
    return MOST_GAINED * (1 - 1 / runs)


def outscores(average: Evidence, runs: Sequence[Evidence], spread: float) -> bool:
    """Return whether the average of these runs is expected to score higher than one of them, with what validation says.

    The gain is normal beforehand, with mean `gain_of_average` and `GAIN_VARIES` times that as standard deviation; the
    variance of the gain on validation is that of the paired bootstrap over rows.
    """
    usual, varied = gain_of_average(len(runs)) * spread, GAIN_VARIES * gain_of_average(len(runs)) * spread
    seen = average.score - fmean(run.score for run in runs)
    luck = float(np.var(average.draws - np.mean([run.draws for run in runs], axis=0)))
    return luck * usual + varied**2 * seen >= 0


def gains_per_second(standing: Standing, seconds: Mapping[Arm, float]) -> dict[Arm, float]:
    """Return what the average of two runs is expected to gain over one, per second of a run of each method."""
    return {arm: gain_of_average(2) * standing.spread / max(each, 1e-9) for arm, each in seconds.items()}


def expected_score(standing: Standing, rung: Rung) -> float:
    """Return the expected score of a run, or of an average, on fresh examples."""
    return _expected(standing, rung.arm, rung.method.config["runs"] if rung.averages else 1)


def next_to_average(
    standing: Standing,
    rungs: Sequence[Rung],
    seconds: Mapping[Arm, float],
    most: int,
    best: float,
    price: float,
    left: float,
) -> tuple[Arm, float, float] | None:
    """Return the method whose average over more runs is worth most, its gain over the score `best`, and its seconds.

    `seconds`: time of one more run of each method that can be averaged; `most`: runs per method, at most; `price`: the
    gain that a second must yield; `left`: the remaining seconds. None if no average is worth the time of its runs.
    """
    found: list[tuple[float, Arm, float, float]] = []  # (gain minus the price of the runs, method, gain, seconds)
    for arm, each in seconds.items():
        made, answering = standing.begun[arm], answering_seconds(rungs, arm)
        for runs in range(max(2, made + 1), most + 1):
            gain, needed = _expected(standing, arm, runs) - best, (runs - made) * each + answering
            if needed <= left and gain > max(LEAST_GAIN, price * needed):
                found.append((gain - price * needed, arm, gain, needed))
    return max(found, key=lambda one: one[0])[1:] if found else None


def _expected(standing: Standing, arm: Arm, runs: int) -> float:
    """Return the expected score of the weight average of `runs` runs of a method."""
    there = standing.posterior
    return float(there.mean[there.arms.index(arm)]) + gain_of_average(runs) * standing.spread


def runs_of(rungs: Sequence[Rung], arm: Arm) -> list[Rung]:
    """Return the successful runs of a method."""
    return [rung for rung in rungs if rung.evidence and not rung.averages and rung.arm == arm]


def averages_of(rungs: Sequence[Rung], arm: Arm) -> list[Rung]:
    """Return the averages of a method's runs."""
    return [rung for rung in rungs if rung.evidence and rung.averages and rung.arm == arm]


def answering_seconds(rungs: Sequence[Rung], arm: Arm) -> float:
    """Return the seconds that a method's last run spent on everything but training; an average takes as long. 0 for a
    method without a run."""
    last = next((rung.result for rung in reversed(runs_of(rungs, arm)) if rung.result), None)
    if last is None:
        return 0.0
    trained = (last.costs["train_seconds"].value or 0.0) - last.shared.wall_seconds
    return max(0.0, last.spent.wall_seconds - trained)


def worth_averaging(standing: Standing, rungs: Sequence[Rung], arm: Arm) -> bool:
    """Return True if the method's last average is the rung to keep, or if no average was tried yet."""
    tried = [rung for rung in rungs if rung.averages and rung.arm == arm]
    return not tried or kept_of(standing, rungs, arm) is tried[-1]


def average_of(rungs: Sequence[Rung], arm: Arm) -> Rung | None:
    """Return a new rung that averages all runs of a method; None for fewer than two runs, for seeds that are not
    successive, or if `rungs` contains this average already, whether it succeeded or not."""
    runs = runs_of(rungs, arm)
    seeds = sorted(rung.seed for rung in runs)
    if not are_successive(seeds):
        return None
    first = runs[0]
    method = configured("average", {"runs": len(runs), "by": first.method.label})
    if any(rung.method == method for rung in rungs):
        return None
    forecast = Forecast({"evaluation": answering_seconds(rungs, arm)})
    return Rung(method, seeds[0], averages=first.method, part=first.part, forecast=forecast)


def kept_of(standing: Standing, rungs: Sequence[Rung], arm: Arm) -> Rung | None:
    """Return the rung of a method to keep: its last average if that is expected to score higher than its runs, else the
    run with the highest validation score."""
    runs, averages = runs_of(rungs, arm), averages_of(rungs, arm)
    known = [rung.evidence for rung in runs if rung.evidence]
    last = averages[-1] if averages else None
    if last is not None and last.evidence is not None and outscores(last.evidence, known, standing.spread):
        return last
    return max(runs, key=lambda rung: rung.evidence.score if rung.evidence else 0.0, default=None)


def kept_among(standing: Standing, rungs: Sequence[Rung], tie: float) -> Rung | None:
    """Return the rung to keep: that of the chosen method, or another method's average if its expected score is higher
    by more than `tie`, a fraction."""
    own, score = kept_of(standing, rungs, standing.choice(tie).chosen), partial(expected_score, standing)
    averages = [rung for arm in standing.arms if (rung := kept_of(standing, rungs, arm)) and rung.averages]
    best = max(averages, key=score, default=own)
    return own if own and best and score(best) <= score(own) + tie else best


def new_average(
    standing: Standing, rungs: Sequence[Rung], arms: Sequence[Arm], best: Rung, price: float
) -> Rung | None:
    """Return the average with the highest expected score, over these methods, that is not among `rungs` yet.

    None unless its expected gain over `best` exceeds the price of its seconds; `price` is the gain that one must yield.
    """
    new = [average for arm in arms if (average := average_of(rungs, arm))]
    found = max(new, key=partial(expected_score, standing), default=None)
    if found is None or found.forecast is None:
        return None
    gain = expected_score(standing, found) - expected_score(standing, best)
    return found if gain > price * found.forecast.seconds else None
