"""`compare`: every method x every seed on one task, next to its baselines, each with its spread and its price tag."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graftwork.compare.assemble import Findings, RowRuns, leaderboard
from graftwork.compare.report import write_report
from graftwork.core.meter import Cost, Phase
from graftwork.core.run import Recipe, RunResult
from graftwork.core.task import Dataset, Task
from graftwork.errors import ConfigError
from graftwork.files import finite, require_writable, write_json
from graftwork.registry import kinds, methods, metrics
from graftwork.run.environment import environment
from graftwork.run.execute import Shop, execute
from graftwork.run.methods import Named, named, parse_method
from graftwork.run.shop import open_shop
from graftwork.run.store import read_logits

SEEDS = 5
Progress = Callable[[float, str], None]  # fraction of the whole grid, what goes on


@dataclass(frozen=True)
class Leaderboard:
    """What `compare` found. `content` is exactly what stands in `leaderboard.json`."""

    content: Mapping[str, Any]
    folder: Path | None  # where it was written
    reused: int  # runs that were there already
    executed: int

    @property
    def rows(self) -> list[Mapping[str, Any]]:
        """The rows, best first."""
        return list(self.content["rows"])


def compare(
    task: Task | str | Path,
    *,
    backbone: str = "minilm",
    methods: str | Sequence[str] | None = None,
    seeds: int = SEEDS,
    epochs: int | None = None,
    out: str | Path | None = None,
    runs: str | Path = "runs",
    precision: str = "auto",
    prices: str | Path | None = None,
    progress: Progress = lambda done, text: None,
) -> Leaderboard:
    """Run every method (default: all that fit) with seeds 0 … seeds - 1 and say which differences are real.

    `out` (default `boards/<task>`) receives `leaderboard.json` and `report.html`. Runs that are in `runs` already
    cost nothing. Of a task file only the task is read: what it says of the comparison (backbone, methods, seeds …) is
    for the command line. Raises `GraftworkError` for bad data or settings; a run that fails is a row.
    """
    if isinstance(task, str | Path):
        task = Task.from_file(task)
    if seeds < 1:
        raise ConfigError("seeds must be at least 1", got=str(seeds))
    chosen = choose_methods(methods)
    folder = Path(out) if out is not None else Path("boards") / task.name
    shop = open_shop(task, backbone, chosen, runs, precision, prices)
    fitting, left_out = _fitting(chosen, shop, asked=methods is not None)
    recipe = Recipe(epochs=epochs)
    for item in fitting:
        shop.spec(item, recipe, 0)  # a recipe that makes no sense is an error before the first run, not after it
    require_writable(folder)
    rows, reused = _run_grid(shop, fitting, recipe, seeds, progress)
    content = finite(_content(shop, rows, left_out))
    write_json(folder / "leaderboard.json", content)
    receipts = [_receipt(row.method, run) for row in rows for run, _ in row.runs]
    write_report(content, receipts, folder / "report.html")
    executed = len(receipts) - reused
    return Leaderboard(content, folder, reused, executed)


def choose_methods(words: str | Sequence[str] | None) -> list[Named]:
    """The methods asked for (one string: separated by commas), or all there are.

    Raises `UnknownName`, or `ConfigError` for one named twice.
    """
    if words is None:
        return [named(name, {}) for name in methods.names()]
    listed = words.split(",") if isinstance(words, str) else words
    chosen = [parse_method(word) for word in listed if word.strip()]
    labels = [item.label for item in chosen]
    twice = sorted({label for label in labels if labels.count(label) > 1})
    if twice or not chosen:
        raise ConfigError("a method is named twice" if twice else "no method is named", got=", ".join(twice))
    return chosen


def _fitting(chosen: Sequence[Named], shop: Shop, asked: bool) -> tuple[list[Named], tuple[str, ...]]:
    """Those that fit the task and the backbone, and a note on every other; one that was asked for by name must fit."""
    card = shop.backbone.card if shop.backbone else None
    reasons = {item.label: item.method.unfit(shop.dataset.task, card) for item in chosen}
    for label, reason in reasons.items():
        if reason and asked:
            raise ConfigError(f"method {label!r} can't be used here: {reason}")
    left_out = tuple(f"{label} was left out: {reason}" for label, reason in reasons.items() if reason)
    return [item for item in chosen if not reasons[item.label]], left_out


def _run_grid(
    shop: Shop, chosen: Sequence[Named], recipe: Recipe, seeds: int, progress: Progress
) -> tuple[list[RowRuns], int]:
    """Seed by seed, so that an interrupted grid has compared every method on the seeds that are done."""
    found: dict[str, list[tuple[RunResult, Mapping[str, NDArray[np.float64]]]]] = {item.label: [] for item in chosen}
    reused, total, place = 0, seeds * len(chosen), 0
    for seed in range(seeds):
        for item in chosen:
            words = f"{item.label} seed {seed}"

            def report(done: float, text: str, place: int = place, words: str = words) -> None:
                progress((place + done) / total, f"{words}: {text}")

            report(0.0, "starting")
            result, known = execute(shop, item, recipe, seed, report)
            reused += known
            statistics = test_statistics(shop.dataset, shop.store.root / result.id) if result.status == "ok" else {}
            found[item.label].append((result, statistics))
            place += 1
    rows = [RowRuns(item.label, item.config, _row_status([r for r, _ in found[item.label]]), tuple(found[item.label]))
            for item in chosen]  # fmt: skip
    return rows, reused


def _row_status(results: Sequence[RunResult]) -> str:
    """A row is as its runs: ok when any is (failed seeds are counted beside it), otherwise what went wrong first."""
    return "ok" if any(result.status == "ok" for result in results) else results[0].status


def test_statistics(dataset: Dataset, folder: Path) -> dict[str, NDArray[np.float64]]:
    """Metric -> (N, K) per-example statistics of one run on the test split, from its stored logits."""
    kind = kinds.get(dataset.task.kind)
    predictions = kind.predictions(read_logits(folder, "test"), dataset.task)
    return {
        name: metrics.get(name).statistics(dataset.test.targets, predictions, dataset.task)
        for name in dataset.task.metrics
    }


def _content(shop: Shop, rows: Sequence[RowRuns], notes: tuple[str, ...]) -> dict[str, Any]:
    task = shop.dataset.task
    described = {"name": task.name, "data": shop.dataset.digest} | task.question()
    described["rows"] = {name: len(split.examples) for name, split in shop.dataset.splits.items()}
    findings = Findings(
        data_report=shop.dataset.report,
        search_costs=_search_costs([run for row in rows for run, _ in row.runs]),
        environment=environment(),
        notes=notes,
        command=_command(),
    )
    return leaderboard(
        task=described,
        backbone=asdict(shop.backbone.card) if shop.backbone else None,
        rows=rows,
        metrics={name: metrics.get(name) for name in task.metrics},
        findings=findings,
    )


def _command() -> str:
    """What the user typed, ready to be typed again; empty when the call came from Python."""
    program = Path(sys.argv[0])
    ours = program.stem == "graft" or program.parts[-2:] == ("graftwork", "__main__.py")
    return shlex.join(["graft", *sys.argv[1:]]) if ours else ""


def _search_costs(runs: Sequence[RunResult]) -> dict[str, Cost]:
    """What the runs of this board really spent, whenever they ran, shared work counted once; and what they would
    have cost one by one."""
    spent = Phase()
    for run in runs:
        spent.add(run.spent)
    alone = sum(run.costs["total_seconds"].value or 0.0 for run in runs if "total_seconds" in run.costs)
    return {
        "wall_seconds": Cost(spent.wall_seconds, "s", "meter"),
        "cpu_seconds": Cost(spent.cpu_seconds, "s", "counter"),
        "runs": Cost(float(len(runs)), "runs", "counter"),
        "separate_total_seconds": Cost(alone, "s", "meter"),
    }


def _receipt(label: str, run: RunResult) -> dict[str, Any]:
    """A run as the report shows it."""
    return {"method": label} | asdict(run)
