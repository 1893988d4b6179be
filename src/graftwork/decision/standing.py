"""What is known of the methods on one task, run by run: for a comparison and for a budget alike."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

import numpy as np

from graftwork.core.backbone import Backbone
from graftwork.core.task import Dataset
from graftwork.decision.choice import WORTH, Decision, choose
from graftwork.decision.next_run import assumed, best_next
from graftwork.decision.posterior import Look, Posterior, posterior
from graftwork.decision.prior import Belief, Prior, landmark_of, spread_of
from graftwork.decision.traits import Arm, Traits
from graftwork.run.score_interval import Evidence

BUDGETS = 10.0  # so many times what a search may take is worth `worth` points: little, so that it looks with care
_NORMAL_QUANTILE = 1.645  # of the normal distribution at 95 %
FLAT = 1e6  # variance of a score, in squared spreads, of which nothing is known beforehand


class Standing:
    """The candidates, what their runs showed on validation so far, and what follows from that."""

    def __init__(self, arms: Sequence[Arm], traits: Traits, rows: int, prior: Prior):
        self.arms, self.traits, self.rows, self.prior = tuple(arms), traits, rows, prior
        self.looks: list[Look] = []
        self.seconds: dict[Arm, list[float]] = {}  # of training, run by run
        self.begun: dict[Arm, int] = dict.fromkeys(self.arms, 0)  # runs that were made or are on their way
        self._known: Posterior | None = None

    @classmethod
    def on(cls, dataset: Dataset, backbone: Backbone | None, arms: Sequence[Arm] = ()) -> Standing:
        """Before any run on these rows, with the prior that has not seen them."""
        traits = Traits.of(dataset, backbone.card.id if backbone else None)
        return cls(arms, traits, len(dataset.validation.examples), Prior.load(dataset.digest))

    def admit(self, arm: Arm) -> None:
        """A method is a candidate too."""
        self.arms, self.begun[arm] = (*self.arms, arm), 0
        self._known = None

    def begin(self, arm: Arm) -> None:
        """A run of a method is on its way."""
        self.begun[arm] += 1

    def add(self, arm: Arm, evidence: Evidence, seconds: float | None) -> None:
        """A run of a method went through."""
        self.looks.append(Look(arm, evidence.score, evidence.draws))
        if seconds is not None:
            self.seconds.setdefault(arm, []).append(seconds)
        self._known = None

    def give_up(self, arm: Arm) -> None:
        """A run of a method failed: it can't be chosen."""
        self.arms = tuple(one for one in self.arms if one != arm)
        self.looks = [look for look in self.looks if look.arm != arm]
        self._known = None

    def runs(self, arm: Arm) -> int:
        """How many of a method went through."""
        return sum(look.arm == arm for look in self.looks)

    @property
    def landmarks(self) -> dict[Arm, float]:
        """The mean validation score of each method that has run."""
        scores: dict[Arm, list[float]] = {}
        for look in self.looks:
            scores.setdefault(look.arm, []).append(look.score)
        return {arm: statistics.fmean(of) for arm, of in scores.items()}

    @property
    def spread(self) -> float:
        """The task's unit of differences between methods, a fraction."""
        return spread_of(landmark_of(self.landmarks), self.traits.least)

    @property
    def posterior(self) -> Posterior:
        """What the prior and these runs say together."""
        if self._known is None:
            self._known = self._joined(self.before)
        return self._known

    @property
    def before(self) -> Belief:
        """What the prior alone says."""
        return self.prior.belief(self.traits, self.arms, self.landmarks)

    def _joined(self, belief: Belief) -> Posterior:
        return posterior(belief, self.looks, self.rows, self.spread, self.prior.sizes)

    @property
    def prices(self) -> dict[Arm, float]:
        """Seconds of training of each method that has run."""
        return {arm: statistics.median(of) for arm, of in self.seconds.items()}

    def choice(self, worth: float) -> Decision:
        """The method to use, as far as is known. Something must have run."""
        return choose(self.posterior, self.prices, worth)

    def next_run(
        self,
        seconds: Mapping[Arm, float],
        most: int,
        worth: float,
        whole: float,
        left: float = math.inf,
        kept: Mapping[Arm, float] = MappingProxyType({}),
    ) -> tuple[Arm, float] | None:
        """The run that is worth most, taking those on their way as if they came out as expected, and its gain.

        `seconds` that one more run of each method would take, `most` runs of a method, `whole`: the seconds of all
        that may be spent, `left`: those that can be, `kept`: the share of its gain that a part of a run keeps.
        However much a dearer method must be better by, a search is worth no less care than by default.
        """
        there = self.posterior
        for arm in self.arms:
            on_their_way = self.begun[arm] - self.runs(arm)
            for _ in range(on_their_way):
                there = assumed(there, arm)
        open_to = {arm: seconds[arm] for arm in self.arms if arm in seconds}
        price = min(worth, WORTH) / (BUDGETS * max(whole, 1e-9))
        return best_next(there, open_to, self.begun, most, price, left, kept)

    def expected_before(self, better: Arm, worse: Arm) -> tuple[float, float, float]:
        """What the prior alone says that `better` scores above `worse`, and a 90 % interval."""
        return _interval(*self.before.difference(self.arms.index(better), self.arms.index(worse)))

    def seen(self, better: Arm, worse: Arm) -> tuple[float, float, float]:
        """What these validation rows alone say of it, and a 90 % interval."""
        nothing = replace(self.before, covariance=np.eye(len(self.arms)) * FLAT * self.spread**2)
        alone = self._joined(nothing).scores
        return _interval(*alone.difference(self.arms.index(better), self.arms.index(worse)))


def _interval(mean: float, deviation: float) -> tuple[float, float, float]:
    """A normal number and its 90 % interval."""
    return mean, mean - _NORMAL_QUANTILE * deviation, mean + _NORMAL_QUANTILE * deviation
