"""The standing of a task's methods, updated run by run; used by `compare` and `climb`."""

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
from graftwork.decision.next_run import LEAST_GAIN, as_if_finished, best_next
from graftwork.decision.posterior import Posterior, RunScore, posterior
from graftwork.decision.prior import Belief, Prior, landmark_of, spread_of
from graftwork.decision.traits import Arm, Traits
from graftwork.pretrained.open_backbone import whole_name
from graftwork.run.score_interval import Evidence

BUDGETS = 10.0  # a gain of `worth` is worth this multiple of a search's whole time: time is cheap
_NORMAL_QUANTILE = 1.645  # of the normal distribution at 95 %
FLAT = 1e6  # variance of a score under a flat prior, in squared spreads


class Standing:
    """The candidate methods, their runs' validation scores so far, and the posterior from these."""

    def __init__(self, arms: Sequence[Arm], traits: Traits, rows: int, prior: Prior):
        self.arms, self.traits, self.rows, self.prior = tuple(arms), traits, rows, prior
        self.run_scores: list[RunScore] = []
        self.seconds: dict[Arm, list[float]] = {}  # training seconds, run by run
        self.begun: dict[Arm, int] = dict.fromkeys(self.arms, 0)  # finished and pending runs
        self._known: Posterior | None = None

    @classmethod
    def on(cls, dataset: Dataset, backbone: Backbone | None, arms: Sequence[Arm] = ()) -> Standing:
        """Create the standing before any run on these rows, with a prior that excludes boards of the same rows."""
        traits = Traits.of(dataset, whole_name(backbone.card.id) if backbone else None)
        return cls(arms, traits, len(dataset.validation.examples), Prior.load(dataset.digest))

    def admit(self, arm: Arm) -> None:
        """Add a method as a candidate."""
        self.arms, self.begun[arm] = (*self.arms, arm), 0
        self._known = None

    def begin(self, arm: Arm) -> None:
        """Record that a run of a method has begun."""
        self.begun[arm] += 1

    def add(self, arm: Arm, evidence: Evidence, seconds: float | None, kept_best_epoch: bool) -> None:
        """Record a successful run of a method; `kept_best_epoch` on the rows of the evidence."""
        self.run_scores.append(RunScore(arm, evidence.score, evidence.draws, kept_best_epoch))
        if seconds is not None:
            self.seconds.setdefault(arm, []).append(seconds)
        self._known = None

    def give_up(self, arm: Arm) -> None:
        """Remove a method with a failed run, so that it can't be chosen."""
        self.arms = tuple(one for one in self.arms if one != arm)
        self.run_scores = [one for one in self.run_scores if one.arm != arm]
        self._known = None

    def runs(self, arm: Arm) -> int:
        """Return the number of successful runs of a method."""
        return sum(one.arm == arm for one in self.run_scores)

    @property
    def landmarks(self) -> dict[Arm, float]:
        """The mean validation score of each method that has run."""
        scores: dict[Arm, list[float]] = {}
        for one in self.run_scores:
            scores.setdefault(one.arm, []).append(one.score)
        return {arm: statistics.fmean(of) for arm, of in scores.items()}

    @property
    def spread(self) -> float:
        """The task's unit of differences between methods, a fraction."""
        return spread_of(landmark_of(self.landmarks), self.traits.least)

    @property
    def posterior(self) -> Posterior:
        """The posterior of the prior and the runs so far."""
        if self._known is None:
            self._known = self._joined(self.before)
        return self._known

    @property
    def expected(self) -> Posterior:
        """The posterior if all pending runs end with the expected results."""
        there = self.posterior
        for arm in self.arms:
            for _ in range(self.runs(arm), self.begun[arm]):
                there = as_if_finished(there, arm)
        return there

    @property
    def before(self) -> Belief:
        """The prior distribution of the candidates' scores."""
        return self.prior.belief(self.traits, self.arms, self.landmarks)

    def _joined(self, belief: Belief) -> Posterior:
        return posterior(belief, self.run_scores, self.rows, self.spread, self.prior.sizes)

    @property
    def prices(self) -> dict[Arm, float]:
        """The median training seconds of each method that has run."""
        return {arm: statistics.median(of) for arm, of in self.seconds.items()}

    def choice(self, worth: float) -> Decision:
        """Choose the method to use from the runs so far; at least one must have finished."""
        return choose(self.posterior, self.prices, worth)

    def next_run(
        self,
        seconds: Mapping[Arm, float],
        most: int,
        worth: float,
        whole: float,
        left: float = math.inf,
        kept: Mapping[Arm, float] = MappingProxyType({}),
        again: Mapping[Arm, float] = MappingProxyType({}),
        least: float = LEAST_GAIN,
    ) -> tuple[Arm, float] | None:
        """Return the run that is worth most and its gain; pending runs count as if they came out as expected.

        `seconds`: time of one more run of each method; `most`: runs allowed per method; `whole`: the seconds that the
        whole search may take; `left`: the remaining seconds; `kept`: share of its gain that a part of a run keeps;
        `again`: gain per second of another run of a method for its weight average; `least`: the smallest gain that is
        worth a run at any cost.
        """
        open_to = {arm: seconds[arm] for arm in self.arms if arm in seconds}
        price = price_of_a_second(worth, whole)
        return best_next(self.expected, open_to, self.begun, most, price, left, kept, again, least)

    def expected_before(self, better: Arm, worse: Arm) -> tuple[float, float, float]:
        """Return the score of `better` minus that of `worse` by the prior alone, and its 90 % interval."""
        return _interval(*self.before.difference(self.arms.index(better), self.arms.index(worse)))

    def seen(self, better: Arm, worse: Arm) -> tuple[float, float, float]:
        """Return the score of `better` minus that of `worse` by the validation rows alone, and its 90 % interval."""
        nothing = replace(self.before, covariance=np.eye(len(self.arms)) * FLAT * self.spread**2)
        alone = self._joined(nothing).scores
        return _interval(*alone.difference(self.arms.index(better), self.arms.index(worse)))


def price_of_a_second(worth: float, whole: float) -> float:
    """Return the score gain, a fraction, that a second must yield in a search that may take `whole` seconds.

    A `worth` above the default counts as the default.
    """
    return min(worth, WORTH) / (BUDGETS * max(whole, 1e-9))


def _interval(mean: float, deviation: float) -> tuple[float, float, float]:
    """Return the mean of a normal distribution and its 90 % interval."""
    return mean, mean - _NORMAL_QUANTILE * deviation, mean + _NORMAL_QUANTILE * deviation
