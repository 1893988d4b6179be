"""A climb on its way: which run is next, whether it can be afforded, and what came of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Protocol

from graftwork.budget.forecast import LEAST_PART, PARTS, Forecast
from graftwork.budget.purse import OverBudget, Purse, hard_stop
from graftwork.core.named_methods import Named, named
from graftwork.core.progress import Progress
from graftwork.core.run import Recipe, RunResult
from graftwork.decision.choice import WORTH
from graftwork.decision.next_run import expected_gain
from graftwork.decision.standing import Standing
from graftwork.decision.traits import TUNED, Arm
from graftwork.run.execute import execute
from graftwork.run.receipt import NOTHING_TRIED, SearchRecord
from graftwork.run.score_interval import Evidence, validation_evidence
from graftwork.run.session import Session
from graftwork.units import percent, show

MARGIN = 1.1  # a run is started when so many times its forecast is left
HARD_STOP = 1.04  # of the budget: what runs then is stopped, and cleaning up ends below 1.05
HOPELESS = 2.0  # what by its operations needs so many times what is left is not even measured
DIMINISHING = 3  # a part of a run's steps loses (1 - part) ** DIMINISHING of its expected gain (docs/log.md)
COMPUTING = ("prefix", "steps", "validation")  # parts of a forecast
SECONDS_PER_FLOP = 1e-11  # until something is measured; it decides no more than what is measured first
MOST_SEEDS = 5  # of a method
OTHER_RATES = (2.0, 0.5)  # of the best method's own learning rate, once nothing else is worth its time
SPENT, INTERRUPTED = "the budget is spent", "interrupted"  # why a climb may end
BEST = 0.0  # what a dearer method must be better by: what was trained is paid for, so the best is chosen


def kept(part: float) -> float:
    """The share of a run's expected gain that is left to it with a part of its steps."""
    return float(1 - (1 - part) ** DIMINISHING)


class Forecasts(Protocol):
    """What says how long a run will take; `Forecaster` does."""

    def operations(self, method: Named) -> float:
        """Roughly the FLOPs of its fit."""

    def forecast(self, method: Named) -> Forecast:
        """Its seconds, measured on a sample."""


@dataclass(frozen=True)
class Offer:
    """A method's next run: its expected seconds, and how much of its gain it keeps."""

    seconds: float
    kept: float = 1.0  # share of a whole run's expected gain that is left to it


@dataclass
class Rung:
    """One run, and what came of it."""

    method: Named
    seed: int = 0
    operations: float = 0.0
    part: float = 1.0  # of its recipe's steps; below 1 where the budget pays for no more
    gain: float | None = None  # that was expected of it, a fraction; None for what runs in any case
    forecast: Forecast | None = None
    measuring_seconds: float = 0.0
    seconds: float | None = None  # that the run really took
    result: RunResult | None = None
    reused: bool = False
    evidence: Evidence | None = None
    decision: str = ""  # "kept", "not better", "failed", "not affordable", "interrupted", "not worth it" or "not tried"
    reason: str = ""


class Climber:
    """One climb on its way."""

    def __init__(
        self,
        session: Session,
        purse: Purse,
        forecasts: Forecasts,
        recipe: Recipe,
        seed: int,
        progress: Progress,
        worth: float = WORTH,
    ):
        self.session, self.purse, self.forecasts, self.recipe, self.seed = session, purse, forecasts, recipe, seed
        self.progress, self.worth = progress, worth
        self.standing = Standing.on(session.dataset, session.backbone)
        self.rungs: list[Rung] = []  # in the order in which they were decided on
        self.first: dict[Arm, Rung] = {}  # of each method the run with the first seed, as far as it is known
        self.closed: set[Arm] = set()  # that can't be afforded, or failed
        self.stopped = ""  # why the climb ended
        self.seconds_per_flop = SECONDS_PER_FLOP
        self.measuring = 0.0  # of what changes the network, in times of the run; known once one was measured

    def unfit(self, method: Named) -> str:
        """Why a method can't be tried here, or an empty string."""
        card = self.session.backbone.card if self.session.backbone else None
        return method.method.unfit(self.session.dataset.task, card)

    def climb(self, methods: Sequence[Named], keep: Callable[[], object] = lambda: None) -> None:
        """Make the runs that are worth most, each measured before; `keep` is called after every run."""
        for method in methods:
            self.session.spec(method, self.recipe, self.seed)  # a recipe that makes no sense is an error before any run
        self._open(methods)
        try:
            while not self.stopped:
                rung = self._next()
                if rung is not None and self._ready(rung) and self._run(rung):
                    self._judge(rung)
                    keep()
        except KeyboardInterrupt:
            if not self.standing.looks:
                raise
            self.stopped = INTERRUPTED
        self._leave()

    def _open(self, methods: Sequence[Named]) -> None:
        """Admit these methods as candidates."""
        for method in methods:
            arm = Arm.of(method)
            self.first[arm] = self._known(Rung(method, self.seed))
            self.standing.admit(arm)

    def _known(self, rung: Rung) -> Rung:
        """Fill in what costs nothing: that the run is stored already, or a rough count of its operations."""
        if self.session.store.find(self.session.spec(rung.method, self.recipe, rung.seed).id) is not None:
            rung.forecast = Forecast()
            return rung
        with suppress(Exception):  # what can't be built can't be measured either, and is told then
            rung.operations = self.forecasts.operations(rung.method)
        return rung

    def _next(self) -> Rung | None:
        """The next run; None where the climb has ended, or has admitted new candidates instead."""
        waiting = [arm for arm in self.first if arm not in self.closed and not self.standing.begun[arm]]
        simple = [arm for arm in waiting if arm.sort != TUNED]
        if simple or not self.standing.looks:
            arm = min(simple or waiting, key=self._expected, default=None)
            if arm is None:
                self.stopped = "every method was tried"
            return None if arm is None else self.first[arm]
        whole = self._whole()
        left = whole * self.purse.left / self.purse.budget.amount / MARGIN
        open_to = [arm for arm in self.first if arm not in self.closed]
        found = None
        for hope in (1.0, HOPELESS):  # what is known to fit comes before measuring what may not
            offers = {arm: self._offer(arm, left, hope) for arm in open_to}
            seconds = {arm: offer.seconds for arm, offer in offers.items()}
            shares = {arm: offer.kept for arm, offer in offers.items()}
            found = found or self.standing.next_run(seconds, MOST_SEEDS, self.worth, whole, left, shares)
        if found is None:
            if self.standing.next_run(seconds, MOST_SEEDS, self.worth, whole) is not None:
                self.stopped = "the budget pays for nothing more that is worth it"
                return None
            self._try_other_rates()
            return None
        arm, gain = found
        made = self.standing.begun[arm]
        first = self.first[arm]
        rung = first if made == 0 else Rung(first.method, self.seed + made, part=first.part)
        rung.gain = gain
        if made == 0 and self.recipe.epochs is None:
            self._shorten(first, left)
        return rung

    def _shorten(self, rung: Rung, left: float) -> None:
        """Cut a first run to the part that is paid for. One that is not measured yet stays as it is until then."""
        if rung.forecast is not None and rung.result is None:
            rung.forecast = rung.forecast.within(left)
            rung.part = rung.forecast.part

    def _recipe(self, rung: Rung) -> Recipe:
        """That of a run."""
        return self.recipe if rung.part == 1 else replace(self.recipe, part=rung.part)

    def _whole(self) -> float:
        """The budget in seconds."""
        return self.purse.budget.amount / max(1e-12, self.purse.price(1.0))

    def _try_other_rates(self) -> None:
        """Admit the best method at twice and half its learning rate; end the climb where that was done already."""
        best = self.standing.choice(BEST).chosen
        item = self.first[best].method
        own = item.config.get("learning_rate") if best.sort == TUNED and "learning_rate" not in item.given else None
        settings = {key: value for key, value in item.config.items() if key not in ("name", "version")}
        rates = [factor * own for factor in OTHER_RATES] if own else []
        others = [named(item.config["name"], {**settings, "learning_rate": rate}) for rate in rates]
        fresh = [other for other in others if Arm.of(other) not in self.first]
        if not fresh:
            dear = any(rung.decision == "not affordable" for rung in self.rungs)
            self.stopped = "the budget pays for nothing more that is worth it" if dear else "nothing more is worth it"
        self._open(fresh)

    def _expected(self, arm: Arm) -> float:
        """Seconds of a method's next run, as far as is known."""
        rung = self.first[arm]
        if self.standing.begun[arm] and rung.result is not None:
            return rung.result.spent.wall_seconds
        return rung.forecast.seconds if rung.forecast else rung.operations * self.seconds_per_flop

    def _offer(self, arm: Arm, left: float, hope: float) -> Offer:
        """A method's next run, a part of it where the whole would not fit into the seconds that are `left`.

        Of a method that was never measured that is a guess, which counts as affordable unless it needs `hope` times
        what is left.
        """
        expected, rung = self._expected(arm), self.first[arm]
        can_be_cut = self.recipe.epochs is None and arm.sort == TUNED
        if self.standing.begun[arm]:
            return Offer(expected, kept(rung.part))
        if rung.forecast is not None:
            there = rung.forecast.within(left) if can_be_cut else rung.forecast
            return Offer(there.seconds, kept(there.part))
        measuring = self.measuring * expected
        least = LEAST_PART / PARTS if can_be_cut else 1.0
        part = min(1.0, max(least, (left - measuring) / max(expected, 1e-9)))
        seconds = measuring + part * expected
        return Offer(seconds if seconds > hope * left else min(seconds, left), kept(part))

    def _ready(self, rung: Rung) -> bool:
        """Whether the run can start now. A method without a forecast is measured, and compared with the others anew."""
        arm = Arm.of(rung.method)
        if rung is self.first[arm] and rung.forecast is None:
            self._measure(rung)
            if rung.decision:
                self._close(arm, rung)
            return False
        if rung is not self.first[arm]:
            there = (
                self.session.store.find(self.session.spec(rung.method, self._recipe(rung), rung.seed).id) is not None
            )
            rung.forecast = Forecast() if there else Forecast({"as before": self._expected(arm)})
        assert rung.forecast is not None
        needed, left = self.purse.price(rung.forecast.seconds), self.purse.left
        if MARGIN * needed <= left or not rung.forecast.parts:
            return True
        self._too_dear(rung, f"needed {MARGIN} x {self._show(needed)}")
        self._close(arm, rung)
        return False

    def _close(self, arm: Arm, rung: Rung) -> None:
        self.rungs.append(rung)
        self.closed.add(arm)
        if self.purse.left <= 0:
            self.stopped = SPENT

    def _measure(self, rung: Rung) -> None:
        """Forecast it, unless that is hopeless."""
        expected, left = rung.operations * self.seconds_per_flop, self.purse.left
        if self.recipe.epochs is None and Arm.of(rung.method).sort == TUNED:
            expected *= LEAST_PART / PARTS  # to which it may be cut
        if self.seconds_per_flop != SECONDS_PER_FLOP and self.purse.price(expected) > HOPELESS * left:
            return self._too_dear(rung, f"by its operations needed about {self._show(self.purse.price(expected))}")
        self._report(rung, "measuring")
        began = self.purse.seconds()
        self.purse.start_rating()
        try:
            with hard_stop(self.purse, self.purse.budget.amount):
                rung.forecast = self.forecasts.forecast(rung.method)
        except OverBudget:
            self.stopped = SPENT
            return self._too_dear(rung, "could not even be measured")
        except Exception as error:  # the run would end the same way
            rung.decision, rung.reason = "failed", str(error) or type(error).__name__
            return None
        finally:
            rung.measuring_seconds = self.purse.seconds() - began
        busy = sum(rung.forecast.parts.get(part, 0.0) for part in COMPUTING)  # what the operations are of
        if rung.operations and busy:
            self.seconds_per_flop = busy / rung.operations
            if Arm.of(rung.method).sort == TUNED:
                self.measuring = rung.measuring_seconds / rung.forecast.seconds
        return None

    def _too_dear(self, rung: Rung, reason: str) -> None:
        rung.decision, rung.reason = "not affordable", f"{reason}, left {self._show(max(0.0, self.purse.left))}"

    def _run(self, rung: Rung) -> bool:
        """An ordinary run; whether it ended. One that is stopped leaves at most its checkpoint."""
        began = self.purse.seconds()
        self.rungs.append(rung)
        self.standing.begin(Arm.of(rung.method))
        try:
            with hard_stop(self.purse, HARD_STOP * self.purse.budget.amount) as check:

                def report(done: float, text: str) -> None:
                    check()
                    self._report(rung, text)

                search = self._tried(rung)
                rung.result, rung.reused = execute(
                    self.session, rung.method, self._recipe(rung), rung.seed, report, search
                )
        except OverBudget:
            spent = self.purse.spent()
            rung.decision = "interrupted"
            share = spent / self.purse.budget.amount
            rung.reason = f"still running after {self._show(spent)}, {share:.2f} x the budget"
            self.stopped = SPENT
            return False
        except KeyboardInterrupt:
            rung.decision = "interrupted"
            raise
        finally:
            rung.seconds = self.purse.seconds() - began
        return True

    def _tried(self, rung: Rung) -> SearchRecord:
        """For the receipt of a run at another learning rate: the runs at the rates before it."""
        name, rate = rung.method.config["name"], rung.method.config.get("learning_rate")
        before = [other for other in self.rungs if other.result and other.method.config["name"] == name]
        others = [other for other in before if other.method.config.get("learning_rate") != rate]
        if rate is None or "learning_rate" not in rung.method.given or not others:
            return NOTHING_TRIED
        rates = dict.fromkeys([*(other.method.config["learning_rate"] for other in others), rate])
        return SearchRecord({"learning_rate": list(rates)}, tuple(other.result.id for other in others if other.result))

    def _judge(self, rung: Rung) -> None:
        """Let validation count."""
        assert rung.result is not None
        arm = Arm.of(rung.method)
        if rung.result.status != "ok":
            rung.decision, rung.reason = "failed", rung.result.error
            self.closed.add(arm)
            if self.standing.runs(arm):  # what an earlier seed left is as good as before
                self.standing.begun[arm] = self.standing.runs(arm)
            else:
                self.standing.give_up(arm)
            return
        before = self.chosen()
        rung.evidence = validation_evidence(self.session.dataset, self.session.store.root / rung.result.id)
        price = rung.result.costs.get("train_seconds")
        self.standing.add(arm, rung.evidence, price.value if price else None)
        rung.decision = "kept" if self.chosen() is rung else "not better"
        if before is not None and before.evidence is not None:
            low, high = rung.evidence.gain_over(before.evidence)
            rung.reason = f"{100 * low:+.1f} to {100 * high:+.1f} points against {before.method.label}"

    def _leave(self) -> None:
        """List the methods that were not tried, with reasons, and mark the chosen run as kept."""
        chosen = self.chosen()
        if chosen is not None:
            chosen.decision = "kept"
        for arm, rung in sorted(self.first.items(), key=lambda item: self._expected(item[0])):
            if rung not in self.rungs:
                rung.gain = self._gain(arm)
                self._say_why_not(arm, rung)
                self.rungs.append(rung)

    def _say_why_not(self, arm: Arm, rung: Rung) -> None:
        """Of a method that was not tried."""
        needed = self.purse.price(self._expected(arm))
        if self.stopped in (SPENT, INTERRUPTED):
            rung.decision = "not tried"
        elif MARGIN * needed > self.purse.left:
            by = "" if rung.forecast else "by its operations "
            return self._too_dear(rung, f"{by}needed about {self._show(needed)}")
        else:
            rung.decision = "not worth it"
        rung.reason = self.stopped if rung.gain is None else f"expected to gain {percent(rung.gain, 2)} points"
        return None

    def _gain(self, arm: Arm) -> float | None:
        """What a run of a method would be expected to gain now."""
        there = self.standing.posterior
        return expected_gain(there, arm, there.ran) if there.ran and arm in there.arms else None

    def chosen(self) -> Rung | None:
        """Of the method with the highest expected score the run that is best on validation."""
        if not self.standing.looks:
            return None
        best = self.standing.choice(BEST).chosen
        runs = [rung for rung in self.rungs if rung.evidence and Arm.of(rung.method) == best]
        return max(runs, key=lambda rung: rung.evidence.score if rung.evidence else 0.0, default=None)

    def _report(self, rung: Rung, text: str) -> None:
        share = self.purse.spent() / self.purse.budget.amount
        self.progress(min(1.0, share), f"{rung.method.label}: {text}")

    def _show(self, amount: float) -> str:
        return show(amount, self.purse.budget.unit)
