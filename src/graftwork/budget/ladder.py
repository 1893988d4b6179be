"""`climb`: a method search within a budget, which spends it on the runs with the largest expected gain."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Unpack

from graftwork.budget.budget_account import BudgetAccount, Clock, parse_budget
from graftwork.budget.climber import HARD_STOP, MARGIN, TIE, Climber
from graftwork.budget.forecaster import Forecaster
from graftwork.budget.ladder_lines import answer_lines, ladder_lines
from graftwork.budget.rung import Rung
from graftwork.config import Prices
from graftwork.core.configured_methods import ConfiguredMethod, of_a, parse_method
from graftwork.core.in_memory import beside
from graftwork.core.meter import Stopwatch
from graftwork.core.part_settings import split_words
from graftwork.core.progress import Progress
from graftwork.core.progress_bar import progress_or_bar
from graftwork.core.task import Task
from graftwork.decision.choice import WORTH, parse_worth
from graftwork.decision.decision_json import content_of
from graftwork.decision.traits import FLOOR, SIMPLE
from graftwork.errors import ConfigError, GraftworkError
from graftwork.io.display import card, table
from graftwork.io.files import finite, require_writable, write_json
from graftwork.machine.environment import environment
from graftwork.run.session import open_session
from graftwork.run.settings import GivenSettings, RunSettings, takes_settings
from graftwork.run.train import Run, unused_settings
from graftwork.units import percent, show

FORMAT = 1
RULES = {
    "order": "first the methods that train no network, cheapest first; then the run by which the best choice is "
    "expected to gain most for its forecast seconds: a new method, one more seed, or another learning rate; where a "
    "whole run is not affordable, a part of its steps, a fifth at least, for less of its gain",
    "affordable": f"a run is started when {MARGIN} x its forecast is left; what is running at {HARD_STOP} x the "
    "budget is stopped, and leaves at most its checkpoint",
    "worth it": "the whole budget is worth a tenth of --worth points, 0.05 at most: a run must gain as large a part "
    "of that as it takes of the budget",
    "chosen": f"the cheapest method within {100 * TIE:g} points of the highest expected score (with --worth 0 the one "
    "that has it), by validation and by earlier boards; of its runs the mean of their weights, if they start alike and "
    "it is expected to score higher than one of them, else the best on validation",
    "averaged": "after every run the mean of the weights of a method's runs, where it is expected to score highest; "
    "one more run of a method for that mean, where it gains more per second than another run",
}


@dataclass(frozen=True, repr=False)
class Ladder:
    """The result of `climb`. `content` is exactly the content of `ladder.json`."""

    content: Mapping[str, Any]
    folder: Path  # the folder of `ladder.json`
    run: Run  # the chosen run

    @property
    def answer(self) -> str:
        """The chosen method with its scores and its expected shortfall below the best method, as text."""
        return "\n".join(answer_lines(self.content))

    def __repr__(self) -> str:
        return "\n  ".join([ladder_lines(self.content)[0], *answer_lines(self.content), self._place()])

    def _repr_html_(self) -> str:
        lines = ladder_lines(self.content)
        rows = [
            [rung["method"], percent(score["score"]) if (score := rung["validation"]) else "", str(rung["seed"]),
             show(rung["seconds"], "s"), rung["decision"] + (f": {rung['reason']}" if rung["reason"] else "")]
            for rung in self.content["rungs"]
        ]  # fmt: skip
        listed = table(("method", "validation", "seed", "took", "decision"), rows, left=(0, 4))
        return card(lines[0], lines[2 : lines.index("", 2)], listed, about=self._place())

    def _place(self) -> str:
        return f"In {self.folder}, ladder.run.module is its module."


@takes_settings
def climb(
    task: Any,
    budget: str,
    *,
    rungs: str | Sequence[str] | None = None,
    worth: float = 100 * WORTH,
    seed: int = 0,
    out: str | Path | None = None,
    progress: Progress | None = None,
    watch: Clock | None = None,
    **given: Unpack[GivenSettings],
) -> Ladder:
    """Find the best method within `budget`: a time, an energy, or money ("5min", "3Wh", "1EUR").

    `task` is a `Task` or what `Task.from_data` takes. `rungs` are the methods to try (default: those with a `LADDER`
    entry that fit the task).

    The search ends when no further run is expected to gain what it costs. The whole budget costs a tenth of `worth`
    points (0.05 at most), and a run its share of that. The budget also pays for reading the data, opening the
    backbone, measuring run times, and what `watch` has counted before the call.

    `out` (default `ladders/<task>`) receives `ladder.json`, rewritten after every run, so that the best choice so far
    is kept however the search ends (the budget, Ctrl-C, a killed process). The runs are ordinary ones.

    Raises `GraftworkError` for bad data or settings, and if the budget does not pay for a single run.
    """
    watch = watch or Stopwatch()
    setup, fraction = RunSettings.of(given), parse_worth(worth)
    listed = Prices.from_file(setup.prices)
    account = BudgetAccount(parse_budget(budget, listed), listed, watch)
    task = Task.from_data(task, folder=beside(setup.runs))
    chosen = of_a("LADDER") if rungs is None else [parse_method(words) for words in split_words(rungs)]
    folder = Path(out) if out is not None else Path("ladders") / task.name
    with progress_or_bar(progress) as told:
        session = open_session(task, chosen, setup, out=folder)
        require_writable(folder)  # before the budget is spent
        forecaster = Forecaster(session, setup.recipe, seed, clock=account.seconds)
        climber = Climber(session, account, forecaster, setup.recipe, seed, told, fraction)
        unfit = [item for item in chosen if climber.unfit(item)]
        if rungs is None:  # a method for another type of task is not reported unless it was requested
            unfit = [item for item in unfit if not climber.unfit(item, backbone=False)]

        def keep() -> dict[str, Any]:
            content: dict[str, Any] = finite(_content(climber, unfit))
            write_json(folder / "ladder.json", content)
            return content

        fit = forecaster.planned = [item for item in chosen if not climber.unfit(item)]
        climber.climb(fit, keep)
    content = keep()
    best = climber.chosen()
    if best is None:
        raise _nothing(climber, folder)
    assert best.result is not None
    warnings = tuple(session.dataset.report["warnings"])
    unused = unused_settings(session.dataset.task, best.result)
    run = Run(best.result, session.store.root / best.result.id, best.reused, warnings, unused)
    return Ladder(content, folder, run)


def _content(climber: Climber, unfit: Sequence[ConfiguredMethod]) -> dict[str, Any]:
    """Return the content of `ladder.json`. It is a file format: keys are added, never removed or changed."""
    task, chosen, budget = climber.session.dataset.task, climber.chosen(), climber.account.budget
    spent = climber.account.spent()
    backbone = climber.session.backbone
    notes = [f"{method.label} was not tried: {climber.unfit(method)}" for method in unfit]
    if any(rung.decision == "not affordable" for rung in climber.rungs):
        notes += filter(None, [climber.session.shorter_reading()])
    return {
        "format": FORMAT,
        "task": {"name": task.name, "data": climber.session.dataset.digest} | task.question(),
        "backbone": {"id": backbone.card.id, "revision": backbone.card.revision} if backbone else None,
        "metric": task.metrics[0],
        "seed": climber.seed,
        "budget": {"amount": budget.amount, "unit": budget.unit},
        "rungs": [_entry(rung, rung is chosen) for rung in climber.rungs],
        "chosen": _module(climber, chosen) if chosen else None,
        "baselines": _baselines(climber.rungs, task.metrics[0]),
        "stopped": climber.stopped,
        "decision": content_of(climber.standing, climber.tie) | {"worth": climber.worth}
        if climber.standing.run_scores
        else None,
        "spent": {
            "amount": spent,
            "unit": budget.unit,
            "grade": climber.account.grade,
            "share": spent / budget.amount,
            "seconds": climber.account.seconds(),
        },
        "rules": RULES,
        "notes": notes,
        "environment": environment() | dict(climber.session.numerics) | climber.account.prices.as_json(),
    }


def _entry(rung: Rung, chosen: bool) -> dict[str, Any]:
    low, high = rung.evidence.interval if rung.evidence else (None, None)
    forecast = rung.forecast
    return {
        "method": rung.method.label,
        "config": dict(rung.method.config),
        "seed": rung.seed,
        "part": rung.part,
        "expected_gain": rung.gain,
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


def _baselines(rungs: Sequence[Rung], metric: str) -> dict[str, float]:
    """Return the test scores of the methods without a backbone."""
    ended = [(rung.arm, rung.result) for rung in rungs if rung.result is not None]
    return {arm.label: one.scores[metric] for arm, one in ended if arm.sort in (FLOOR, SIMPLE) and metric in one.scores}


def _module(climber: Climber, rung: Rung) -> dict[str, Any]:
    assert rung.result is not None
    folder = climber.session.store.root / rung.result.id
    costs = {name: asdict(cost) for name, cost in rung.result.costs.items()}
    found = {
        "method": rung.method.label,
        "decided": rung.arm.label,
        "run": rung.result.id,
        "module": str(folder / "module"),
    }
    return found | {"scores": dict(rung.result.scores), "interval": rung.result.interval, "costs": costs}


def _nothing(climber: Climber, folder: Path) -> GraftworkError:
    """Return the error for a climb without any run to choose."""
    failed = [rung for rung in climber.rungs if rung.decision == "failed"]
    if failed:
        first = failed[0]
        return GraftworkError(
            f"no run succeeded; {first.method.label} failed: {first.reason}",
            where=str(folder),
            do="graft show RUN says more of each; try another --backbone",
        )
    budget, spent = climber.account.budget, climber.account.spent()
    known = [climber.account.price(rung.forecast.seconds) for rung in climber.rungs if rung.forecast]
    needed = MARGIN * (spent + min(known, default=spent))
    return ConfigError(
        "the budget does not pay for a single run",
        where=str(folder),
        got=f"{budget}; reading the data, opening the backbone and measuring took {show(spent, budget.unit)}",
        do=f"give about {show(needed, budget.unit)} or more",
    )
