"""The runs of a board and their execution: all methods with all seeds, or those that a search selects."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from graftwork.compare.leaderboard_data import RowRuns
from graftwork.compare.workers import Crew, RunOrder, one_by_one
from graftwork.core.configured_methods import ConfiguredMethod
from graftwork.core.meter import Cost, Phase
from graftwork.core.run import Recipe, RunResult
from graftwork.core.task import Dataset
from graftwork.decision.standing import Standing
from graftwork.decision.traits import Arm
from graftwork.registry import kinds, metrics
from graftwork.run.score_interval import validation_evidence
from graftwork.run.session import Session
from graftwork.run.sessions import Sessions
from graftwork.run.store import read_logits
from graftwork.train.wrapper_method import is_control, trainings


@dataclass
class MethodRuns:
    """A method and its finished runs."""

    item: ConfiguredMethod
    arm: Arm
    candidate: bool = True  # False: a control (one text of a pair, random weights), which is never chosen
    runs: list[RunResult] = field(default_factory=list)  # in the order of their seeds


@dataclass(frozen=True)
class Grid:
    """The runs of a comparison."""

    entries: list[MethodRuns]  # all methods, including those without a run
    runs: list[RunResult]  # each once, in the order of execution
    reused: int  # runs that were already stored
    standing: Standing  # standing of the methods on validation

    def rows(self, session: Session) -> list[RowRuns]:
        """Return a row of the board for every method that has run. This is the first use of the test split."""
        return [_row(entry, session) for entry in self.entries if entry.runs]

    @property
    def left(self) -> list[str]:
        """The labels of the methods without a run."""
        return [entry.item.label for entry in self.entries if not entry.runs]


RunProgress = Callable[[RunOrder, float, str], None]  # the run, its finished fraction, its activity
Ended = Callable[[MethodRuns], None]  # callback after a run of the method


class Runner:
    """An executor of runs that keeps their results, each id once."""

    def __init__(self, session: Session, chosen: Sequence[ConfiguredMethod], recipe: Recipe, crew: Crew | None = None):
        self.session, self.recipe = session, recipe
        self.crew = crew or partial(one_by_one, Sessions(session))
        self.entries = [MethodRuns(item, Arm.of(item), not is_control(item.method)) for item in chosen]
        self.done: dict[str, RunResult] = {}
        self.reused = 0
        arms = [entry.arm for entry in self.entries if entry.candidate]
        self.standing = Standing.on(session.dataset, session.backbone, arms)

    def order(self, entry: MethodRuns, seed: int) -> RunOrder:
        """Return the order of a method's run with a seed, and record the run as begun.

        If a method trains several times per run, the seed is multiplied by that number: no two trainings share a seed.
        """
        if entry.arm in self.standing.begun:
            self.standing.begin(entry.arm)
        seed *= trainings(entry.item.method)
        return RunOrder(entry.item.label, entry.item, self.recipe, seed, f"seed {seed}")

    def execute(self, orders: list[RunOrder], told: RunProgress, ended: Ended, crew: Crew | None = None) -> None:
        """Execute all orders, including those that `ended` appends during execution."""
        of = {entry.item.label: entry for entry in self.entries}

        def report(place: int, done: float, text: str) -> None:
            told(orders[place], done, text)

        for place, result, known in (crew or self.crew)(orders, report):
            if result.id not in self.done:
                self.done[result.id] = result
                self.reused += known
            entry = of[orders[place].label]
            entry.runs.append(result)
            entry.runs.sort(key=lambda run: run.seed)
            self._weigh(entry, result)
            ended(entry)

    def _weigh(self, entry: MethodRuns, result: RunResult) -> None:
        """Add a run's validation score to the standing; a method with a failed run can't be chosen."""
        if result.status != "ok":
            self.standing.give_up(entry.arm)
        elif entry.arm in self.standing.arms:
            evidence = validation_evidence(self.session.dataset, self.session.store.root / result.id)
            price = result.costs.get("train_seconds")
            self.standing.add(entry.arm, evidence, price.value if price else None, result.kept_best_epoch)

    def grid(self) -> Grid:
        """Return all runs so far."""
        return Grid(self.entries, list(self.done.values()), self.reused, self.standing)


def run_all(runner: Runner, seeds: int, told: RunProgress, ended: Ended) -> Grid:
    """Execute every method with every seed, seed by seed, so that an interrupted grid compares all methods on the
    finished seeds."""
    runner.execute([runner.order(entry, seed) for seed in range(seeds) for entry in runner.entries], told, ended)
    return runner.grid()


def statistics_on_test(dataset: Dataset, folder: Path, names: Iterable[str]) -> dict[str, NDArray[Any]]:
    """Return metric -> per-example statistics (N, K) of one run on test, from its stored logits."""
    task, kind = dataset.task, kinds.get(dataset.task.kind)
    predictions = kind.predictions(read_logits(folder, "test", kind), task)
    return {name: metrics.get(name).statistics(dataset.test.targets, predictions, task) for name in names}


def real_cost(*runs: Iterable[RunResult]) -> dict[str, Cost]:
    """Return the real cost of these runs, including reused ones; shared work and the opening of a backbone count once.

    Each of `runs` holds the runs on one backbone.
    """
    groups = [list(over_one) for over_one in runs]
    openings = [
        max((run.opening for run in group), key=lambda phase: phase.wall_seconds, default=Phase()) for group in groups
    ]
    listed = [run for group in groups for run in group]
    total = sum((run.spent for run in listed), start=sum(openings, start=Phase()))
    return {
        "wall_seconds": Cost(total.wall_seconds, "s", "meter"),
        "cpu_seconds": Cost(total.cpu_seconds, "s", "counter"),
        "runs": Cost(float(len(listed)), "runs", "counter"),
    }


def _row(entry: MethodRuns, session: Session) -> RowRuns:
    """Return a method's row; its status is ok if any run is (failed seeds are counted apart), else the first run's."""
    status = "ok" if any(result.status == "ok" for result in entry.runs) else entry.runs[0].status
    runs = tuple((result, _test(result, session)) for result in entry.runs)
    return RowRuns(entry.item.label, entry.item.config, status, runs)


def _test(result: RunResult, session: Session) -> dict[str, NDArray[Any]]:
    if result.status != "ok":
        return {}
    return statistics_on_test(session.dataset, session.store.root / result.id, session.dataset.task.metrics)
