"""Averages of the weights of the runs of one method in a climb: which are worth their time, and which run is kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from statistics import fmean

from graftwork.budget.forecast import Forecast
from graftwork.budget.rung import Rung
from graftwork.core.configured_methods import configured
from graftwork.decision.next_run import LEAST_GAIN
from graftwork.decision.standing import Standing
from graftwork.decision.traits import Arm

MOST_GAINED = 0.02  # in spreads: what the mean weights of many runs gain over one run (docs/log.md)


def gain_of_average(runs: int) -> float:
    """Return the expected gain of the mean weights of so many runs over one run, in spreads."""
    return MOST_GAINED * (1 - 1 / runs)


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
) -> tuple[Arm, float] | None:
    """Return the method whose average of further runs is worth most, and its gain over the `best` expected score.

    `seconds`: time of one more run of each method that can be averaged; `most`: runs of a method; `price`: the gain
    that a second must be worth; `left`: the seconds that are left. None if no average is worth the time of its runs.
    """
    found: dict[Arm, tuple[float, float]] = {}  # method -> its gain less the price of the runs; its gain
    for arm, each in seconds.items():
        made, answering = standing.begun[arm], answering_seconds(rungs, arm)
        for runs in range(max(2, made + 1), most + 1):
            gain, needed = _expected(standing, arm, runs) - best, (runs - made) * each + answering
            if needed <= left and gain > max(LEAST_GAIN, price * needed):
                found[arm] = max(found.get(arm, (0.0, 0.0)), (gain - price * needed, gain))
    return max(((arm, gain) for arm, (_, gain) in found.items()), key=lambda one: found[one[0]], default=None)


def _expected(standing: Standing, arm: Arm, runs: int) -> float:
    """Return the expected score of the average of so many runs of a method."""
    there = standing.posterior
    return float(there.mean[there.arms.index(arm)]) + gain_of_average(runs) * standing.spread


def runs_of(rungs: Sequence[Rung], arm: Arm) -> list[Rung]:
    """Return the successful runs of a method."""
    return [rung for rung in rungs if rung.evidence and not rung.averages and rung.arm == arm]


def averages_of(rungs: Sequence[Rung], arm: Arm) -> list[Rung]:
    """Return the averages of a method's runs."""
    return [rung for rung in rungs if rung.evidence and rung.averages and rung.arm == arm]


def answering_seconds(rungs: Sequence[Rung], arm: Arm) -> float:
    """Return the seconds that the last run of a method took besides training, as an average of its runs does; 0 if it
    has none."""
    last = next((rung.result for rung in reversed(runs_of(rungs, arm)) if rung.result), None)
    if last is None:
        return 0.0
    trained = (last.costs["train_seconds"].value or 0.0) - last.shared.wall_seconds
    return max(0.0, last.spent.wall_seconds - trained)


def worth_averaging(rungs: Sequence[Rung], arm: Arm) -> bool:
    """Return whether the last average of a method's runs is kept, or whether there is none yet."""
    tried = [rung for rung in rungs if rung.averages and rung.arm == arm]
    return not tried or kept_of(rungs, arm) is tried[-1]


def average_of(rungs: Sequence[Rung], arm: Arm) -> Rung | None:
    """Return a rung that averages the runs of a method; None unless they are two or more with successive seeds, or if
    it is among `rungs`, whatever became of it."""
    runs = runs_of(rungs, arm)
    seeds = sorted(rung.seed for rung in runs)
    if len(runs) < 2 or seeds != list(range(seeds[0], seeds[0] + len(runs))):
        return None
    first = runs[0]
    method = configured("average", {"runs": len(runs), "by": first.method.label})
    if any(rung.method == method for rung in rungs):
        return None
    forecast = Forecast({"evaluation": answering_seconds(rungs, arm)})
    return Rung(method, seeds[0], averages=first.method, part=first.part, forecast=forecast)


def kept_of(rungs: Sequence[Rung], arm: Arm) -> Rung | None:
    """Return the rung of a method to keep: the average of most runs unless it is below their mean on validation, else
    the run that is best there."""
    runs, averages = runs_of(rungs, arm), averages_of(rungs, arm)
    scores = [rung.evidence.score for rung in runs if rung.evidence]
    last = averages[-1] if averages else None
    if last is not None and last.evidence is not None and last.evidence.score >= fmean(scores):
        return last
    return max(runs, key=lambda rung: rung.evidence.score if rung.evidence else 0.0, default=None)


def kept_among(standing: Standing, rungs: Sequence[Rung], tie: float) -> Rung | None:
    """Return the rung to keep of the chosen method, or the average of another one that is expected to score higher by
    `tie`."""
    own, score = kept_of(rungs, standing.choice(tie).chosen), partial(expected_score, standing)
    averages = [rung for arm in standing.arms if (rung := kept_of(rungs, arm)) and rung.averages]
    best = max(averages, key=score, default=own)
    return own if own and best and score(best) <= score(own) + tie else best


def new_average(
    standing: Standing, rungs: Sequence[Rung], arms: Sequence[Arm], best: Rung, price: float
) -> Rung | None:
    """Return the best average of the runs of one of these methods that is not among `rungs`.

    None if it is not expected to score above `best` by what its time is worth, `price` for a second.
    """
    new = [average for arm in arms if (average := average_of(rungs, arm))]
    found = max(new, key=partial(expected_score, standing), default=None)
    if found is None or found.forecast is None:
        return None
    gain = expected_score(standing, found) - expected_score(standing, best)
    return found if gain > price * found.forecast.seconds else None
