"""`climb`: methods from the cheapest up, as far as a budget goes and the next one is worth it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol, Unpack

from graftwork.budget.forecast import Forecast, Forecaster
from graftwork.budget.purse import OverBudget, Purse, Watch, hard_stop, parse_budget
from graftwork.config import Prices
from graftwork.core.meter import Stopwatch
from graftwork.core.over import innermost
from graftwork.core.progress import Progress, silent
from graftwork.core.run import Recipe, RunResult
from graftwork.core.settings import split_words
from graftwork.core.task import Task
from graftwork.errors import ConfigError, GraftworkError
from graftwork.files import finite, require_writable, write_json
from graftwork.run.environment import environment
from graftwork.run.evidence import Evidence, validation_evidence
from graftwork.run.execute import execute
from graftwork.run.methods import Named, of_a, parse_method
from graftwork.run.setup import Given, Setup, takes_settings
from graftwork.run.shop import Shop, open_shop
from graftwork.run.train import Run
from graftwork.train.loop import Changes
from graftwork.units import percent, show

FORMAT = 1
MARGIN = 1.15  # a rung is started when so many times its forecast is left
HARD_STOP = 1.04  # of the budget: what runs then is stopped, and cleaning up ends below 1.05
CEILING = 0.995  # a validation score from which on nothing dearer is tried
MISSES = 2  # rungs in a row, of those trained by gradient, that bring nothing
HOPELESS = 2.0  # a rung that by its operations needs so many times what is left is not even measured
SECONDS_PER_FLOP = 1e-11  # until something is measured; it decides no more than what is measured first
RULES = {
    "order": "by forecast seconds, cheapest first; before a rung is measured, by its operations",
    "affordable": f"a rung is started when {MARGIN} x its forecast is left; what is running at {HARD_STOP} x the "
    "budget is stopped, and leaves at most its checkpoint",
    "worth it": f"no dearer rung is tried once the best validation score is {percent(CEILING)} or more, or its 95 % "
    f"interval over validation rows reaches 100, or {MISSES} rungs in a row that are trained by gradient did not beat "
    "the best so far (95 % interval of the paired difference above 0)",
    "chosen": "the cheapest run that no other one beats on validation",
}


@dataclass(frozen=True)
class Ladder:
    """What `climb` found. `content` is exactly what stands in `ladder.json`."""

    content: Mapping[str, Any]
    folder: Path  # where it was written
    run: Run  # the one that was chosen


class Forecasts(Protocol):
    """What says how long a run will take; `Forecaster` does."""

    def operations(self, method: Named) -> float:
        """Roughly the FLOPs of its fit."""

    def forecast(self, method: Named) -> Forecast:
        """Its seconds, measured on a sample."""


@dataclass
class Rung:
    """A method on the ladder, and what came of it."""

    method: Named
    operations: float = 0.0
    forecast: Forecast | None = None
    measuring_seconds: float = 0.0
    seconds: float | None = None  # that the run really took
    result: RunResult | None = None
    reused: bool = False
    evidence: Evidence | None = None
    decision: str = ""  # "kept", "not better", "failed", "not affordable", "interrupted" or "stopped"
    reason: str = ""


@takes_settings
def climb(
    task: Task | str | Path,
    budget: str,
    *,
    rungs: str | Sequence[str] | None = None,
    seed: int = 0,
    out: str | Path | None = None,
    progress: Progress = silent,
    watch: Watch | None = None,
    **given: Unpack[Given],
) -> Ladder:
    """Try `rungs` from the cheapest up, spending at most `budget`: a time, an energy, or money ("5min", "3Wh", "1EUR").

    Where none are named, they are the methods that have a `LADDER`, as far as they fit the task. Everything counts:
    reading the data, opening the backbone, measuring, and from before that what `watch` has counted already. `out`
    (default `ladders/<task>`) receives `ladder.json`; the runs are ordinary ones.

    Raises `GraftworkError` for bad data or settings, and when the budget does not pay for a single run.
    """
    watch = watch or Stopwatch()
    setup = Setup.of(given)
    listed = Prices.from_file(setup.prices)
    purse = Purse(parse_budget(budget, listed), listed, watch)
    if isinstance(task, str | Path):
        task = Task.from_file(task)
    chosen = of_a("LADDER") if rungs is None else [parse_method(words) for words in split_words(rungs)]
    folder = Path(out) if out is not None else Path("ladders") / task.name
    shop = open_shop(task, chosen, setup, out=folder)
    require_writable(folder)  # before the budget is spent
    forecaster = Forecaster(shop, setup.recipe, seed, clock=purse.seconds)
    climber = Climber(shop, purse, forecaster, setup.recipe, seed, progress)
    climber.climb([item for item in chosen if not climber.unfit(item)])
    unfit = [item for item in chosen if climber.unfit(item)]
    if rungs is None:  # what is for another sort of task is no news unless it was asked for
        unfit = [item for item in unfit if not item.method.unfit(shop.dataset.task, None)]
    content = finite(climber.content(unfit))
    write_json(folder / "ladder.json", content)
    best = climber.chosen()
    if best is None:
        raise _nothing(climber, folder)
    assert best.result is not None
    run = Run(best.result, shop.store.root / best.result.id, best.reused, tuple(shop.dataset.report["warnings"]))
    return Ladder(content, folder, run)


class Climber:
    """One climb on its way."""

    def __init__(self, shop: Shop, purse: Purse, forecasts: Forecasts, recipe: Recipe, seed: int, progress: Progress):
        self.shop, self.purse, self.forecasts, self.recipe, self.seed = shop, purse, forecasts, recipe, seed
        self.progress = progress
        self.rungs: list[Rung] = []  # in the order in which they were decided on
        self.best: Rung | None = None  # on validation
        self.misses = 0
        self.stopped = ""  # why the ladder ends here
        self.seconds_per_flop = SECONDS_PER_FLOP

    def unfit(self, method: Named) -> str:
        """Why a method can't be a rung here, or an empty string."""
        card = self.shop.backbone.card if self.shop.backbone else None
        return method.method.unfit(self.shop.dataset.task, card)

    def climb(self, methods: Sequence[Named]) -> None:
        """Take the rung that is the cheapest, as far as is known; measure it, then run it, until one is too much."""
        for method in methods:
            self.shop.spec(method, self.recipe, self.seed)  # a recipe that makes no sense is an error before any run
        waiting = [self._known(Rung(method)) for method in methods]
        while waiting and not self.stopped:
            rung = min(waiting, key=self._expected)
            if rung.forecast is None and self._measure(rung):
                continue  # now that it is measured, another may be cheaper
            waiting.remove(rung)
            self.rungs.append(rung)
            if not rung.decision and self._affordable(rung) and self._run(rung):
                self._judge(rung)
        for rung in sorted(waiting, key=self._expected):
            short = self.stopped.startswith("the budget")
            rung.decision, rung.reason = ("not affordable" if short else "stopped"), self.stopped
            self.rungs.append(rung)

    def _known(self, rung: Rung) -> Rung:
        """With what is known for nothing: that a run is there already, or roughly its operations."""
        if self.shop.store.find(self.shop.spec(rung.method, self.recipe, self.seed).id) is not None:
            rung.forecast = Forecast()
            return rung
        with suppress(Exception):  # what can't be built can't be measured either, and is told then
            rung.operations = self.forecasts.operations(rung.method)
        return rung

    def _expected(self, rung: Rung) -> float:
        """Seconds, as far as is known."""
        return rung.forecast.seconds if rung.forecast else rung.operations * self.seconds_per_flop

    def _measure(self, rung: Rung) -> bool:
        """Forecast it, unless that is hopeless; whether there is a forecast now."""
        expected, left = self._expected(rung), self.purse.left
        if self.seconds_per_flop != SECONDS_PER_FLOP and self.purse.price(expected) > HOPELESS * left:
            return self._too_dear(rung, f"by its operations needed about {self._show(self.purse.price(expected))}")
        self._report(rung, "measuring")
        began = self.purse.seconds()
        self.purse.start_rating()
        try:
            with hard_stop(self.purse, self.purse.budget.amount):
                rung.forecast = self.forecasts.forecast(rung.method)
        except OverBudget:
            return self._too_dear(rung, "could not even be measured")
        except Exception as error:  # the run would end the same way
            rung.decision, rung.reason = "failed", str(error) or type(error).__name__
            return False
        finally:
            rung.measuring_seconds = self.purse.seconds() - began
        if rung.operations:
            self.seconds_per_flop = rung.forecast.seconds / rung.operations
        return True

    def _affordable(self, rung: Rung) -> bool:
        assert rung.forecast is not None
        needed, left = self.purse.price(rung.forecast.seconds), self.purse.left
        if MARGIN * needed <= left or not rung.forecast.parts:
            return True
        return self._too_dear(rung, f"needed {MARGIN} x {self._show(needed)}")

    def _too_dear(self, rung: Rung, reason: str) -> bool:
        rung.decision, rung.reason = "not affordable", f"{reason}, left {self._show(max(0.0, self.purse.left))}"
        self.stopped = f"the budget does not pay for {rung.method.label}"
        return False

    def _run(self, rung: Rung) -> bool:
        """An ordinary run; whether it ended. One that is stopped leaves at most its checkpoint."""
        began = self.purse.seconds()
        try:
            with hard_stop(self.purse, HARD_STOP * self.purse.budget.amount) as check:

                def report(done: float, text: str) -> None:
                    check()
                    self._report(rung, text)

                rung.result, rung.reused = execute(self.shop, rung.method, self.recipe, self.seed, report)
        except OverBudget:
            spent = self.purse.spent()
            rung.decision = "interrupted"
            rung.reason = (
                f"still running after {self._show(spent)}, {spent / self.purse.budget.amount:.2f} x the budget"
            )
            self.stopped = "the budget is spent"
            return False
        finally:
            rung.seconds = self.purse.seconds() - began
        return True

    def _judge(self, rung: Rung) -> None:
        """Is it better, and is it worth going on?"""
        assert rung.result is not None
        if rung.result.status != "ok":
            rung.decision, rung.reason = "failed", rung.result.error
            return
        rung.evidence = validation_evidence(self.shop.dataset, self.shop.store.root / rung.result.id)
        best = self.best.evidence if self.best else None
        better = best is None or rung.evidence.beats(best)
        rung.decision = "kept" if better else "not better"
        if best is not None and self.best is not None:
            low, high = rung.evidence.gain_over(best)
            rung.reason = f"{low:+.3f} to {high:+.3f} against {self.best.method.label}"
        self.misses = 0 if better else self.misses + isinstance(innermost(rung.method.method), Changes)
        if best is None or rung.evidence.score > best.score:
            self.best = rung
        self.stopped = self._enough()

    def _enough(self) -> str:
        """Why no dearer rung is worth it, or an empty string."""
        assert self.best is not None and self.best.evidence is not None
        label, evidence = self.best.method.label, self.best.evidence
        if evidence.score >= CEILING:
            return f"not worth it: {label} is at the ceiling, {percent(evidence.score)} on validation"
        if evidence.interval[1] >= 1 - 1e-9:
            return f"not worth it: the 95 % interval of {label} on validation reaches 100"
        if self.misses >= MISSES:
            return f"not worth it: {self.misses} rungs in a row did not beat {label} by more than the noise"
        return ""

    def chosen(self) -> Rung | None:
        """The cheapest of the runs that no other one beats, be it the best, which may be too unsteady to show it."""
        judged = [(rung, rung.evidence) for rung in self.rungs if rung.evidence]
        unbeaten = [rung for rung, own in judged if rung is self.best or not any(one.beats(own) for _, one in judged)]
        return min(unbeaten, key=_price_alone, default=None)

    def content(self, unfit: Sequence[Named]) -> dict[str, Any]:
        """`ladder.json`. Keys are only ever added: it is a file format."""
        task, chosen, budget = self.shop.dataset.task, self.chosen(), self.purse.budget
        spent = self.purse.spent()
        backbone = self.shop.backbone
        notes = [f"{method.label} is no rung here: {self.unfit(method)}" for method in unfit]
        return {
            "format": FORMAT,
            "task": {"name": task.name, "data": self.shop.dataset.digest} | task.question(),
            "backbone": {"id": backbone.card.id, "revision": backbone.card.revision} if backbone else None,
            "metric": task.metrics[0],
            "seed": self.seed,
            "budget": {"amount": budget.amount, "unit": budget.unit},
            "rungs": [self._entry(rung, rung is chosen) for rung in self.rungs],
            "chosen": self._module(chosen) if chosen else None,
            "stopped": self.stopped,
            "spent": {
                "amount": spent,
                "unit": budget.unit,
                "grade": self.purse.grade,
                "share": spent / budget.amount,
                "seconds": self.purse.seconds(),
            },
            "rules": RULES,
            "notes": notes,
            "environment": environment() | self.purse.prices.told(),
        }

    def _entry(self, rung: Rung, chosen: bool) -> dict[str, Any]:
        low, high = rung.evidence.interval if rung.evidence else (None, None)
        forecast = rung.forecast
        return {
            "method": rung.method.label,
            "config": dict(rung.method.config),
            "operations": rung.operations,
            "predicted_seconds": forecast.seconds if forecast else None,
            "predicted_parts": dict(forecast.parts) if forecast else {},
            "predicted_step": forecast.step if forecast else None,
            "measuring_seconds": rung.measuring_seconds,
            "seconds": rung.seconds,
            "reused": rung.reused,
            "run": rung.result.id if rung.result else None,
            "validation": {"score": rung.evidence.score, "low": low, "high": high} if rung.evidence else None,
            "decision": rung.decision,
            "reason": rung.reason,
            "chosen": chosen,
        }

    def _module(self, rung: Rung) -> dict[str, Any]:
        assert rung.result is not None
        folder = self.shop.store.root / rung.result.id
        costs = {name: asdict(cost) for name, cost in rung.result.costs.items()}
        found = {"method": rung.method.label, "run": rung.result.id, "module": str(folder / "module")}
        return found | {"scores": dict(rung.result.scores), "interval": rung.result.interval, "costs": costs}

    def _report(self, rung: Rung, text: str) -> None:
        share = self.purse.spent() / self.purse.budget.amount
        self.progress(min(1.0, share), f"{rung.method.label}: {text}")

    def _show(self, amount: float) -> str:
        return show(amount, self.purse.budget.unit)


def _price_alone(rung: Rung) -> float:
    """Seconds that the run would take alone, what it shared with others included."""
    assert rung.result is not None
    return rung.result.costs["total_seconds"].value or 0.0


def _nothing(climber: Climber, folder: Path) -> GraftworkError:
    """Why there is no run to choose."""
    failed = [rung for rung in climber.rungs if rung.decision == "failed"]
    if failed:
        first = failed[0]
        return GraftworkError(
            f"no rung ended well; {first.method.label}: {first.reason}",
            where=str(folder),
            do="graft show RUN says more of each; try another --backbone",
        )
    budget = climber.purse.budget
    spent = show(climber.purse.spent(), budget.unit)
    return ConfigError(
        "the budget does not pay for a single run",
        where=str(folder),
        got=f"{budget}; reading the data, opening the backbone and measuring took {spent}",
        do="give a larger budget",
    )
