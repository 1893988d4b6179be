"""The race: which learning rate a method keeps, and which methods go on (successive halving, Jamieson & Talwalkar 2016,
arXiv:1502.07943; once few are left, a test decides in place of the half)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from graftwork.compare.statistics import LEVEL, Sample, bootstrap
from graftwork.core.metric import Metric
from graftwork.core.over import takes_a_recipe
from graftwork.run.methods import Named, named_from_config
from graftwork.train.recipe import STEPS_OF_A_TRIAL

FACTORS = (1.0, 0.5, 2.0)  # of a method's own learning rate; the first of equals is kept
RATE_SHARE, METHOD_SHARE = 1 / 8, 1 / 4  # of the steps: trials that choose rates, and that drop methods
ALWAYS_KEPT = 2  # methods, by every halving
DRAWS = 1_000


@dataclass(frozen=True)
class Try:
    """A method's trial at one learning rate."""

    learning_rate: float
    run: str
    status: str
    validation: float | None  # headline metric; None when the trial failed
    chosen: bool = False


@dataclass(frozen=True)
class Drop:
    """Why a method left the race. Scores are means of the headline metric on validation, over the runs compared."""

    method: str
    stage: str
    why: str
    validation: float
    leader: str
    leader_validation: float


def races(item: Named) -> bool:
    """Whether a method is trained by gradient, for as long as a recipe says, at a learning rate that can be tried: one
    over another method has none of its own, and runs in full."""
    return item.method.uses_backbone and "learning_rate" in item.config


def rates(item: Named) -> list[float]:
    """The learning rates to try, the method's own first; none when the rate was given."""
    own = float(item.config["learning_rate"])
    return [] if "learning_rate" in item.given else [factor * own for factor in FACTORS]


def at_rate(item: Named, rate: float) -> Named:
    """The same method with that learning rate: the very run that one gets who names it."""
    return named_from_config({**item.config, "learning_rate": rate})


def best_rate(tried: Sequence[Try]) -> float:
    """The rate with the best validation score, the first of equals; the first when every trial failed."""
    scored = [one for one in tried if one.validation is not None]
    return max(scored or tried, key=lambda one: one.validation or 0.0).learning_rate


def worse_half(scores: Mapping[str, float], stage: str) -> list[Drop]:
    """The methods outside the better half by validation score, worst first.

    Of an odd number the middle one stays, and whoever has the score of the last that stays.
    """
    listed = sorted(scores, key=lambda name: scores[name])
    keep = max(ALWAYS_KEPT, math.ceil(len(listed) / 2))
    if len(listed) <= keep:
        return []
    leader, edge = listed[-1], scores[listed[-keep]]
    why = "outside the better half on validation, which does not show it to be worse"
    lost = [name for name in listed if scores[name] < edge]
    return [Drop(name, stage, why, scores[name], leader, scores[leader]) for name in lost]


def behind(samples: Sequence[Sample], metric: Metric, stage: str, *, looks: int) -> list[Drop]:
    """The methods that validation shows to be worse than the best one, worst first.

    The board's own test: a paired bootstrap, corrected for all pairs, since the best one is known only from the
    scores. With one run of a method it is over examples alone. The race's `looks` share the 5 %: each would otherwise
    be another chance to drop a method that is as good.
    """
    if len(samples) < 2:
        return []
    boot = bootstrap(samples, metric, draws=DRAWS, fewest_runs=1)
    scores = {name: float(row.points.mean()) for name, row in boot.rows.items()}
    leader = max(scores, key=lambda name: scores[name])
    lost = [
        (pair.b if pair.a == leader else pair.a, pair.p_holm)
        for pair in boot.differences()
        if leader in (pair.a, pair.b) and pair.p_holm is not None and pair.p_holm < LEVEL / looks
    ]
    lost.sort(key=lambda loser: scores[loser[0]])
    return [
        Drop(name, stage, f"worse than {leader} on validation, p = {p:.1g}", scores[name], leader, scores[leader])
        for name, p in lost
    ]


def not_searched(items: Sequence[Named], searched: Iterable[str]) -> tuple[str, ...]:
    """A note on each method that takes no part and trains at a rate as those do whose rates were `searched`."""
    beside = " and ".join(searched)
    apart = [item.label for item in items if beside and takes_a_recipe(item.method) and not races(item)]
    return tuple(
        f"{label}: the race did not search its learning rate, as it did that of {beside}; part of a difference may be"
        " due to that. --exhaustive searches none"
        for label in apart
    )


def rule(in_full: Sequence[str] = ()) -> str:
    """The rule as the board states it; `in_full` run the methods that take no part."""
    first, second = Fraction(RATE_SHARE), Fraction(METHOD_SHARE)
    others = f" ({', '.join(in_full)})" if in_full else ""
    return (
        "Every method on a backbone that has a learning_rate of its own races, all by one rule; the others"
        f"{others} run in full as they come, also those of them that are trained by gradient. First each trains for"
        f" {first} of its steps (at least {STEPS_OF_A_TRIAL}), seed 0, with once, half and twice its own learning rate,"
        " and keeps the rate with the best validation score, its own among equals; a rate that was given is kept. Then"
        f" each trains for {second} of its steps, then in full, seed by seed. After the former and after seed 0 the"
        f" methods outside the better half by validation score are dropped (at least {ALWAYS_KEPT} stay, and equals"
        " of the last that stays): that saves their runs and does not show them to be worse. After each seed but the"
        " last, a method that validation does show to be worse than the best is dropped: paired bootstrap over seeds"
        " and examples (over examples alone while there is one run), two-sided p, after Holm's correction for all"
        f" pairs, below {LEVEL:g} divided by the number of these looks. A method whose run failed is not judged. No"
        " price decides, and the test split is never looked at."
    )


def stage_of(share: float) -> str:
    """`1/4 of the steps`."""
    return f"{Fraction(share)} of the steps"


def told(tried: Mapping[str, Sequence[Try]]) -> dict[str, list[dict[str, Any]]]:
    """The trials of learning rates as they stand in `leaderboard.json`."""
    return {label: [vars(one) for one in tries] for label, tries in tried.items()}
