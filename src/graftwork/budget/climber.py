"""The search of `climb`: selection of the next run, the check that the budget allows it, and its outcome."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

from graftwork.budget import averaging
from graftwork.budget.budget_account import BudgetAccount, OverBudget, hard_stop
from graftwork.budget.forecast import LEAST_PART, PARTS, Forecast, Forecasts
from graftwork.budget.rung import PossibleRun, Rung, kept_gain, search_record
from graftwork.core.configured_methods import ConfiguredMethod, configured
from graftwork.core.method import unfit
from graftwork.core.progress import Progress
from graftwork.core.run import Recipe
from graftwork.decision.choice import WORTH
from graftwork.decision.next_run import expected_gain
from graftwork.decision.standing import Standing, price_of_a_second
from graftwork.decision.traits import TUNED, Arm
from graftwork.run.earlier_training import began_alike
from graftwork.run.execute import execute
from graftwork.run.score_interval import validation_evidence
from graftwork.run.session import Session
from graftwork.units import percent, show

MARGIN = 1.1  # a run is started when the remaining budget is at least this multiple of its forecast
HARD_STOP = 1.02  # multiple of the budget at which a run is stopped; with cleaning up it then ends below 1.05
HOPELESS = 2.0  # a method whose FLOPs need more than this multiple of the remaining budget is not even measured
COMPUTING = ("prefix", "steps", "validation")  # parts of a forecast that the FLOPs account for
SECONDS_PER_FLOP = 1e-11  # used until a method is measured; it only decides which method is measured first
MOST_SEEDS = 5  # seeds per method, at most
OTHER_RATES = (2.0, 0.5)  # multiples of the best method's learning rate, tried once nothing else is worth its time
SPENT, INTERRUPTED = "the budget is spent", "interrupted"  # reasons for the end of a climb
TIE = 0.001  # a tenth of a point, as a fraction: of methods with expected scores this close, the cheapest is chosen


class Climber:
    """The state of one search within a budget. `worth` is a fraction of the headline metric."""

    def __init__(
        self,
        session: Session,
        account: BudgetAccount,
        forecasts: Forecasts,
        recipe: Recipe,
        seed: int,
        progress: Progress,
        worth: float = WORTH,
    ):
        self.session, self.account, self.forecasts, self.recipe, self.seed = session, account, forecasts, recipe, seed
        self.progress, self.worth, self.tie = progress, worth, min(worth, TIE)
        self.standing = Standing.on(session.dataset, session.backbone)
        self.rungs: list[Rung] = []  # in the order of the decisions
        self.first: dict[Arm, Rung] = {}  # method -> its rung with the first seed, whether executed or not
        self.closed: set[Arm] = set()  # methods that failed or that the budget does not pay for
        self._counted: set[Arm] = set()  # methods whose FLOPs were estimated
        self.stopped = ""  # why the climb ended; empty while it continues
        self.seconds_per_flop = SECONDS_PER_FLOP
        self.uncounted = 0.0  # seconds of a run beside its counted FLOPs: predicting, saving
        self.measuring = 0.0  # measuring time of a method that trains the network, as a multiple of its run time

    def unfit(self, method: ConfiguredMethod, backbone: bool = True) -> str:
        """Return why a method can't be tried here, or an empty string; without `backbone`, only the task's reasons."""
        card = self.session.backbone.card if self.session.backbone and backbone else None
        return unfit(method.method, self.session.dataset.task, card)

    def climb(self, methods: Sequence[ConfiguredMethod], keep: Callable[[], object] = lambda: None) -> None:
        """Execute the runs that are worth most, each forecast before it starts; call `keep` after every run.

        The first run is of a method without a backbone, before other methods are estimated: so a result exists early.
        """
        for method in methods:
            self.session.spec(method, self.recipe, self.seed)  # raises for an invalid recipe before any run
        self._open(methods)
        try:
            while not self.stopped:
                rung = self._next()
                while rung is not None and self._ready(rung) and self._run(rung):
                    self._judge(rung)
                    keep()
                    rung = self._average() if rung.averages is None else None
        except KeyboardInterrupt:
            if not self.standing.run_scores:
                raise
            self.stopped = INTERRUPTED
        self._leave()

    def _open(self, methods: Sequence[ConfiguredMethod]) -> None:
        """Add these methods as candidates."""
        for method in methods:
            arm, rung = Arm.of(method), Rung(method, self.seed)
            if self.session.store.find(self.session.spec(method, self.recipe, self.seed).id) is not None:
                rung.forecast = Forecast()  # already stored: it takes no time
            self.first[arm] = rung
            self.standing.admit(arm)

    def _count(self, arms: Sequence[Arm]) -> bool:
        """Estimate the FLOPs of the arms without estimate and forecast; return False if that spent the budget."""
        try:
            with hard_stop(self.account, self.account.budget.amount) as check:
                for arm in arms:
                    rung = self.first[arm]
                    if rung.forecast is None and arm not in self._counted:
                        check()
                        self._report(rung, "estimating")
                        with suppress(Exception):  # a method that can't be built is reported when it is measured
                            rung.operations = self.forecasts.operations(rung.method)
                        self._counted.add(arm)
        except OverBudget:
            self.stopped = SPENT
        return not self.stopped

    def _next(self) -> Rung | None:
        """Return the next run; None if the climb has ended, or if new candidates were added instead."""
        waiting = [arm for arm in self.first if arm not in self.closed and not self.standing.begun[arm]]
        simple = [arm for arm in waiting if arm.sort != TUNED]
        if simple or not self.standing.run_scores:
            free = [arm for arm in simple if not self.first[arm].method.method.uses_backbone]
            group = (not self.standing.run_scores and free) or simple or waiting
            if not self._count(group):
                return None
            arm = min(group, key=self._expected, default=None)
            if arm is None:
                self.stopped = "every method was tried"
            return None if arm is None else self.first[arm]
        open_to = [arm for arm in self.first if arm not in self.closed]
        if not self._count(open_to):
            return None
        whole = self._whole()
        left = whole * self.account.left / self.account.budget.amount / MARGIN
        found = None
        for hope in (1.0, HOPELESS):  # runs that fit the budget come before measuring methods that may not fit
            offers = {arm: self._offer(arm, left, hope) for arm in open_to}
            seconds = {arm: offer.seconds for arm, offer in offers.items()}
            shares = {arm: offer.kept for arm, offer in offers.items()}
            alike = {arm: needed for arm, needed in seconds.items() if self._can_be_averaged(arm)}
            again = averaging.gains_per_second(self.standing, alike)
            found = found or self.standing.next_run(seconds, MOST_SEEDS, self.worth, whole, left, shares, again)
        average = self._one_more_to_average(alike, whole, left)
        if average is not None:  # it comes before a run that gains less per second and can be paid for after it
            arm, gain, needed = average
            other, by_other = (seconds[found[0]], found[1]) if found else (0.0, 0.0)
            if found is None or (gain * other > by_other * needed and needed + other <= left):
                found = arm, gain
        if found is None:
            more = self.standing.next_run(seconds, MOST_SEEDS, self.worth, whole)
            if more or self._one_more_to_average(alike, whole, math.inf):
                self.stopped = "the budget pays for nothing more that is worth it"
                return None
            self._try_other_rates()
            return None
        arm, gain = found
        made = self.standing.begun[arm]
        first = self.first[arm]
        rung = first if made == 0 else Rung(first.method, self.seed + made, part=first.part)
        rung.gain = gain
        if made == 0 and self.recipe.epochs is None and rung.forecast is not None and rung.result is None:
            rung.forecast = rung.forecast.within(left)  # a first run is cut to the part that is affordable
            rung.part = rung.forecast.part
        return rung

    def _one_more_to_average(
        self, alike: Mapping[Arm, float], whole: float, left: float
    ) -> tuple[Arm, float, float] | None:
        """Return the method to run more often for its weight average, the gain and the seconds; None if not worth it.

        `alike`: seconds of one more run of each method whose runs can be averaged.
        """
        price, best = price_of_a_second(self.worth, whole), self.chosen()
        if best is None or not alike:
            return None
        score = averaging.expected_score(self.standing, best)
        return averaging.next_to_average(self.standing, self.rungs, alike, MOST_SEEDS, score, price, left)

    def _can_be_averaged(self, arm: Arm) -> bool:
        """Return whether all runs of a method start from the same weights, and its last average, if any, was kept."""
        first = self.first[arm]
        alike = arm.sort == TUNED and began_alike(self.session, first.method.method, first.result)
        return alike and averaging.worth_averaging(self.standing, self.rungs, arm)

    def _average(self) -> Rung | None:
        """Return the best weight average that is not made yet, if its expected gain is worth its time."""
        arms = [arm for arm in self.standing.arms if self._can_be_averaged(arm)]
        best, price = self.chosen(), price_of_a_second(self.worth, self._whole())
        return averaging.new_average(self.standing, self.rungs, arms, best, price) if best else None

    def _recipe(self, rung: Rung) -> Recipe:
        """Return the recipe of a run, with its part of the steps."""
        return self.recipe if rung.part == 1 else replace(self.recipe, part=rung.part)

    def _whole(self) -> float:
        """Return the whole budget in seconds, at the present rate of spending."""
        return self.account.budget.amount / max(1e-12, self.account.price(1.0))

    def _try_other_rates(self) -> None:
        """Add the best method at twice and half its learning rate; end the climb if that adds nothing new."""
        kept = self.chosen()
        best = kept.arm if kept else self.standing.choice(self.tie).chosen
        item = self.first[best].method
        searched = best.sort == TUNED and "learning_rate" in item.config and "learning_rate" not in item.given
        own = self.session.learning_rate(item) if searched else None
        settings = {key: value for key, value in item.config.items() if key not in ("name", "version")}
        rates = [factor * own for factor in OTHER_RATES] if own else []
        others = [configured(item.config["name"], {**settings, "learning_rate": rate}) for rate in rates]
        fresh = [other for other in others if Arm.of(other) not in self.first]
        if not fresh:
            dear = any(rung.decision == "not affordable" for rung in self.rungs)
            self.stopped = "the budget pays for nothing more that is worth it" if dear else "nothing more is worth it"
        self._open(fresh)

    def _expected(self, arm: Arm) -> float:
        """Estimate the seconds of a method's next run from what is known so far."""
        rung = self.first[arm]
        if self.standing.begun[arm] and rung.result is not None:
            return rung.result.spent.wall_seconds
        return rung.forecast.seconds if rung.forecast else rung.operations * self.seconds_per_flop + self.uncounted

    def _offer(self, arm: Arm, left: float, hope: float) -> PossibleRun:
        """Return a method's next run, or the part of its steps that fits into the `left` seconds.

        For a method that was never measured this is a guess, which counts as affordable unless it needs more than
        `hope` times `left`.
        """
        expected, rung = self._expected(arm), self.first[arm]
        can_be_cut = self.recipe.epochs is None and arm.sort == TUNED
        if self.standing.begun[arm]:
            return PossibleRun(expected, kept_gain(rung.part))
        if rung.forecast is not None:
            there = rung.forecast.within(left) if can_be_cut else rung.forecast
            return PossibleRun(there.seconds, kept_gain(there.part))
        fixed, steps = self.measuring * expected + self.uncounted, rung.operations * self.seconds_per_flop
        least = LEAST_PART / PARTS if can_be_cut else 1.0
        part = min(1.0, max(least, (left - fixed) / max(steps, 1e-9)))
        seconds = fixed + part * steps
        return PossibleRun(seconds if seconds > hope * left else min(seconds, left), kept_gain(part))

    def _ready(self, rung: Rung) -> bool:
        """Return whether the run can start now; False after measuring a method that had no forecast."""
        arm = rung.arm
        if rung is self.first[arm] and rung.forecast is None:
            self._measure(rung)
            if rung.decision:
                self._close(arm, rung)
            return False
        if rung.forecast is None:
            spec = self.session.spec(rung.method, self._recipe(rung), rung.seed)
            there = self.session.store.find(spec.id) is not None
            rung.forecast = Forecast() if there else Forecast({"as before": self._expected(arm)})
        needed, left = self.account.price(rung.forecast.seconds), self.account.left
        if MARGIN * needed <= left or not rung.forecast.parts:
            return True
        self._too_dear(rung, f"needed {MARGIN} x {self._show(needed)}")
        self._close(arm, rung)
        return False

    def _close(self, arm: Arm, rung: Rung) -> None:
        self.rungs.append(rung)
        if rung.averages is None:
            self.closed.add(arm)
        if self.account.left <= 0:
            self.stopped = SPENT

    def _measure(self, rung: Rung) -> None:
        """Measure the forecast of a run, unless its FLOPs show that the budget cannot pay for it."""
        expected, left = rung.operations * self.seconds_per_flop, self.account.left
        if self.recipe.epochs is None and rung.arm.sort == TUNED:
            expected *= LEAST_PART / PARTS  # the smallest part that it may be cut to
        if self.seconds_per_flop != SECONDS_PER_FLOP and self.account.price(expected) > HOPELESS * left:
            return self._too_dear(rung, f"by its operations needed about {self._show(self.account.price(expected))}")
        self._report(rung, "measuring")
        began = self.account.seconds()
        self.account.start_rating()
        try:
            with hard_stop(self.account, self.account.budget.amount):
                rung.forecast = self.forecasts.forecast(rung.method)
        except OverBudget:
            self.stopped = SPENT
            return self._too_dear(rung, "could not even be measured")
        except Exception as error:  # the run would fail the same way
            rung.decision, rung.reason = "failed", str(error) or type(error).__name__
            return None
        finally:
            rung.measuring_seconds = self.account.seconds() - began
        busy = sum(rung.forecast.parts.get(part, 0.0) for part in COMPUTING)  # seconds of the counted FLOPs
        if rung.operations and busy:
            self.seconds_per_flop, self.uncounted = busy / rung.operations, rung.forecast.seconds - busy
            if rung.arm.sort == TUNED:
                self.measuring = rung.measuring_seconds / rung.forecast.seconds
        return None

    def _too_dear(self, rung: Rung, reason: str) -> None:
        rung.decision, rung.reason = "not affordable", f"{reason}, left {self._show(max(0.0, self.account.left))}"

    def _run(self, rung: Rung) -> bool:
        """Execute a rung's run; return False if the hard stop ended it. A stopped run leaves at most its checkpoint."""
        began = self.account.seconds()
        self.rungs.append(rung)
        if rung.averages is None:
            self.standing.begin(rung.arm)
        try:
            with hard_stop(self.account, HARD_STOP * self.account.budget.amount) as check:

                def report(done: float, text: str) -> None:
                    check()
                    self._report(rung, text)

                search = search_record(rung, self.rungs, self.session.learning_rate)
                rung.result, rung.reused = execute(
                    self.session, rung.method, self._recipe(rung), rung.seed, report, search
                )
        except OverBudget:
            spent = self.account.spent()
            rung.decision = "interrupted"
            share = spent / self.account.budget.amount
            rung.reason = f"still running after {self._show(spent)}, {share:.2f} x the budget"
            self.stopped = SPENT
            return False
        except KeyboardInterrupt:
            rung.decision = "interrupted"
            raise
        finally:
            rung.seconds = self.account.seconds() - began
        return True

    def _judge(self, rung: Rung) -> None:
        """Add a run's validation score to the standing, unless it is an average, and set the rung's decision."""
        assert rung.result is not None
        arm = rung.arm
        if rung.result.status != "ok":
            rung.decision, rung.reason = "failed", rung.result.error
            if rung.averages:  # the runs themselves are fine
                return
            self.closed.add(arm)
            if self.standing.runs(arm):  # runs with earlier seeds remain valid
                self.standing.begun[arm] = self.standing.runs(arm)
            else:
                self.standing.give_up(arm)
            return
        before = self.chosen()
        rung.evidence = validation_evidence(self.session.dataset, self.session.store.root / rung.result.id)
        price = rung.result.costs.get("train_seconds")
        if rung.averages is None:
            self.standing.add(arm, rung.evidence, price.value if price else None, rung.result.kept_best_epoch)
        rung.decision = "not better"
        self._mark_kept()
        if before is not None and before.evidence is not None:
            low, high = rung.evidence.gain_over(before.evidence)
            rung.reason = f"{100 * low:+.1f} to {100 * high:+.1f} points against {before.method.label}"

    def _mark_kept(self) -> None:
        """Mark only the chosen run as kept."""
        chosen = self.chosen()
        for rung in self.rungs:
            if rung is chosen or rung.decision == "kept":
                rung.decision = "kept" if rung is chosen else "best so far"

    def _leave(self) -> None:
        """Append the methods that were not tried, with reasons."""
        self._mark_kept()
        for arm, rung in sorted(self.first.items(), key=lambda item: self._expected(item[0])):
            if rung not in self.rungs:
                rung.gain = self._gain(arm)
                self._say_why_not(arm, rung)
                self.rungs.append(rung)

    def _say_why_not(self, arm: Arm, rung: Rung) -> None:
        """Set the decision and the reason of a method that was not tried."""
        needed = self.account.price(self._expected(arm))
        if self.stopped in (SPENT, INTERRUPTED) or rung.gain is None:
            rung.decision = "not tried"
        elif MARGIN * needed > self.account.left:
            by = "" if rung.forecast else "by its operations "
            return self._too_dear(rung, f"{by}needed about {self._show(needed)}")
        else:
            rung.decision = "not worth it"
        rung.reason = self.stopped if rung.gain is None else f"expected to gain {percent(rung.gain, 2)} points"
        return None

    def _gain(self, arm: Arm) -> float | None:
        """Return the expected gain of one more run of a method; None if nothing has run or it is not a candidate."""
        there = self.standing.posterior
        return expected_gain(there, arm, there.ran) if there.ran and arm in there.arms else None

    def chosen(self) -> Rung | None:
        """Return the rung to keep: the chosen method's weight average or its best run on validation, or an average of
        another method that is expected to score higher by more than `tie`. None before the first score."""
        if not self.standing.run_scores:
            return None
        return averaging.kept_among(self.standing, self.rungs, self.tie)

    def _report(self, rung: Rung, text: str) -> None:
        share = self.account.spent() / self.account.budget.amount
        self.progress(min(1.0, share), f"{rung.method.label}: {text}")

    def _show(self, amount: float) -> str:
        return show(amount, self.account.budget.unit)
