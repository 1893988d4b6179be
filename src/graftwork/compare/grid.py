"""The runs of a board, in an order that its question alone decides: the race's trials, then seed by seed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from graftwork.compare import race
from graftwork.compare.assemble import RowRuns
from graftwork.compare.race import Drop, Try
from graftwork.compare.statistics import Sample
from graftwork.compare.workers import Crew, Order, one_by_one
from graftwork.core.meter import Cost, Phase
from graftwork.core.progress import Progress
from graftwork.core.run import Recipe, RunResult
from graftwork.core.task import Dataset
from graftwork.registry import kinds, metrics
from graftwork.run.methods import Named
from graftwork.run.receipt import Search
from graftwork.run.shop import Shop
from graftwork.run.shops import Shops
from graftwork.run.store import read_logits


@dataclass(frozen=True)
class Grid:
    """What was run."""

    rows: list[RowRuns]
    runs: list[RunResult]  # each once, in the order of execution
    race: dict[str, Any] | None  # as it stands in `leaderboard.json`; None when nothing raced
    reused: int  # runs that were there already


@dataclass
class _Entry:
    """A method on its way through the grid."""

    label: str
    item: Named  # with the learning rate it keeps
    trials: list[RunResult] = field(default_factory=list)
    runs: list[RunResult] = field(default_factory=list)
    dropped: Drop | None = None
    rates: Sequence[float] = ()  # that were tried

    @property
    def search(self) -> Search:
        """What was tried before its next run."""
        space = {"learning_rate": list(self.rates)} if self.rates else {}
        return Search(space, tuple(dict.fromkeys(result.id for result in self.trials)))


def run_grid(
    shop: Shop,
    chosen: Sequence[Named],
    recipe: Recipe,
    seeds: int,
    progress: Progress,
    *,
    exhaustive: bool = False,
    crew: Crew | None = None,
) -> Grid:
    """Seed by seed, so that an interrupted grid has compared every method on the seeds that are done."""
    entries = [_Entry(item.label, item) for item in chosen]
    racing = [] if exhaustive else [entry for entry in entries if race.races(entry.item)]
    trial_methods = len(racing) > race.ALWAYS_KEPT
    looks = seeds - 1
    planned = _planned(racing) + seeds * len(entries)
    runner = _Runner(shop, recipe, progress, planned, looks, crew or partial(one_by_one, Shops(shop)))
    tried = _choose_rates([entry for entry in racing if race.rates(entry.item)], runner)
    if trial_methods:
        runner.trials([(entry, entry.item) for entry in racing], race.METHOD_SHARE)
        last = {entry.label: entry.trials[-1] for entry in racing}
        runner.halve(racing, last, race.stage_of(race.METHOD_SHARE), seeds)
    if not racing:
        runner.seeds(entries, range(seeds))
    for seed in range(seeds) if racing else ():
        runner.seeds([entry for entry in entries if entry.dropped is None], [seed])
        if seed < seeds - 1:
            runner.look([entry for entry in racing if entry.dropped is None], seed, seeds - seed - 1)
    rows = [_row(entry, shop) for entry in entries]
    return Grid(rows, list(runner.done.values()), _race(racing, tried, looks, rows, shop, recipe), runner.reused)


def _planned(racing: Sequence[_Entry]) -> float:
    """The trials' work, in whole runs."""
    tries = sum(len(race.rates(entry.item)) for entry in racing)
    return tries * race.RATE_SHARE + (len(racing) > race.ALWAYS_KEPT) * len(racing) * race.METHOD_SHARE


def _choose_rates(entries: Sequence[_Entry], runner: _Runner) -> dict[str, list[Try]]:
    """A trial at every rate; each entry goes on with its best."""
    asked = [(entry, race.at_rate(entry.item, rate)) for entry in entries for rate in race.rates(entry.item)]
    results = runner.trials(asked, race.RATE_SHARE)
    told = {}
    for entry in entries:
        tried = [
            Try(item.config["learning_rate"], result.id, result.status, result.validation.get(runner.headline))
            for (of, item), result in zip(asked, results, strict=True)
            if of is entry
        ]
        best, entry.rates = race.best_rate(tried), [one.learning_rate for one in tried]
        entry.item = race.at_rate(entry.item, best)
        told[entry.label] = [replace(one, chosen=one.learning_rate == best) for one in tried]
    return told


class _Runner:
    """Runs, each id once, and what came of them."""

    def __init__(self, shop: Shop, recipe: Recipe, progress: Progress, planned: float, looks: int, crew: Crew):
        self.shop, self.recipe, self.progress, self.crew = shop, recipe, progress, crew
        self.headline = shop.dataset.task.metrics[0]
        self.done: dict[str, RunResult] = {}
        self.reused = 0
        self.looks = looks  # how often methods may be dropped
        self.planned, self.place = planned, 0.0  # work in whole runs

    def run(self, orders: Sequence[Order]) -> list[RunResult]:
        """The results of these runs, executed now unless they are there."""
        ids = [self.shop.spec(order.item, order.recipe, order.seed).id for order in orders]
        fresh = {run_id: order for run_id, order in zip(ids, orders, strict=True) if run_id not in self.done}
        listed, named = list(fresh.values()), list(fresh)
        parts = [0.0] * len(listed)  # of every run, how much is done

        def report(place: int, done: float, text: str) -> None:
            parts[place], order = listed[place].recipe.share * done, listed[place]
            self.progress(min(1.0, (self.place + sum(parts)) / self.planned), f"{order.label} {order.stage}: {text}")

        for place, result, known in self.crew(listed, report):
            parts[place] = listed[place].recipe.share
            self.done[named[place]] = result
            self.reused += known
        self.place += sum(order.recipe.share for order in orders)
        return [self.done[run_id] for run_id in ids]

    def trials(self, asked: Sequence[tuple[_Entry, Named]], share: float) -> list[RunResult]:
        """Runs of seed 0 that are cut to a share of their steps."""
        recipe, stage = replace(self.recipe, share=share), race.stage_of(share)
        orders = [
            Order(entry.label, item, recipe, 0, f"rate {item.config['learning_rate']:g}, {stage}", entry.search)
            for entry, item in asked
        ]
        results = self.run(orders)
        for (entry, _), result in zip(asked, results, strict=True):
            entry.trials.append(result)
        return results

    def seeds(self, entries: Sequence[_Entry], seeds: Iterable[int]) -> None:
        """Whole runs."""
        pairs = [(entry, seed) for seed in seeds for entry in entries]
        orders = [
            Order(entry.label, entry.item, self.recipe, seed, f"seed {seed}", entry.search) for entry, seed in pairs
        ]
        for (entry, _), result in zip(pairs, self.run(orders), strict=True):
            entry.runs.append(result)

    def look(self, racing: Sequence[_Entry], seed: int, left: int) -> None:
        """After a seed: the worse half goes after the first, then whoever is clearly behind; each saves `left` runs."""
        stage = f"seed {seed}"
        if seed == 0:
            self.halve(racing, {entry.label: entry.runs[0] for entry in racing}, stage, left)
        samples = [
            Sample(entry.label, tuple(self._validation(result) for result in entry.runs))
            for entry in racing
            if entry.dropped is None and all(result.status == "ok" for result in entry.runs)
        ]
        self._drop(racing, race.behind(samples, metrics.get(self.headline), stage, looks=self.looks), left)

    def halve(self, racing: Sequence[_Entry], last: Mapping[str, RunResult], stage: str, left: int) -> None:
        """Take out whose `last` result is outside the better half."""
        scores = {label: run.validation[self.headline] for label, run in last.items() if run.status == "ok"}
        self._drop(racing, race.worse_half(scores, stage), left)

    def _drop(self, racing: Sequence[_Entry], found: Sequence[Drop], left: int) -> None:
        lost = {drop.method: drop for drop in found}
        for entry in racing:
            entry.dropped = entry.dropped or lost.get(entry.label)
        self.planned -= left * len(lost)

    def _validation(self, result: RunResult) -> NDArray[Any]:
        folder = self.shop.store.root / result.id
        return split_statistics(self.shop.dataset, folder, "validation", [self.headline])[self.headline]


def split_statistics(dataset: Dataset, folder: Path, split: str, names: Iterable[str]) -> dict[str, NDArray[Any]]:
    """Metric -> (N, K) per-example statistics of one run on a split, from its stored logits."""
    task = dataset.task
    predictions = kinds.get(task.kind).predictions(read_logits(folder, split), task)
    return {name: metrics.get(name).statistics(dataset.splits[split].targets, predictions, task) for name in names}


def spent(*runs: Iterable[RunResult]) -> dict[str, Cost]:
    """What these runs really took, whenever they ran, shared work and the opening of a backbone counted once.

    Each of `runs` holds those over one backbone.
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


def _row(entry: _Entry, shop: Shop) -> RowRuns:
    """A row is as its runs: ok when any is (failed seeds are counted beside it), otherwise what went wrong first.

    Of a dropped one the test split is left closed.
    """
    shown = {result.id for result in entry.runs}
    trials = {result.id: result for result in entry.trials if result.id not in shown}
    if entry.dropped is not None:
        cost = spent({result.id: result for result in (*entry.trials, *entry.runs)}.values())
        note = {key: value for key, value in asdict(entry.dropped).items() if key != "method"}
        note["cost"] = {name: asdict(price) for name, price in cost.items()}
        status = "dropped"
    else:
        note = None
        status = "ok" if any(result.status == "ok" for result in entry.runs) else entry.runs[0].status
    runs = tuple((result, _test(result, shop, status)) for result in entry.runs)
    return RowRuns(entry.label, entry.item.config, status, runs, tuple(trials.values()), note)


def _test(result: RunResult, shop: Shop, status: str) -> dict[str, NDArray[Any]]:
    if status == "dropped" or result.status != "ok":
        return {}
    return split_statistics(shop.dataset, shop.store.root / result.id, "test", shop.dataset.task.metrics)


def _race(
    racing: Sequence[_Entry],
    tried: Mapping[str, Sequence[Try]],
    looks: int,
    rows: Sequence[RowRuns],
    shop: Shop,
    recipe: Recipe,
) -> dict[str, Any] | None:
    """What the board says of the race."""
    if not racing:
        return None
    trials = {result.id: result for row in rows for result in row.trials}
    raced = {entry.label for entry in racing}
    shares = {"rates": race.RATE_SHARE, "methods": race.METHOD_SHARE}
    steps = {
        name: shop.spec(racing[0].item, replace(recipe, share=share), 0).recipe["steps"]
        for name, share in shares.items()
    }
    return {
        "rule": race.rule([row.method for row in rows if row.method not in raced]),
        "trials": {name: {"share": shares[name], "steps": steps[name]} for name in shares},
        "rates": race.told(tried),
        "looks": looks,
        "dropped": [asdict(entry.dropped) for entry in racing if entry.dropped is not None],
        "search_costs": {name: asdict(cost) for name, cost in spent(trials.values()).items()},
    }
