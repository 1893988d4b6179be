"""The mean of the weights of the chosen method's runs, made at the end of a comparison without further training."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from graftwork.budget.averaging import outscores
from graftwork.compare.grid import Runner, RunProgress
from graftwork.compare.leaderboard_data import median_costs
from graftwork.compare.sentences import Board, title_of
from graftwork.compare.workers import RunOrder
from graftwork.core.configured_methods import configured
from graftwork.decision.traits import TUNED, Arm
from graftwork.errors import GraftworkError
from graftwork.run.earlier_training import are_successive, began_alike
from graftwork.run.score_interval import validation_evidence
from graftwork.units import error_rate, percent, several, show


def average_runs(runner: Runner, chosen: Arm, told: RunProgress) -> dict[str, Any] | None:
    """Average the weights of a method's runs without training, and return what a board says about this average.

    None if the average fails, if there are fewer than two successful runs or their seeds are not successive, if the
    runs differ in their initial weights or lack modules, or if only some sources of variation differ between them.
    """
    entry = next(entry for entry in runner.entries if entry.arm == chosen)
    session, runs = runner.session, [run for run in entry.runs if run.status == "ok"]
    if chosen.sort != TUNED or runner.recipe.varied or not are_successive([run.seed for run in runs]):
        return None
    if not began_alike(session, entry.item.method, runs[0]):
        return None
    if not all((session.store.root / run.id / "module").is_dir() for run in runs):
        return None
    item = configured("average", {"runs": len(runs), "by": entry.item.label})
    order = RunOrder(item.label, item, runner.recipe, runs[0].seed, "average of its runs")
    try:
        _, result, known = next(iter(runner.crew([order], lambda place, done, text: told(order, done, text))))
    except GraftworkError:  # the board is complete without it
        return None
    if result.status != "ok":
        return None
    if result.id not in runner.done:
        runner.done[result.id] = result
        runner.reused += known
    metric, store = session.dataset.task.metrics[0], session.store.root
    average, *singles = (validation_evidence(session.dataset, store / run.id) for run in (result, *runs))
    low, high = result.interval or (None, None)
    return {
        "method": item.label,
        "of": entry.item.label,
        "run": result.id,
        "runs": len(runs),
        "validation": result.validation[metric],
        "kept": outscores(average, singles, runner.standing.spread),
        "scores": dict(result.scores),
        "low": low,
        "high": high,
        "costs": median_costs([result]),
    }


def with_average(row: Mapping[str, Any], board: Board) -> Mapping[str, Any]:
    """Return a row of a board; if the average of its runs is kept, the average comes first among the row's runs."""
    found = kept_average(board)
    if found is None or found["of"] != row["method"]:
        return row
    return {**row, "runs": [found["run"], *row["runs"]]}


def kept_average(board: Board) -> Mapping[str, Any] | None:
    """Return the average of the chosen method's runs; None without one, or if it is expected to be worse than they."""
    found = board.get("averaged")
    return found if found and found["kept"] else None


def average_lines(board: Board) -> list[str]:
    """Return `The mean of the weights of its 3 runs: accuracy 81.4 on test (79.7 … 83.1), at no further training than
    their 1 min 3 s.`; the interval is over rows alone."""
    found, metric = kept_average(board), board["headline_metric"]
    if found is None:
        return []
    score = found["scores"][metric]
    told = f"{title_of(board, metric)} {percent(score)}{error_rate(metric, score)} on test"
    told += f" ({percent(found['low'])} … {percent(found['high'])})" if found["low"] is not None else ""
    told += f", at no further training than their {show(found['costs']['train_seconds']['value'], 's')}"
    return [f"The mean of the weights of its {several(found['runs'], 'run')}: {told}."]
